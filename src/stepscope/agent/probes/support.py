"""Helpers of several probes: call sites, stacks, leading dimensions, owners of functions.

Nothing here patches anything or keeps its own state.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import autograph, frames
from stepscope.wire.kinds import Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

SHORT_NS = 20_000
"""Duration below which calls of some kinds are counted, not recorded (decision 0004: the level-0 budget)."""

REPEATS = 8
"""Traces of one library function, inside loops called from one line, that are logged in full: a program that calls
predict for every row makes three traces each time."""

MAX_SITES = 4096
"""Call sites remembered per kind of call; a program that generates code forgets them and starts again."""


LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "jax", "flax", "optax", "equinox"})
"""Packages whose code reads values and runs ops for the user."""
STACK = 8
"""User frames logged with a line."""

PER_REPLICA = "PerReplica"


class _AlwaysAsk:
    """Stands in for TensorFlow's stack of default graphs if that cannot be found."""

    stack = (None,)


def graph_stack() -> Foreign:
    """TensorFlow's stack of default graphs. If ``.stack`` is empty, in a thread outside ``with graph.as_default()``,
    there is no need to ask the context.

    Asking costs 0.16 us. If eager execution is off for good, ``eager_test`` says so at the first call.
    """
    found = getattr(sys.modules.get("tensorflow.python.framework.ops"), "_default_graph_stack", None)
    return found if hasattr(found, "stack") else _AlwaysAsk()


def eager_test() -> Callable[[], bool]:
    """The function that tests whether the calling thread executes eagerly."""
    test: Callable[[], bool] = sys.modules["tensorflow.python.eager.context"].executing_eagerly
    return test


def keras_backend(package: str) -> str:
    """The backend of an imported Keras by its own configuration, read without importing anything; "" if it has none."""
    config = sys.modules.get("%s.src.backend.config" % package) or sys.modules.get("%s.src.backend.common" % package)
    backend = getattr(config, "backend", None)
    if not callable(backend):
        return ""
    try:
        return str(backend())
    except (TypeError, RuntimeError):
        return ""


def other_backend(module: Foreign) -> bool:
    """Whether the Keras that has this module computes with another framework than TensorFlow."""
    return keras_backend(module.__name__.partition(".")[0]) not in ("", "tensorflow")


TRAINERS = ("TensorFlowTrainer", "JAXTrainer", "TorchTrainer", "Model")
"""Names of the class with ``fit``, by the backend of Keras 3, and of Keras 2."""


def trainer_class(module: Foreign) -> Foreign:
    """The class with ``fit`` of a module of Keras; None: it has none."""
    return next((found for found in (getattr(module, name, None) for name in TRAINERS) if found), None)


class Sites:
    """Name ids by calling line. A lookup is two attributes of the frame and one dict access."""

    __slots__ = ("_fields", "_prefix", "_state", "known")

    def __init__(self, state: AgentState, prefix: Foreign, **fields: Foreign) -> None:
        """``prefix`` makes the key unique; ``fields`` are those of ``model.log.events.Name`` with ``text``."""
        self._state = state
        self._prefix = prefix
        self._fields = fields
        self.known: dict[tuple[int, int], tuple[int, Foreign]] = {}
        """(id, code) of names by (id of the code, last instruction) of the calling frame; always the same object."""

    def name(self, frame: FrameType) -> int:
        """Id of the name for a call from ``frame``."""
        code = frame.f_code
        hit = self.known.get((id(code), frame.f_lasti))
        return hit[0] if hit is not None else self._look(frame)

    def _look(self, frame: FrameType) -> int:
        file, function, line = leaf(frames.user_stack(1, frame))
        fields = dict(self._fields)
        text = fields.pop("text")
        name = self._state.name(
            (self._prefix, file, line), text, call_file=file, call_line=line, call_function=function, **fields
        )
        if len(self.known) >= MAX_SITES:
            self.known.clear()
        # The code object is kept alive, so that its id is not reused.
        self.known[(id(frame.f_code), frame.f_lasti)] = (name, frame.f_code)
        return name


def outside(frame: FrameType) -> FrameType:
    """The innermost frame from ``frame`` on that is of no numeric library: where user code called into one."""
    found: FrameType | None = frame
    while found is not None and str(found.f_globals.get("__name__")).partition(".")[0] in LIBRARIES:
        found = found.f_back
    return found or frame


def drop_our_frame(error: BaseException) -> int:
    """For a wrapper whose user's call raised: returns the record's flag and drops our frame from the traceback.

    The flag is END if an iterator ran out, else RAISED. Called in the wrapper's ``except`` block before a bare
    ``raise``: from Python 3.11 on the traceback is then as without us; before that, it keeps the one frame of the
    wrapper.
    """
    trace = error.__traceback__
    if trace is not None:
        error.__traceback__ = trace.tb_next
    if isinstance(error, StopIteration) or type(error).__name__ == "OutOfRangeError":
        return int(Flag.END)
    return int(Flag.RAISED)


def followed(
    state: AgentState, original: Callable[..., object], where: str, tell: Callable[..., object]
) -> Callable[..., object]:
    """Wrap ``original``: after it returns, call ``tell(result, args, kwargs)``. For functions called rarely."""

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> object:
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard(where):
            tell(result, args, kwargs)
        return result

    return call


def user_stack() -> list[tuple[str, str, int]]:
    """User frames of the caller, root to leaf; frames of AutoGraph's generated code are mapped to the user's lines.

    Cost: about 10 us, in AutoGraph's code about 50.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if autograph.PREFIX in frame.f_code.co_filename:
            return _mapped_stack()
        frame = frame.f_back
    return frames.user_stack(STACK, sys._getframe(1))


def _mapped_stack() -> list[tuple[str, str, int]]:
    stack = sys.modules.get("tensorflow.python.util.tf_stack")
    if stack is None:
        return []
    found: list[tuple[str, str, int]] = []
    for entry in stack.extract_stack():
        place = (frames.absolute(entry.filename), entry.name, entry.lineno)
        if frames.is_own(entry.filename) and found[-1:] != [place]:
            found.append(place)
    return found[-STACK:]


def leaf(stack: Sequence[tuple[str, str, int]]) -> tuple[str, str, int]:
    """Innermost frame of a stack, or ("", "", 0)."""
    return stack[-1] if stack else ("", "", 0)


def report(state: AgentState, name: str, why: str = "") -> None:
    """Log that a probe has attached, or why not."""
    state.log({"t": "probe", "at": state.now(), "name": name, "attached": not why, "why": why})


def lacking(owner: Foreign, attribute: str, parameters: Iterable[str] = ()) -> str:
    """Why ``owner.attribute`` cannot be patched: "" if it is callable and its first parameters are as expected."""
    found = getattr(owner, attribute, None)
    label = "%s.%s" % (getattr(owner, "__name__", owner), attribute)
    if found is None:
        return "%s does not exist" % label
    if not callable(found):
        return "%s is not callable" % label
    wanted = list(parameters)
    if wanted:
        try:
            seen = list(inspect.signature(found).parameters)
        except (TypeError, ValueError):
            return "%s has no signature" % label
        if seen[: len(wanted)] != wanted:
            return "%s takes (%s), expected (%s)" % (label, ", ".join(seen), ", ".join(wanted))
    return ""


def leading(value: Foreign) -> int:
    """Leading dimension of the first array or tensor of rank >= 1 in ``value``, 0 if there is none.

    Variables, datasets and iterators do not count. Nesting is searched to depth 3.
    """
    return _leading(value, 3)


def _leading(value: Foreign, depth: int) -> int:
    shape = getattr(value, "shape", None)
    if shape is not None:
        if hasattr(value, "assign_add"):
            return 0
        try:
            first = shape[0]
            return int(first) if first is not None else 0
        except (IndexError, TypeError, ValueError):
            return 0
    if depth and isinstance(value, (tuple, list)):
        children: Iterable[Foreign] = value[:4]
    elif depth and isinstance(value, dict):
        children = list(value.values())[:4]
    else:
        return 0
    for child in children:
        found = _leading(child, depth - 1)
        if found:
            return found
    return 0


def examples(values: Sequence[object], *, batched: bool = False) -> int:
    """Number of examples that a call is given, 0 if unknown.

    A leading dimension counts examples if all arrays share it and there are at least two (inputs and targets), or if
    the signature of the called function leaves it open (``batched``): a single array may just as well be a state or a
    table. If the arrays differ, it is unknown which of them counts examples (the nodes of a batch of graphs beside its
    labels).
    """
    sizes: list[int] = []
    _sizes(values, 3, sizes)
    alike = bool(sizes) and all(size == sizes[0] for size in sizes)
    return sizes[0] if alike and (batched or len(sizes) > 1) else 0


def _sizes(values: Iterable[object], depth: int, found: list[int]) -> None:
    for value in itertools.islice(values, 4):
        if hasattr(value, "shape"):
            size = _leading(value, 0)
            if size:
                found.append(size)
        elif depth and isinstance(value, (tuple, list, dict)):
            _sizes(value.values() if isinstance(value, dict) else value, depth - 1, found)
        elif type(value).__name__ == PER_REPLICA:  # of tf.distribute: each replica of this process has a part
            parts = [_leading(part, 0) for part in getattr(value, "_values", ())]
            if parts and all(parts):
                found.append(sum(parts))


def is_open(spec: object) -> bool:
    """Whether the first tensor of a signature, or a placeholder, leaves its leading dimension open."""
    while isinstance(spec, (tuple, list, dict)) and spec:
        spec = next(iter(spec.values())) if isinstance(spec, dict) else next((part for part in spec if part), None)
    shape = getattr(spec, "shape", None)
    try:
        return bool(shape is not None and len(shape) and shape[0] is None)
    except (TypeError, ValueError):  # of unknown rank
        return False


def static_leading(spec: Foreign) -> int:
    """Static leading dimension of the first component of an element spec, 0 if unknown."""
    while isinstance(spec, (tuple, list, dict)):
        if not spec:
            return 0
        spec = next(iter(spec.values())) if isinstance(spec, dict) else spec[0]
    shape = getattr(spec, "shape", None)
    try:
        first = shape[0] if shape is not None else None
        return int(first) if first is not None else 0
    except (IndexError, TypeError, ValueError):
        return 0


def name_of(function: Foreign, fallback: str = "") -> str:
    """Name of a function, or of the function inside a partial or another callable."""
    found = getattr(function, "__name__", None)
    if not isinstance(found, str):
        code = frames.code_of(function)
        found = code.co_name if code is not None else None
    return found or fallback or type(function).__name__


def defined(function: Foreign) -> dict[str, Foreign]:
    """``file``, ``line``, ``end_line``, ``own``, ``converted`` of a function, as fields of a name line; read-only."""
    code = frames.code_of(function)
    hit = _DEFINED.get(id(code))
    if hit is not None and hit[0] is code:
        return hit[1]
    file, first, last = frames.code_lines(function)
    generated = autograph.PREFIX in file
    if generated:
        file, first, last = autograph.origin(file, first, last)
        file = frames.absolute(file)
    found: dict[str, Foreign] = {"file": file, "line": first, "end_line": last}
    found["own"] = bool(file) and frames.is_own(file)
    if generated:
        found["converted"] = True
    if len(_DEFINED) >= MAX_SITES:
        _DEFINED.clear()
    _DEFINED[id(code)] = (code, found)
    return found


_DEFINED: dict[int, tuple[Foreign, dict[str, Foreign]]] = {}
"""Results of ``defined`` by code object: walking a code object's lines takes 20 us."""


def owner(file: str) -> str:
    """The owner of a function, by its file."""
    if not file:
        return "tensorflow"
    if frames.is_own(file):
        return "user"
    inside = file.replace(os.sep, "/").rpartition("-packages/")[2]
    root = inside.partition("/")[0]
    if root in ("keras", "tf_keras"):
        return "keras"
    if inside.startswith("tensorflow/python/data/"):
        return "tf.data"
    return "tensorflow" if root == "tensorflow" else "user"


def element_bytes(dataset: Foreign) -> int:
    """Size of a dataset's element by its types and shapes, open dimensions as one; 0: unknown, as of texts.

    Source: ``DatasetV2._flat_types`` and ``_flat_shapes``, TensorFlow 2.15 to 2.21; without them 0.
    """
    kinds, shapes = getattr(dataset, "_flat_types", ()), getattr(dataset, "_flat_shapes", ())
    found = 0
    for at, kind in enumerate(kinds):
        if shapes[at].rank is None or not (kind.is_integer or kind.is_floating or kind.is_bool or kind.is_complex):
            return 0
        size = kind.size
        for length in shapes[at].as_list():
            size *= length or 1
        found += size
    return int(found)


def element_parts(dataset: Foreign) -> int:
    """Number of arguments that the function of a map or filter on this dataset gets; 0: unknown.

    Source: ``structured_function._should_unpack``, TensorFlow 2.15 to 2.21: a plain tuple is unpacked, nothing else.
    """
    spec = getattr(dataset, "element_spec", None)
    if spec is None:
        return 0
    return len(spec) if type(spec) is tuple else 1
