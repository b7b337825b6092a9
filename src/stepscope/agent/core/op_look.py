"""The ops of one look at code that runs op by op (``agent.probes.tensorflow.eager_ops``), and what is said of them."""

from __future__ import annotations

import re

from stepscope.agent.core import frames
from stepscope.agent.core.same_ops import CONSTANT, KNOWN, NEW, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.same_ops import SameOps

    Parts = tuple[Foreign, ...]

LOOK_NS = 4_000_000_000
MOST_OPS = 4_000
LONG_NS = 50_000
"""Time from which an op's line is looked up, which takes 3 to 10 us."""
LARGE_NS, LARGE_BYTES = 100_000, 1_000_000
"""Time and size from which a result is followed to those that use it."""
PART = 4
"""A user that gives at most this fraction of what it takes uses a part of it."""
SELECTS = frozenset(
    ("StridedSlice", "Slice", "GatherV2", "GatherNd", "Gather", "StringSlice", "Split", "SplitV", "Unpack")
)
VIEWS = frozenset(("StridedSlice", "Slice", "Reshape", "Identity", "Squeeze", "ExpandDims"))
"""Ops that may pass on what they take."""
COPIES = frozenset(("ReadVariableOp", "Identity", "Copy", "Cast", "Transpose", "ConcatV2", "Pack", "Tile"))
"""Ops that compute nothing."""
UPDATES = frozenset(("ConcatV2", "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub"))
"""Ops that copy what they take to add to it, or to change a part."""
MOST_ROWS = 48
MANY = 12
"""Known ops in a row from which they matter although all of them are short."""
NOWHERE = ("", "", 0)
PAUSE_NS = 50_000_000
"""Time between two ops from which it is the user's own: reading a file, waiting."""
_INFERENCE = re.compile(r"^__(?:inference|forward|backward)_(.*?)_\d+$")
FIELDS = ("count", "ns", "again", "again_ns", "bytes", "part", "part_ns", "part_bytes")


class OpsOfLine:
    """The ops of one type and line; fields as in ``model.log.eager.EagerOp``."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.count = self.ns = self.again = self.again_ns = self.bytes = 0
        self.part = self.part_ns = self.part_bytes = 0


class LargeResult:
    """A large result."""

    __slots__ = ("ns", "part", "row", "size", "whole")

    def __init__(self, row: OpsOfLine, ns: int, size: int) -> None:
        self.row, self.ns, self.size = row, ns, size
        self.part = 0
        """Bytes that its users take of it, if all take parts; 0: none has."""
        self.whole = False
        """Whether some user takes all of it."""


class Look:
    """One look at the ops of one thread. ``note`` is called by that thread alone."""

    def __init__(self, now: Callable[[], int], thread: int, most: int, same: SameOps, scope: Callable[[], str]) -> None:
        """``most``: number of ops after which it ends; ``scope``: names of what is around the running op."""
        self.thread, self.most = thread, most
        self.began = self.ended = now()
        self.ops = self.own_ns = self.ns = self.again_ns = 0
        self.over = False
        self._now = now
        self._same = same
        self._rows: dict[tuple[str, tuple[str, str, int], str], OpsOfLine] = {}
        self._made: dict[Foreign, LargeResult] = {}
        self._all: list[LargeResult] = []
        self._scope = scope
        self._last_end = 0
        self._turns: list[list[int]] = []
        """For each op: its end; what ``SameOps.note`` says, CONSTANT also of a mere copy of what was known; the time
        that keeping what was known saves; ``own_ns`` so far."""
        self._run: list[tuple[OpsOfLine, list[int]]] = []
        """The newest ops, all of them known, that no op interrupts which gives something new."""
        self._long = False
        """Whether one of them is long."""

    def note(self, op: str, parts: Parts, results: Foreign, start: int, end: int, frame: FrameType) -> None:
        """An op has run."""
        known = self._same.note(op, parts, results)
        if known == KNOWN and op in COPIES:
            known = CONSTANT
        spent = end - start
        place, scope = NOWHERE, ""
        if spent >= LONG_NS:
            place, scope = (frames.user_stack(1, frame) or (NOWHERE,))[-1], self._scope()
        row = self._rows.get((op, place, scope))
        if row is None:
            row = self._rows[op, place, scope] = OpsOfLine()
        row.count += 1
        row.ns += spent
        self.ops += 1
        self.ns += spent
        turn = [end, known, 0, self.own_ns]
        self._turns.append(turn)
        if known == KNOWN:
            gap = start - self._last_end if self._run else PAUSE_NS
            turn[2] = spent + (gap if gap < PAUSE_NS else 0)
            self._run.append((row, turn))
            self._long = self._long or spent >= LONG_NS
        elif known == NEW:
            self._close()
        if self._made or spent >= LARGE_NS:
            self._follow(op, parts, results, row, spent)
        self._last_end = self.ended = self._now()
        self.own_ns += self._last_end - end
        self.over = self.ops >= self.most or end - self.began > LOOK_NS

    def _close(self) -> None:
        """A run of known ops has ended. Short ones are shapes and constants, which no user would keep."""
        if self._run and (self._long or len(self._run) >= MANY):
            for row, turn in self._run:
                row.again += 1
                row.again_ns += turn[2]
                self.again_ns += turn[2]
        else:
            for _, turn in self._run:
                turn[2] = 0
        self._run, self._long = [], False

    def _follow(self, op: str, parts: Parts, results: Foreign, row: OpsOfLine, spent: int) -> None:
        single = results[0] if type(results) is list and len(results) == 1 else results
        size = -1
        used = [made for made in (self._made.get(self._same.number(part)) for part in tensors(parts)) if made]
        if used or spent >= LARGE_NS:
            size = _size(single)
        for made in used:
            if op in SELECTS and size * PART <= made.size:
                made.part += max(1, size)
            elif op in VIEWS:
                self._made[self._same.number(single) or 0] = made
            elif made.row is row and op in UPDATES:
                made.part += max(1, abs(size - made.size))
            else:
                made.whole = True
        if spent < LARGE_NS or size < LARGE_BYTES:
            return
        row.bytes = max(row.bytes, size)
        number = self._same.number(single)
        if number is not None and (op in COPIES or op in UPDATES):
            # The same copied again is another copy, with its own users.
            self._made[number] = made = LargeResult(row, spent, size)
            self._all.append(made)

    def told(self) -> dict[str, object]:
        """The fields of its line; the look is over."""
        self._close()
        for made in self._all:
            if 0 < made.part * PART <= made.size and not made.whole:
                made.row.part += 1
                made.row.part_ns += made.ns
                made.row.part_bytes = max(made.row.part_bytes, made.part)
        rows = sorted(self._rows.items(), key=lambda item: -max(item[1].ns, item[1].again_ns))
        line: dict[str, object] = {"t": "eager_ops", "at": self.began, "dur": self.ended - self.began}
        line.update(own=self.own_ns, thread=self.thread, ops=self.ops, ns=self.ns, again_ns=self.again_ns)
        turns = self._turns[len(self._turns) // 2 :]
        if turns:
            (began, _, _, own), (ended, _, _, all_own) = turns[0], turns[-1]
            line.update(late_ns=ended - began - (all_own - own), late_again_ns=sum(turn[2] for turn in turns[1:]))
            line.update(late=sum(turn[1] != CONSTANT for turn in turns), fresh=sum(turn[1] == NEW for turn in turns))
        line["rows"] = [
            {"op": _INFERENCE.sub(r"\1", op), "file": place[0], "function": place[1], "line": place[2], "scope": scope}
            | {field: getattr(row, field) for field in FIELDS}
            for (op, place, scope), row in rows[:MOST_ROWS]
        ]
        return line


def tensors(parts: Foreign) -> list[Foreign]:
    """The inputs among the parts of an op, those in lists too."""
    found: list[Foreign] = []
    for part in parts:
        if type(part) in (list, tuple):
            found.extend(part)
        else:
            found.append(part)
    return found


def _size(results: Foreign) -> int:
    """Bytes of the results of an op, which may have none."""
    if results is None or type(results) in (list, tuple):
        return sum(map(_size, results or ()))
    return size_of(results)
