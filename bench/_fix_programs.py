"""Programs that contain a rule's pattern: five templates for each rule with a fix, and variations of them by seed.

``bench/fixes/CODE.txt`` holds the templates, each after a line ``#%% name``. ``<<a|b>>`` is a choice; ``<<n:a|b>>``
names it, and ``<<n>>`` repeats it; ``@`` before four blanks is a line break. ``USE_ARRAY(x)`` and ``USE_TENSOR(x)`` are
statements that use a result. The program of a template takes the first option of every choice. A variation takes any
option, and changes what no result depends on: how libraries are imported, names, comments, line breaks in calls, the
surrounding scope.
"""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / "fixes"
_CHOICE = re.compile(r"<<(?:(\w+):)?(.*?)>>")
_BREAK = re.compile(r"@(?= {4})")
_VERSION = re.compile(r"# tensorflow: ([\d.]+)")
_USE = re.compile(r"^( *)USE_(ARRAY|TENSOR)\((\w+)\)$", re.MULTILINE)
_USES = {
    "ARRAY": (
        "print({0}.sum())", "print({0}[0])", "print({0}.shape, {0}.dtype)", "print((1 + {0}).tolist())",
        "print(type({0}).__name__)", "print(f'{{{0}.max():.3f}}')", "{0}[0] = 0", "print(np.argmax({0}))",
        "print(({0} > 0).any())", "kept = {0}.copy(); kept += 1", "print({0}.astype('float64').mean())",
        "pair = np.concatenate([{0}, {0}])", "got = {0}",
    ),
    "TENSOR": (
        "print({0}.numpy())", "print({0} + 1)", "print({0}.dtype, {0}.shape)",
        "print(f'{{float(tf.reduce_sum({0})):.3f}}')",
        "kept = tf.cast({0}, tf.float64)", "print(np.asarray({0}).tolist())", "print(bool(tf.reduce_all({0} == {0})))",
        "got = [{0}]", "print(type({0}).__name__)", "got = {0}",
    ),
}  # fmt: skip
_NAMES = [
    "alpha",
    "beta",
    "count",
    "data_in",
    "first",
    "item_1",
    "left",
    "node",
    "part",
    "q0",
    "result_",
    "right",
    "second",
    "some",
    "this_one",
    "total_",
    "value_x",
    "w_1",
    "zeta",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """Contents of a file of templates."""

    code: str
    version: str
    """TensorFlow version that they need; "" for the newest."""
    compared: str
    """Output and variables that are compared: all that the fix leaves alone."""
    texts: dict[str, str]
    """Templates by name."""


def load(code: str, folder: Path = FOLDER) -> Templates:
    """The templates of a rule."""
    head, *parts = re.split(r"^#%% ", (folder / f"{code}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = {}
    for part in parts:
        name, _, text = part.partition("\n")
        texts[name.strip()] = text.strip() + "\n"
    version = _VERSION.search(head)
    compared = " ".join(_VERSION.sub("", head).replace("#", " ").split())
    return Templates(code=code, version=version.group(1) if version else "", compared=compared, texts=texts)


def codes(folder: Path = FOLDER) -> list[str]:
    """The rules that have templates."""
    return sorted(path.stem for path in folder.glob("*.txt"))


def plain(text: str) -> str:
    """A template's program: the first option of every choice."""
    return _filled(text, lambda choices: choices[0])


def varied(text: str, seed: int) -> str:
    """A variation of a template."""
    rng = random.Random(seed)
    program = _filled(text, rng.choice)
    for change in (_renamed, _commented, _broken, _imported, _wrapped):
        program = change(program, rng)
    return program


def _filled(text: str, choose: Callable[[tuple[str, ...]], str]) -> str:
    named: dict[str, str] = {}

    def choice(match: re.Match[str]) -> str:
        name, body = match.group(1), match.group(2)
        if name is None and body in named:
            return named[body]
        chosen = choose(tuple(body.split("|")))
        if name is not None:
            named[name] = chosen
        return chosen

    def use(match: re.Match[str]) -> str:
        return match.group(1) + choose(_USES[match.group(2)]).format(match.group(3))

    return _USE.sub(use, _BREAK.sub("\n", _CHOICE.sub(choice, text)))


def _replaced(program: str, places: list[tuple[int, int, int, str]]) -> str:
    """Replace text at places: line, begin and end column, new word."""
    lines = program.splitlines()
    for line, begin, end, word in sorted(set(places), reverse=True):
        lines[line - 1] = lines[line - 1][:begin] + word + lines[line - 1][end:]
    return "\n".join(lines) + "\n"


def _in_formatted(tree: ast.AST) -> set[ast.AST]:
    return {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}


def _renamed(program: str, rng: random.Random) -> str:
    """Rename some of the program's own names."""
    tree = ast.parse(program)
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    keywords = {n.arg for n in nodes if isinstance(n, ast.keyword)}
    within = {n.id for n in _in_formatted(tree) if isinstance(n, ast.Name)}
    others = {n.arg for n in nodes if isinstance(n, ast.arg)} | {
        n.name for n in nodes if isinstance(n, ast.FunctionDef)
    }
    free = sorted(n for n in bound - keywords - within - others if not n.startswith("_"))
    rng.shuffle(free)
    new = dict(zip(free[: rng.randint(0, len(free))], rng.sample(_NAMES, len(_NAMES)), strict=False))
    places = [
        (n.lineno, n.col_offset, n.col_offset + len(n.id), new[n.id])
        for n in nodes
        if isinstance(n, ast.Name) and n.id in new
    ]
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in nodes):
        return program
    return _replaced(program, places)


def _commented(program: str, rng: random.Random) -> str:
    """Add comments behind statements and on separate lines."""
    lines = program.splitlines()
    starts = {n.lineno for n in ast.walk(ast.parse(program)) if isinstance(n, ast.stmt)}
    alone = {n.lineno for n in ast.walk(ast.parse(program)) if isinstance(n, ast.stmt) and n.lineno == n.end_lineno}
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        if number in starts and rng.random() < 0.12:
            found.append(line[: len(line) - len(line.lstrip())] + "# as the paper does")
        found.append(line + ("  # checked" if number in alone and rng.random() < 0.1 else ""))
    return "\n".join(found) + "\n"


def _broken(program: str, rng: random.Random) -> str:
    """Break lines after the opening brackets of some calls."""
    tree = ast.parse(program)
    lines = program.splitlines()
    formatted = _in_formatted(tree)
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node not in formatted and rng.random() < 0.15:
            line, column = node.func.end_lineno or 0, node.func.end_col_offset or 0
            if lines[line - 1][column : column + 1] == "(" and "#" not in lines[line - 1]:
                places.append((line, column, column + 1, "(\n" + " " * rng.choice((4, 8, 12))))
    return _replaced(program, places)


def _imported(program: str, rng: random.Random) -> str:
    """Import libraries under other names, or a function of TensorFlow under its own."""
    tensorflow = rng.choice(("tf", "tf", "t", "tensorflow"))
    line = "import tensorflow" if tensorflow == "tensorflow" else f"import tensorflow as {tensorflow}"
    if "import tensorflow as tf" in program:
        ops = sorted(set(re.findall(r"\btf\.([a-z]\w*)\b(?![.\w])", program)) - {"keras", "data"})
        own = rng.choice(ops) if ops and rng.random() < 0.3 else ""
        if own and not re.search(rf"(?<![.\w]){own}\b", program):
            program = re.sub(rf"\btf\.{own}\b(?!\.)", own, program)
            line += f"\nfrom tensorflow import {own}"
        program = re.sub(r"(?<![.\w])tf\.", f"{tensorflow}.", program).replace("import tensorflow as tf", line, 1)
    numpy = rng.choice(("np", "np", "numpy", "n_"))
    if "import numpy as np" in program:
        program = re.sub(r"(?<![.\w])np\.", f"{numpy}.", program)
        program = program.replace(
            "import numpy as np", "import numpy" if numpy == "numpy" else f"import numpy as {numpy}"
        )
    if rng.random() < 0.3:
        program = re.sub(r"^import keras$", "from tensorflow import keras", program, flags=re.MULTILINE)
    return program


def _wrapped(program: str, rng: random.Random) -> str:
    """Put the statements after the imports and definitions into a function, a method, or a guard."""
    kind = rng.choice(("none", "none", "function", "method", "guard"))
    tree = ast.parse(program)
    if kind == "none" or any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(tree)):
        return program
    lines = program.splitlines()
    imports = [n.end_lineno or 0 for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    cut = max(imports, default=0)
    if any(n.lineno <= cut for n in tree.body if not isinstance(n, (ast.Import, ast.ImportFrom))):
        return program
    names = sorted(
        {n.id for s in tree.body for n in _own(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    )
    names = [name for name in names if not name.startswith("_")]
    head, body = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    if kind == "guard":
        return f"{head}\n\nif __name__ == '__main__':\n{textwrap.indent(body, '    ')}\n"
    body += f"\nreturn [{', '.join(names)}]"
    if kind == "function":
        return f"{head}\n\ndef main():\n{textwrap.indent(body, '    ')}\n\nleft_over = main()\n"
    return f"{head}\n\nclass Job:\n    def run(self):\n{textwrap.indent(body, ' ' * 8)}\n\nleft_over = Job().run()\n"


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the scope of a statement."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)
