"""What the job's Python holds: the largest arrays, tensors and containers that its variables lead to.

Variables are those of the user's functions that run, of their modules, and the attributes of the user's objects. No
code of the job runs: only exact types are looked into, and attributes are read past the class. An array counts once,
for the outermost variable that leads to it; of long containers 64 elements are looked at and stand for all. A Keras
model counts with its variables and its optimizer's. Bounded by time and by the number of objects.

Frames are read through ``agent.core.other_frames``, so that nothing lives longer for it.
"""

from __future__ import annotations

import sys
import time
from collections import deque

from stepscope.agent.core import frames, keras_variables
from stepscope.agent.core.look_budget import Budget
from stepscope.agent.core.other_frames import variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Built = Callable[[Foreign], Optional[tuple[str, str, int]]]
    """The user's line that built a layer."""

LEAST_BYTES = 4 << 20
"""A value below this is left out."""
MOST_ROWS = 12
SAMPLED = 64
"""Elements of a longer container that are looked at."""
DEPTH = 5
MOST_FRAMES = 64
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "numpy", "jax", "torch", "stepscope")
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_SCALARS = (int, float, complex, str, bytes, bytearray, bool)


class Size:
    """Bytes of a value, and what it is made of."""

    __slots__ = ("bytes", "count", "dtype", "largest", "layer", "model", "shape", "variable")

    def __init__(self) -> None:
        self.bytes = 0.0
        self.count = 0
        """Elements, if it is a container: as many as ``bytes`` stands for, though another thread adds to it."""
        self.dtype = ""
        self.shape: tuple[int, ...] = ()
        self.largest = 0.0
        """Bytes of the array that describes a container: its largest."""
        self.variable = ""
        """Path of the largest array, if it is a variable of Keras."""
        self.layer: Foreign = None
        """Keras object that has this variable."""
        self.model = ""
        """Class of the outermost Keras object that leads to it."""

    def add(self, other: Size, times: float = 1.0) -> None:
        """Add a part."""
        self.bytes += other.bytes * times
        largest = other.largest or other.bytes
        if other.dtype and largest > self.largest:
            self.dtype, self.shape, self.largest = other.dtype, other.shape, largest
            self.variable, self.layer, self.model = other.variable, other.layer, other.model


def rows(stacks: Iterable[Optional[FrameType]], built: Optional[Built] = None) -> list[dict[str, object]]:
    """The largest values that the user's frames of these stacks (innermost frames) lead to, the largest first."""
    budget = Budget(time.thread_time_ns())
    found: list[tuple[int, dict[str, object]]] = []
    modules: set[int] = set()
    for leaf in stacks:
        for frame in reversed(_user_frames(leaf)):  # the outermost first: it owns what it hands down
            code = frame.f_code
            place = (frames.absolute(code.co_filename), frames.function_name(code), frame.f_lineno or 0)
            spaces = [] if code.co_name == "<module>" else [(variables(frame), place)]
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                line = place[2] if code.co_name == "<module>" else 0
                spaces.insert(0, (list(frame.f_globals.items()), (place[0], "<module>", line)))
            for named, at in spaces:
                for name, value in named:
                    if not name.startswith("__"):
                        found += _rows_of(name, value, at, budget, built)
    found.sort(key=lambda sized: -sized[0])
    return [row for _, row in found[:MOST_ROWS]]


def _user_frames(frame: Optional[FrameType]) -> list[FrameType]:
    found: list[FrameType] = []
    for _ in range(1000):
        if frame is None or len(found) >= MOST_FRAMES:
            break
        if frames.is_user_frame(frame):
            found.append(frame)
        frame = frame.f_back
    return found


def _rows_of(
    name: str, value: Foreign, at: tuple[str, str, int], budget: Budget, built: Optional[Built]
) -> Iterator[tuple[int, dict[str, object]]]:
    """(bytes, row) of one variable: of a user's object one for each attribute, after one for a model's variables."""
    inside = _attributes(value)
    known = id(value) in budget.seen
    if inside is None or (not known and keras_variables.is_keras(type(value))):
        row = _row(name, value, at, budget, built)
        if row is not None:
            yield row
    if inside is not None and not known:
        budget.seen.add(id(value))
        for attribute, part in inside:
            row = _row("%s.%s" % (name, attribute), part, at, budget, built)
            if row is not None:
                yield row


def _row(
    name: str, value: Foreign, at: tuple[str, str, int], budget: Budget, built: Optional[Built]
) -> Optional[tuple[int, dict[str, object]]]:
    size = _size(value, DEPTH, budget)
    if size.bytes < LEAST_BYTES:
        return None
    row: dict[str, object] = {"name": name[:80], "kind": type(value).__name__[:40], "bytes": int(size.bytes)}
    row.update(count=size.count, dtype=size.dtype, shape=list(size.shape), file=at[0], function=at[1], line=at[2])
    if size.model:
        row.update(model=size.model[:40], variable=size.variable[-80:], layer=type(size.layer).__name__[:40])
        row["built"] = built(size.layer) if built is not None else None
    return int(size.bytes), row


def _attributes(value: Foreign) -> Optional[list[tuple[str, Foreign]]]:
    """Attributes of an object of the user's class; None for any other value."""
    cls = type(value)
    if cls in _CONTAINERS or cls in _SCALARS or cls.__module__.partition(".")[0] in _FRAMEWORKS:
        return None
    return _own_attributes(value)


def _own_attributes(value: Foreign) -> Optional[list[tuple[str, Foreign]]]:
    if type(value) is type(sys):
        return None
    try:
        inside = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):  # no dictionary, or a class that is none of Python's
        return None
    return list(inside.items()) if type(inside) is dict else None


def _size(value: Foreign, depth: int, budget: Budget) -> Size:
    size = Size()
    cls = type(value)
    if cls in _SCALARS:
        size.bytes = float(sys.getsizeof(value))
        return size
    if id(value) in budget.seen or budget.spent():
        return size
    name = cls.__name__
    if name == "ndarray" and cls.__module__ == "numpy":
        _array(value, size, budget)
    elif cls.__module__.partition(".")[0] == "tensorflow":
        budget.seen.add(id(value))
        (_tensor if name == "EagerTensor" else _variable)(value, size)
    elif depth and cls in _CONTAINERS:
        budget.seen.add(id(value))
        _container(value, size, depth, budget)
    elif depth and keras_variables.is_keras(cls):
        _keras(value, size, budget)
    elif depth and not isinstance(value, type) and cls.__module__.partition(".")[0] not in _FRAMEWORKS:
        inside = _own_attributes(value)
        if inside is not None:
            budget.seen.add(id(value))
            for _, part in inside:
                size.add(_size(part, depth - 1, budget))
    return size


def _array(value: Foreign, size: Size, budget: Budget) -> None:
    """The memory that an array keeps: that of the array that it is a view of."""
    whole = value
    for _ in range(8):
        base = whole.base
        if type(base) is not type(value):
            break
        whole = base
    known = id(whole) in budget.seen
    budget.seen.add(id(whole))
    size.dtype, size.shape = str(value.dtype)[:40], tuple(int(n) for n in value.shape)
    mapped = whole.base is not None and type(whole.base).__name__ in ("mmap", "memmap")
    size.bytes = 0.0 if known or mapped else float(whole.nbytes)


def _tensor(value: Foreign, size: Size) -> None:
    """A tensor in the host's memory."""
    dtype = value.dtype
    shape = tuple(int(n) for n in value._shape_tuple())
    if "GPU" in str(value.backing_device):
        return
    count = 1
    for n in shape:
        count *= n
    size.dtype, size.shape = str(dtype.name), shape
    size.bytes = float(count * (dtype.size or 1))


def _variable(value: Foreign, size: Size) -> None:
    """A variable of TensorFlow in the host's memory."""
    known = keras_variables.sized(value)
    if known is not None:
        size.bytes, size.dtype, size.shape = known


def _keras(value: Foreign, size: Size, budget: Budget) -> None:
    """The variables of a Keras object, and of its optimizer."""
    for variable, layer, path in keras_variables.variables(value, budget):
        if variable is None or id(variable) in budget.seen:
            continue
        budget.seen.add(id(variable))
        part = Size()
        _variable(variable, part)
        part.variable, part.layer, part.model = path, layer, type(value).__name__
        size.add(part)


def _container(value: Foreign, size: Size, depth: int, budget: Budget) -> None:
    count = size.count = len(value)
    parts: list[Foreign]
    if type(value) is dict:
        parts = _some(value.values(), count)
    elif type(value) in (list, tuple) and count > SAMPLED:
        parts = [value[i * count // SAMPLED] for i in range(SAMPLED)]
    else:
        parts = _some(value, count)
    inside = Size()
    for part in parts:
        inside.add(_size(part, depth - 1, budget))
    size.add(inside, count / len(parts) if parts else 1.0)
    size.bytes += sys.getsizeof(value)


def _some(values: Iterable[Foreign], count: int) -> list[Foreign]:
    """Elements of a container that may change while it is read."""
    if count <= SAMPLED:
        return list(values)
    found = []
    for value in values:
        found.append(value)
        if len(found) >= SAMPLED:
            break
    return found
