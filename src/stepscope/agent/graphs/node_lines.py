"""Which line of user code, and which layer, made each op of a graph: noted when the op is made.

TensorFlow keeps a stack trace at each op, but the first look at one makes it keep 17 kB of text for as long as the
graph lives, and takes 60 us. Walking the Python frames when the op is made takes 5 to 10 us, next to some 700 us that
TensorFlow takes to make it, and leaves eight bytes (docs/decisions/0015).

The line is the innermost one of user code that runs inside of the trace: a wrapper of ours that runs the trace ends the
walk. Frames of AutoGraph's generated code are told by the user's lines. Nothing here holds a graph, an op or a layer.
"""

from __future__ import annotations

from array import array

from stepscope.agent.core import autograph, frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Graph = Foreign
    Op = Foreign

    from stepscope.agent.core.weak_ids import WeakIds

LIBRARY, USER, BOUNDARY, GENERATED, UPDATE = range(5)
"""What a frame's code is; BOUNDARY: our wrapper of a trace, UPDATE: a library's method whose object makes the ops."""
MAX_OPS = 400_000
"""Ops noted in one process (3 MB); what is made beyond it has no line."""
MAX_CODES = 20_000
DEPTH = 400
"""Frames looked at. A deep model nests some ten frames of Keras in each level."""
NOWHERE = ("", "", 0)


class Made:
    """What was noted of one graph. Positions count from op number ``first``."""

    __slots__ = ("first", "owners", "places", "spent_ns")

    def __init__(self, first: int) -> None:
        self.first = first
        self.places = array("i")
        """For each op: index into ``Lines.places``."""
        self.owners = array("i")
        """For each op: id of the layer, optimizer or metric whose call made it, 0 for none."""
        self.spent_ns = 0
        """What noting took."""

    def at(self, number: int) -> tuple[int, int]:
        """(place, owner) of op ``number``."""
        position = number - self.first
        if 0 <= position < len(self.places):
            return self.places[position], self.owners[position]
        return 0, 0


class Lines:
    """Notes of all graphs of one process. ``note`` is called for each op, on the thread that makes it."""

    def __init__(self, now: Callable[[], int], graphs: WeakIds) -> None:
        """Keep ``Made`` by graph in ``graphs``."""
        self._now = now
        self._graphs = graphs
        self._entries = graphs.entries
        self._boundaries: list[CodeType] = []
        self._updates: list[CodeType] = []
        self._codes: dict[int, tuple[int, CodeType]] = {}
        """By id of a code object, which is kept so that its id is not given to another one."""
        self._known: dict[tuple[int, int], int] = {}
        """(id of code, line) -> place; generated code whose line is a library's: -1."""
        self._indexes: dict[tuple[str, str, int], int] = {NOWHERE: 0}
        self.places: list[tuple[str, str, int]] = [NOWHERE]
        """(file, function, line)."""
        self.owner: Optional[Callable[[], int]] = None
        """Id of the layer that is being called on this thread."""
        self.updater: Optional[Callable[[FrameType], int]] = None
        """Id of the object whose method a frame of UPDATE runs: asked where no layer is being called."""
        self._ops = 0

    def bound(self, code: CodeType) -> None:
        """What runs below a frame of ``code`` runs inside of a trace."""
        self._boundaries.append(code)

    def updates(self, code: CodeType) -> None:
        """What runs below a frame of ``code`` is made by the object whose method it is: see ``updater``."""
        self._updates.append(code)

    def note(self, graph: Graph, op: Op, frame: Optional[FrameType]) -> None:
        """An op was made; ``frame`` is the one that asked for it."""
        start = self._now()
        entry = self._entries.get(id(graph))
        number = op._id
        if entry is not None:
            made: Made = entry[1]
        else:
            if self._ops >= MAX_OPS:
                self._count()
            made = Made(number)
            self._graphs.set(graph, made)
        places = made.places
        missing = number - made.first - len(places)
        if missing < 0 or self._ops >= MAX_OPS:
            return
        if missing:
            places.extend([0] * missing)
            made.owners.extend([0] * missing)
        place, update = self._place(frame)
        places.append(place)
        owner = self.owner() if self.owner is not None else 0
        if not owner and update is not None and self.updater is not None:
            owner = self.updater(update)
        made.owners.append(owner)
        self._ops += 1
        made.spent_ns += self._now() - start

    def _count(self) -> None:
        """Count the ops of the graphs that live: what is gone makes room."""
        self._ops = sum(len(entry[1].places) for entry in list(self._entries.values()))

    def _place(self, frame: Optional[FrameType]) -> tuple[int, Optional[FrameType]]:
        """The place, and the innermost frame of UPDATE on the way to it."""
        codes = self._codes
        update: Optional[FrameType] = None
        for _ in range(DEPTH):
            if frame is None:
                return 0, update
            code = frame.f_code
            known = codes.get(id(code))
            kind = known[0] if known is not None else self._classify(code)
            if kind:
                if kind == BOUNDARY:
                    return 0, update
                if kind == UPDATE:
                    update = update or frame
                    frame = frame.f_back
                    continue
                place = self._known.get((id(code), frame.f_lineno))
                if place is None:
                    place = self._look(code, frame.f_lineno or 0, kind)
                if place >= 0:
                    return place, update
            frame = frame.f_back
        return 0, update

    def _classify(self, code: CodeType) -> int:
        file = code.co_filename
        if any(code is boundary for boundary in self._boundaries):
            kind = BOUNDARY
        elif any(code is update for update in self._updates):
            kind = UPDATE
        elif frames.is_own(file):
            kind = USER
        else:
            kind = GENERATED if autograph.PREFIX in file else LIBRARY
        if len(self._codes) >= MAX_CODES:
            self._codes.clear()
            self._known.clear()
        self._codes[id(code)] = (kind, code)
        return kind

    def _look(self, code: CodeType, line: int, kind: int) -> int:
        place = (code.co_filename, frames.function_name(code), line)
        if kind == GENERATED:
            origin = autograph.origins().get((code.co_filename, line))
            place = (str(origin[0]), str(origin[2] or ""), int(origin[1])) if origin is not None else NOWHERE
        if kind == GENERATED and not frames.is_own(place[0]):
            index = -1
        else:
            place = (frames.absolute(place[0]), place[1], place[2])
            index = self._indexes.setdefault(place, len(self.places))
            if index == len(self.places):
                self.places.append(place)
        self._known[id(code), line] = index
        return index
