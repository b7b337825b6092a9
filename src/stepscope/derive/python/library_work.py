"""Which kind of work a stack sample is in, by the library's functions on it, else by the calls of the user's line.

A function in C has no frame: of ``pickle.loads(blob)`` the user's line is the innermost. Its kind then rests on the
line's source, and only where all of its calls that can take long are of one kind: in ``cv2.imread(f"{folder}/a.jpg")``
the text is not what takes the time.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING, Literal

from stepscope.derive.python import loop_source, stack_samples
from stepscope.derive.python.framework_files import is_framework

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.derive.python.stack_samples import Sample, Spot

    SourceOf = Callable[[str], str | None]

WorkKind = Literal[
    "",
    "attention",
    "choice",
    "concatenate",
    "copy",
    "csv",
    "deflate",
    "eager",
    "format",
    "hash",
    "hdf5",
    "image",
    "inflate",
    "json",
    "list",
    "lists",
    "log",
    "npy",
    "open",
    "pandas",
    "parametrize",
    "pickle",
    "regex",
    "request",
    "sleep",
    "sort",
    "sql",
    "unzip",
]
"""``unzip``: unpacks a member of an archive; ``npy``: reads a file of NumPy; ``list``: lists a folder; ``lists``:
makes an array of lists of Python's numbers; ``eager``: runs ops of JAX one by one; ``parametrize``: computes a weight
of PyTorch each time that it is read; ``attention``: that of transformers without a fused kernel."""

_STANDARD = r"/lib/python3\.\d+t?/"
"""Folder of Python's own library, whose modules have common names."""
_FILES: tuple[tuple[str, WorkKind], ...] = (
    (_STANDARD + r"zipfile(\.py|/)", "unzip"),
    (_STANDARD + r"(gzip|_compression|lzma|bz2|zlib)\.py$", "inflate"),
    (_STANDARD + r"json/(decoder|scanner|__init__)\.py$", "json"),
    (r"-packages/PIL/", "image"),
    (r"-packages/h5py/", "hdf5"),
    (r"-packages/pandas/io/", "csv"),
    (r"-packages/pandas/", "pandas"),
    (_STANDARD + r"(http/client|urllib/request|ssl)\.py$", "request"),
    (r"-packages/(requests|urllib3|httpx)/", "request"),
    (_STANDARD + r"logging/\w+\.py$", "log"),
    (_STANDARD + r"(re/__init__|re)\.py$", "regex"),
    (_STANDARD + r"sqlite3/", "sql"),
    (_STANDARD + r"csv\.py$", "csv"),
    (_STANDARD + r"copy\.py$", "copy"),
    (_STANDARD + r"pickle\.py$", "pickle"),
    (r"-packages/numpy/lib/(_npyio_impl|npyio|format|_format_impl)\.py$", "npy"),
    (_STANDARD + r"(glob|fnmatch)\.py$", "list"),
    (r"-packages/(optax|jax/_src/(numpy|lax))/", "eager"),
    (r"-packages/torch/nn/utils/(parametriz\w+|weight_norm|spectral_norm)\.py$", "parametrize"),
)
"""Files of libraries, and what a sample in them does. Of several on one stack the innermost counts: an archive that
NumPy reads is unpacked."""
_EAGER_ATTENTION = "eager_attention_forward"
"""End of the name of transformers' functions that compute attention op by op. Source: transformers 5.24."""
_TRACES = "/jax/_src/interpreters/partial_eval.py"
"""JAX code that traces a function for its compiler: what runs below is run once."""
_GIVES = frozenset({"array", "asarray", "device_put"})
"""Functions of JAX that copy an array of the host's."""
_WRITES = re.compile(r"^_?(write|save|dump|compress|create_dataset|__setitem__|to_(csv|json|pickle|parquet|sql|hdf))")
"""Begin of names of functions that write: what a library's file says of its work is about reading."""
_READS: frozenset[WorkKind] = frozenset({"csv", "hdf5", "image", "inflate", "json", "npy", "pickle", "unzip"})
_SORTS = frozenset({"sort", "argsort", "sorted", "lexsort"})
_BY_NAME: dict[str, WorkKind] = {
    **dict.fromkeys(_SORTS, "sort"),
    **dict.fromkeys(("concatenate", "vstack", "hstack"), "concatenate"),
    **dict.fromkeys(("hexdigest", "digest", "md5", "sha1", "sha256", "sha512", "blake2b"), "hash"),
    **dict.fromkeys(("execute", "executemany", "fetchone", "fetchall"), "sql"),
    **dict.fromkeys(("findall", "finditer"), "regex"),
    "deepcopy": "copy",
}
"""Last names of calls in C that say by themselves what they do."""
_BY_PATH: dict[str, WorkKind] = {
    **dict.fromkeys(("pickle.loads", "pickle.load"), "pickle"),
    **dict.fromkeys(("json.loads", "json.load"), "json"),
    **dict.fromkeys(("zlib.decompress", "gzip.decompress", "bz2.decompress", "lzma.decompress"), "inflate"),
    **dict.fromkeys(("zlib.compress", "gzip.compress", "bz2.compress", "lzma.compress"), "deflate"),
    **dict.fromkeys(("np.append", "numpy.append"), "concatenate"),
    **dict.fromkeys(("re.sub", "re.split", "re.match", "re.search"), "regex"),
    **dict.fromkeys(("os.listdir", "os.scandir", "glob.glob"), "list"),
    **dict.fromkeys(("open", "os.open"), "open"),
    "time.sleep": "sleep",
}
"""The same for calls as the source writes them."""


_SHORT = (
    "abs add all any append array asarray bool bytes debug decode dict encode endswith enumerate error extend float "
    "get getattr info int isinstance items join keys len list lower lstrip max min next numpy perf_counter permute pop "
    "print range replace reshape reversed round rstrip set split squeeze startswith str strip sum time tobytes "
    "transpose tuple unsqueeze upper values view warning write zip"
)
_CHEAP = frozenset(_SHORT.split())
"""Last names of calls that seldom take a line's time where it makes one of a known kind, too."""
_MAKE_ARRAYS = frozenset({"FloatTensor", "array", "as_tensor", "asarray", "constant", "convert_to_tensor", "tensor"})
"""Last names of functions that make an array or a tensor of what they are given."""
_DATABASES = re.compile(
    r"^\s*(?:import|from)\s.*\b(?:sqlite3|psycopg2?|pyodbc|pymysql|MySQLdb|duckdb|sqlalchemy|oracledb)\b", re.MULTILINE
)
"""Imports without which ``execute`` is no query: other libraries have methods of that name."""


def of(sample: Sample, source_of: SourceOf) -> WorkKind:
    """The kind of work; "" if it is not known.

    Args:
        sample: the sample.
        source_of: the text of a user's file, None if it is not known.
    """
    below = [frame for frame in sample.below_user() if not stack_samples.is_agent(frame.file)]
    for frame in reversed(below):
        path = frame.file.replace("\\", "/")
        found = next((kind for pattern, kind in _FILES if re.search(pattern, path)), None)
        if found == "eager" and any(map(_is_no_op, below)):
            return ""
        if found in _READS and any(map(_writes, below)):
            return "deflate" if found in {"inflate", "unzip"} else ""
        if found is not None:
            return found
    if any(frame.function.endswith(_EAGER_ATTENTION) and "/transformers/" in frame.file for frame in below):
        return "attention"
    if any(frame.function.rpartition(".")[2] in _SORTS and not is_framework(frame.file) for frame in below):
        return "sort"
    culprit = sample.culprit
    return at_line(culprit, source_of) if culprit is not None and not below else ""


def _is_no_op(frame: Spot) -> bool:
    """Whether JAX traces below a frame, or hands it an array of the host's: neither is an op that jit would hold."""
    return frame.file.replace("\\", "/").endswith(_TRACES) or frame.function.rpartition(".")[2] in _GIVES


def _writes(frame: Spot) -> bool:
    return bool(_WRITES.match(frame.function.rpartition(".")[2]))


def at_line(spot: Spot, source_of: SourceOf) -> WorkKind:
    """The kind of work that the calls of a line do, by its source; "" if they are of none or of several kinds, or if
    another call may be what takes the time.
    """
    source = source_of(spot.file)
    return _at_line(source, spot.line) if source else ""


@functools.lru_cache(maxsize=256)
def _at_line(source: str, line: int) -> WorkKind:
    tree = loop_source.parsed(source)
    kinds = set(_kinds(tree, line)) if tree is not None else set[WorkKind]()
    kind = kinds.pop() if len(kinds) == 1 else ""
    return "" if kind == "sql" and not _DATABASES.search(source) else kind


def _kinds(tree: ast.Module, line: int) -> Iterator[WorkKind]:
    """The kinds of what can take long on a line; "" for a call of which nothing is known."""
    for node in ast.walk(tree):
        first = getattr(node, "lineno", 0)
        if not first <= line <= (getattr(node, "end_lineno", None) or first):
            continue
        if isinstance(node, ast.Call):
            kind = _of_call(node) or ("lists" if _takes_lists(tree, node) else "")
            if kind or _last_name(node.func) not in _CHEAP:
                yield kind
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and _fills_text(node)):
            yield "format"


def _takes_lists(tree: ast.Module, call: ast.Call) -> bool:
    """Whether a call makes an array of numbers that Python holds one by one, by the nearest assignment above it in its
    function.
    """
    if _last_name(call.func) not in _MAKE_ARRAYS or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    given = call.args[0]
    if isinstance(given, ast.Name):
        bound = [
            node
            for node in ast.walk(loop_source.owner_of(tree, call.lineno))
            if isinstance(node, ast.Assign)
            and node.lineno < call.lineno
            and any(isinstance(one, ast.Name) and one.id == given.id for one in node.targets)
        ]
        given = max(bound, key=lambda node: node.lineno).value if bound else given
    if isinstance(given, ast.ListComp):
        return _holds_numbers(given.elt)
    return isinstance(given, ast.Call) and _last_name(given.func) == "tolist"


def _holds_numbers(element: ast.expr) -> bool:
    """Whether an element of a list is a number by its source, or a list of such."""
    if isinstance(element, ast.ListComp):
        return _holds_numbers(element.elt)
    if isinstance(element, ast.List | ast.Tuple):
        return bool(element.elts) and all(map(_holds_numbers, element.elts))
    if isinstance(element, ast.BinOp):
        return _holds_numbers(element.left) or _holds_numbers(element.right)
    if isinstance(element, ast.Call):
        return _last_name(element.func) in {"float", "int", "len", "ord", "round", "tolist"}
    return isinstance(element, ast.Constant) and isinstance(element.value, int | float)


def _last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _fills_text(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.Mod) and _is_text(node.left)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _of_call(call: ast.Call) -> WorkKind:
    path = ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    name = path.rpartition(".")[2]
    if name == "choice":
        return "choice" if any(one.arg == "p" for one in call.keywords) else ""
    if name == "format" and isinstance(call.func, ast.Attribute) and _is_text(call.func.value):
        return "format"
    return _BY_PATH.get(path) or _BY_NAME.get(name, "")
