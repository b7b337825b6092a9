"""Which ops give a result that they gave before: the same op, of the same inputs, with the same state.

Every result has a number. An op without state gets the number that the same op got before for inputs of the same
numbers. A variable has a version that each op that may write it raises; what reads a variable is an op of its version.
Random and other ops with state give a new number each time. So nothing is compared but numbers: no result is read.
A tensor that no op made since the start is known by what it holds (beyond ``MOST_BYTES`` by ``SLICES`` parts of it).

What is made of nothing but shapes and other small constants has a negative number: gradients are full of it, and
no user could keep it.
"""

from __future__ import annotations

import itertools
import weakref
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepscope.agent.core.foreign import Foreign

READS = frozenset(
    ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp", "Assert")
)
"""Ops with state that change none. Source: TensorFlow 2.15 to 2.21, resource_variable_ops."""
RESOURCE = 20
"""DT_RESOURCE of types.proto."""
BYTES_OF = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 14: 2, 17: 2, 19: 2, 22: 4, 23: 8}
"""Bytes of one number, by its type's number in types.proto. Others, such as text, have no known size."""
MOST_BYTES = 4 << 20
"""Size up to which a tensor that no noted op made is known by its whole content: 2.5 ms of the job's time."""
SLICES, SLICE_BYTES = 256, 1_024
"""Parts of a larger one, evenly spaced, by which it is known: 0.12 ms. A change of a few of its elements is missed."""
SMALL_BYTES = 256
"""Size up to which a tensor that no noted op made is a constant, and no data."""
ALL_BYTES = 32 << 20
"""The same of all such tensors together."""
MOST_EXAMINED = 16
"""Graph functions examined; further ones may write whatever they are given."""
MOST_NODES = 4_096
"""Nodes of a graph function up to which it is examined."""
PURE, WRITES = "pure", "writes"
NEW, KNOWN, CONSTANT = 0, 1, -1
BFLOAT16 = 14
"""DT_BFLOAT16: its numbers cannot be read as a buffer."""
LONG = 256
"""Length from which a text is known by its hash, so that nothing large is kept."""
MOST_PARTS = 1_024
"""Length of a list of inputs or attributes up to which it is compared."""
_PLAIN = frozenset((int, float, bool, complex, type(None)))


class SameOps:
    """The numbers of the results of one thread's ops. Holds no tensor alive."""

    def __init__(
        self,
        tensor: Foreign,
        stateful: Callable[[str], bool | None],
        inside: Callable[[str], Foreign],
        rules: dict[str, str],
    ) -> None:
        """``tensor``: class of eager tensors; ``stateful``: whether an op has state, None if it is a graph function;
        ``inside``: the ``FunctionDef`` of such a function; ``rules``: what is known of each op, which is kept.
        """
        self._tensor = tensor
        self._stateful = stateful
        self._inside = inside
        self._next: Callable[[], int] = itertools.count(1).__next__
        self._of: dict[int, tuple[weakref.ref[Foreign], Foreign]] = {}
        """Numbers of tensors by id, with what tells whether the id is still theirs."""
        self._results: dict[Foreign, Foreign] = {}
        """Number of a result by what made it."""
        self._versions: dict[int, int] = {}
        """Versions of resources, by number."""
        self._rules = rules
        self._data = False
        """Whether an input of the newest op is more than a constant."""
        self._met: set[str] = set()
        """Graph functions that were called."""
        self._examined = 0
        self._left = ALL_BYTES

    def note(self, op: str, parts: Iterable[Foreign], results: Foreign) -> int:
        """An op has run: ``parts`` are its inputs and attributes. Whether it gave these results before: NEW, KNOWN, or
        CONSTANT: it did, and they are made of constants alone.
        """
        resources: list[int] = []
        self._data = False
        key: Foreign = (op, *[self._part(part, resources) for part in parts])
        rule = self._rules.get(op) or self._rule(op)
        if rule is WRITES:
            for number in resources:
                self._versions[number] = self._versions.get(number, 0) + 1
            self._set(results, self._next())
            return NEW
        data = self._data or bool(resources)
        key = (key, *[self._versions.get(number, 0) for number in resources])
        known = self._results.get(key)
        number = known or self._results.setdefault(key, self._next() if data else -self._next())
        self._set(results, number)
        if known is None:
            return NEW
        return KNOWN if data else CONSTANT

    def number(self, thing: Foreign) -> Foreign:
        """The number of a tensor, or None."""
        entry = self._of.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def _rule(self, op: str) -> str:
        stateful = self._stateful(op)
        if stateful is None and op not in self._met:
            self._met.add(op)  # a graph function is examined once it is called again: that takes a millisecond or more
            return WRITES
        if stateful is None:
            self._examined += 1
            pure = self._examined <= MOST_EXAMINED and self._pure(op, set())
        else:
            pure = not stateful or op in READS
        self._rules[op] = rule = PURE if pure else WRITES
        return rule

    def _pure(self, op: str, seen: set[str]) -> bool:
        """Whether a graph function, with all that it calls, keeps no state but what it reads."""
        if op in seen:
            return True
        seen.add(op)
        nodes = self._inside(op).node_def
        if len(nodes) > MOST_NODES or len(seen) > MOST_NODES:
            return False
        for node in nodes:
            called = [a.func.name for a in node.attr.values() if a.HasField("func")]
            called += [f.name for a in node.attr.values() if a.HasField("list") for f in a.list.func]
            if called:
                if not all(self._pure(name, seen) for name in called):
                    return False
            elif node.op not in READS and self._stateful(node.op) is not False:
                return False
        return True

    def _part(self, part: Foreign, resources: list[int]) -> Foreign:
        kind = type(part)
        if kind is self._tensor:
            entry = self._of.get(id(part))
            number = entry[1] if entry is not None and entry[0]() is part else self._meet(part)
            if number in self._versions:
                resources.append(number)
            self._data = self._data or (number if type(number) is int else number[0]) > 0
            return number
        if kind in _PLAIN:
            return part
        if kind is str or kind is bytes:
            return part if len(part) < LONG else (kind, len(part), hash(part))
        if (kind is list or kind is tuple) and len(part) <= MOST_PARTS:
            return tuple([self._part(inner, resources) for inner in part])
        handle = getattr(part, "handle", None)
        if type(handle) is self._tensor:
            return ("variable", self._part(handle, resources))
        self._data = self._data or getattr(part, "nbytes", 0) > SMALL_BYTES
        return _constant(part)

    def _meet(self, tensor: Foreign) -> Foreign:
        """Number of a tensor that no noted op made."""
        kind = tensor._datatype_enum()
        number: Foreign = None
        if kind == RESOURCE:
            number = self._next()
            self._versions[number] = 0
        else:
            size = size_of(tensor)
            cost = size if size <= MOST_BYTES else SLICES * SLICE_BYTES
            if size >= 0 and cost <= self._left and kind != BFLOAT16 and "CPU" in tensor.device:
                self._left -= cost
                held = ("holds", kind, tuple(tensor.shape), content(memoryview(tensor)))
                new = self._next() if size > SMALL_BYTES else -self._next()
                number = self._results.setdefault(held, new)
        number = number or self._next()
        self._of[id(tensor)] = (weakref.ref(tensor), number)
        return number

    def _set(self, results: Foreign, number: Foreign) -> None:
        """Number the results of an op: several by their place."""
        if type(results) is self._tensor:
            if results._datatype_enum() == RESOURCE:
                self._versions.setdefault(number, 0)
            self._of[id(results)] = (weakref.ref(results), number)
        elif type(results) in (list, tuple):
            for place, result in enumerate(results):
                if type(result) is self._tensor:
                    self._set(result, (number, place))


def content(held: memoryview) -> int:
    """What tells a buffer from others of its type and shape: all of it, or ``SLICES`` parts of a large one."""
    if held.nbytes <= MOST_BYTES:
        return zlib.crc32(held)
    flat = held.cast("B")
    found = 0
    for at in range(0, held.nbytes - SLICE_BYTES, held.nbytes // SLICES):
        found = zlib.crc32(flat[at : at + SLICE_BYTES], found)
    return found


def _constant(part: Foreign) -> Foreign:
    """What tells an attribute or an array from others; if nothing does, what equals nothing."""
    dtype = getattr(part, "dtype", None)
    if hasattr(part, "tobytes") and dtype is not None and not getattr(dtype, "hasobject", True):
        if getattr(getattr(part, "flags", None), "c_contiguous", False):
            return (str(dtype), part.shape, content(memoryview(part.reshape(-1).view("u1"))))
        if part.nbytes < MOST_BYTES:
            return (str(dtype), part.shape, zlib.crc32(part.tobytes()))
    try:
        hash(part)
    except TypeError:
        return object()
    return part


def size_of(tensor: Foreign) -> int:
    """Bytes of an eager tensor, -1 if its type has no known size."""
    each = BYTES_OF.get(tensor._datatype_enum())
    return each * int(tensor._num_elements()) if each is not None else -1
