"""Notes which line of user code, and which layer, made each op of a graph, at the moment the op is made.

TensorFlow keeps a stack trace at each op, but reading one for the first time makes it keep 17 kB of text for as long as
the graph lives, and takes 60 us. Walking the Python frames when the op is made takes 5 to 10 us, compared with some 700
us that TensorFlow takes to make the op, and leaves eight bytes (docs/decisions/0015).

The lines are those of user code inside the trace, the innermost first: our wrapper that runs the trace ends the walk.
Frames of AutoGraph's generated code are mapped to the user's lines. A path of lines is kept once, as its innermost line
and the path of its callers. Nothing here keeps a graph, an op or a layer alive.
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
"""Kinds of a frame's code. BOUNDARY: our wrapper of a trace; UPDATE: a library's method whose object makes the ops."""
MAX_OPS = 400_000
"""Ops noted in one process (3 MB); ops made after that have no line."""
MAX_CODES = 20_000
MAX_PATHS = 50_000
"""Paths of lines kept in one process (10 MB); ops made on further paths have no line."""
MAX_LINES = 32
"""Lines of user code kept of one path, the innermost ones."""
DEPTH = 400
"""Frames examined per op. A deep model nests some ten frames of Keras in each level."""
NOWHERE = ("", "", 0)


class GraphNotes:
    """Notes about one graph. Positions count from op number ``first``."""

    __slots__ = ("first", "owners", "paths", "spent_ns")

    def __init__(self, first: int) -> None:
        self.first = first
        self.paths = array("i")
        """Index into ``NodeNotes.paths`` of each op."""
        self.owners = array("i")
        """Id of the layer, optimizer or metric whose call made each op, 0 for none."""
        self.spent_ns = 0
        """Time spent on noting."""

    def at(self, number: int) -> tuple[int, int]:
        """(path, owner) of op ``number``."""
        position = number - self.first
        if 0 <= position < len(self.paths):
            return self.paths[position], self.owners[position]
        return 0, 0


class NodeNotes:
    """Notes about all graphs of one process. ``note`` is called for each op, on the thread that makes it."""

    def __init__(self, now: Callable[[], int], graphs: WeakIds) -> None:
        """Keep one ``GraphNotes`` for each graph in ``graphs``."""
        self._now = now
        self._graphs = graphs
        self._entries = graphs.entries
        self._boundaries: list[CodeType] = []
        self._updates: list[CodeType] = []
        self._codes: dict[int, tuple[int, CodeType]] = {}
        """Code objects by id, with their kind; kept alive so that an id is never reused."""
        self._known: dict[tuple[int, int], int] = {}
        """(id of code, line) -> place; -1 for generated code that comes from a library's line."""
        self._indexes: dict[tuple[str, str, int], int] = {NOWHERE: 0}
        self.places: list[tuple[str, str, int]] = [NOWHERE]
        """(file, function, line) of each place."""
        self._paths: dict[tuple[int, int], int] = {(0, 0): 0}
        """(path of the callers, place) -> path."""
        self.paths: list[tuple[int, int]] = [(0, 0)]
        """(path of the callers, place) of each path; path 0 has no line."""
        self.owner: Optional[Callable[[], int]] = None
        """Id of the layer that is being called on this thread."""
        self.updater: Optional[Callable[[FrameType], int]] = None
        """Id of the object whose method a frame of UPDATE runs; used if no layer is being called."""
        self._ops = 0

    def bound(self, code: CodeType) -> None:
        """Treat everything below a frame of ``code`` as inside a trace."""
        self._boundaries.append(code)

    def is_boundary(self, code: CodeType) -> bool:
        """Whether everything below a frame of ``code`` is inside a trace."""
        return any(code is boundary for boundary in self._boundaries)

    def updates(self, code: CodeType) -> None:
        """Treat ops made below a frame of ``code`` as made by the object whose method it is: see ``updater``."""
        self._updates.append(code)

    def note(self, graph: Graph, op: Op, frame: Optional[FrameType]) -> None:
        """Note an op that was made; ``frame`` is the frame that requested it."""
        start = self._now()
        entry = self._entries.get(id(graph))
        number = op._id
        if entry is not None:
            made: GraphNotes = entry[1]
        else:
            if self._ops >= MAX_OPS:
                self._count()
            made = GraphNotes(number)
            self._graphs.set(graph, made)
        paths = made.paths
        missing = number - made.first - len(paths)
        if missing < 0 or self._ops >= MAX_OPS:
            return
        if missing:
            paths.extend([0] * missing)
            made.owners.extend([0] * missing)
        path, update = self._path(frame)
        paths.append(path)
        owner = self.owner() if self.owner is not None else 0
        if not owner and update is not None and self.updater is not None:
            owner = self.updater(update)
        made.owners.append(owner)
        self._ops += 1
        made.spent_ns += self._now() - start

    def _count(self) -> None:
        """Count the ops of living graphs: dead graphs free their share."""
        self._ops = sum(len(entry[1].paths) for entry in list(self._entries.values()))

    def lines_of(self, path: int) -> list[tuple[str, str, int]]:
        """The lines of a path, the innermost first."""
        found = []
        while path:
            path, place = self.paths[path]
            found.append(self.places[place])
        return found

    def _path(self, frame: Optional[FrameType]) -> tuple[int, Optional[FrameType]]:
        """The path of a frame, and the innermost frame of UPDATE met before any line."""
        codes = self._codes
        update: Optional[FrameType] = None
        found: list[int] = []
        for _ in range(DEPTH):
            if frame is None:
                break
            code = frame.f_code
            known = codes.get(id(code))
            kind = known[0] if known is not None else self._classify(code)
            if kind:
                if kind == BOUNDARY:
                    break
                if kind == UPDATE:
                    update = update or (frame if not found else None)
                    frame = frame.f_back
                    continue
                place = self._known.get((id(code), frame.f_lineno))
                if place is None:
                    place = self._look(code, frame.f_lineno or 0, kind)
                if place >= 0 and found[-1:] != [place]:
                    found.append(place)
                    if len(found) == MAX_LINES:
                        break
            frame = frame.f_back
        return self._interned(found), update

    def _interned(self, places: list[int]) -> int:
        """The path of these places, the innermost first; 0 if it is new and there are too many."""
        path = 0
        for place in reversed(places):
            key = (path, place)
            inner = self._paths.get(key)
            if inner is None:
                if len(self.paths) >= MAX_PATHS:
                    return 0
                inner = self._paths[key] = len(self.paths)
                self.paths.append(key)
            path = inner
        return path

    def _classify(self, code: CodeType) -> int:
        file = code.co_filename
        if self.is_boundary(code):
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
            origin = autograph.place_of(code.co_filename, line)
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
