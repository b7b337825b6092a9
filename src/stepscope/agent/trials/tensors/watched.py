"""Tensors that the value trial watches, and what has been seen of each."""

from __future__ import annotations

import operator
import zlib

from stepscope.agent.trials.tensors import array_digest
from stepscope.wire.trials import EAGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

MOST_RUNS = 64
"""Runs of an op that are looked at in one step: an op in a loop runs often."""
IN_ONE_STEP, LOOKED_AT = 2, 6
"""Runs of an op, in one step and in all, whose zeros, rows and range are counted; checksums are taken of all."""
AS_IT_COMES, SAME_BATCH, WATCHING, OFF = "as-it-comes", "same-batch", "watching", "off"
"""Phases of a call: a usual one; one with the batch of the call before; one of which only the input is looked at."""


class WatchedCall:
    """One call of a compiled function, or run of a session, by the program."""

    __slots__ = ("key", "number", "phase")

    def __init__(self, key: str, number: int, phase: str) -> None:
        self.key = key
        """The function."""
        self.number = number
        self.phase = phase


NO_CALL = WatchedCall("", 0, OFF)


class Watched:
    """A tensor of a graph, or an argument of the program's calls."""

    def __init__(self, number: int, op_type: str, name: str, dtype: str) -> None:
        self.number = number
        self.type = op_type
        """Type of its op; "" for an argument."""
        self.name = name
        self.dtype = dtype
        self.static: dict[str, object] = {}
        """Fields of its line that are known when it is made."""
        self.alive = True
        """Whether something of the program needs it."""
        self.shape: tuple[int, ...] = ()
        self.key = ""
        self.natural: dict[int, list[int]] = {}
        """Checksums by call, of calls as they come."""
        self.same: dict[int, list[int]] = {}
        """The same of calls on the same batch."""
        self.runs = 0
        """Runs in calls as they come, those included that were not looked at."""
        self._again = 0
        """Runs of eager code that gave a value that was known."""
        self._looks = 0
        self._zeros = self._rows = self._padding = 0.0
        self._low = self._high = 0
        self.rows: set[int] = set()
        """Checksums of rows, of an argument."""
        self.recurring: list[float] = []
        """Share of rows of each batch that earlier batches had."""

    def see(self, call: WatchedCall, array: Foreign) -> None:
        """Look at a value."""
        self.key = call.key
        kept = self.same if call.phase == SAME_BATCH else self.natural
        sums = kept.setdefault(call.number, [])
        self.runs += call.phase == AS_IT_COMES
        if len(sums) >= MOST_RUNS:
            return
        sums.append(array_digest.checksum(array))
        self.shape = tuple(array.shape)
        if call.phase == AS_IT_COMES and self._looks < LOOKED_AT and len(sums) <= IN_ONE_STEP:
            self._look(array)

    def see_rows(self, array: Foreign) -> None:
        """Look whether the rows of a batch were in earlier ones."""
        sums = array_digest.row_sums(array)
        if sums:
            self.recurring.append(sum(one in self.rows for one in sums) / len(sums))
            self.rows.update(sums)

    def see_eagerly(self, checksum: int, shape: tuple[int, ...], *, again: bool) -> None:
        """Note a run of eager code."""
        self.shape = shape
        self.runs += 1
        self._again += again
        self.natural[self.runs] = [checksum]
        self.natural.pop(self.runs - MOST_RUNS, None)

    def _look(self, array: Foreign) -> None:
        low, high = array_digest.span(array)
        self._low, self._high = min(low, self._low), max(high, self._high)
        self._zeros += array_digest.zeros_ratio(array)
        self._rows += array_digest.equal_rows_ratio(array)
        self._padding += array_digest.padding_ratio(array)
        self._looks += 1

    @property
    def varies_with_batch(self) -> bool:
        """Whether it has been seen on the same batch, and was the same there but not otherwise."""
        return len(self.same) > 1 and self._distinct(self.same) == 1 < self._distinct(self.natural)

    @staticmethod
    def _distinct(calls: dict[int, list[int]]) -> int:
        return len({tuple(sums) for sums in calls.values()})

    def line(self, at: int) -> dict[str, object]:
        """The line of the log."""
        sums = [one for call in sorted(self.natural) for one in self.natural[call]]
        again = sum(sum(map(operator.eq, calls, calls[1:])) for calls in self.natural.values())
        eager = self.key == EAGER
        looks = self._looks or 1
        return {
            "t": "value",
            "at": at,
            "number": self.number,
            "function": self.key,
            "type": self.type,
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            **self.static,
            "alive": self.alive,
            "steps": len(self.natural),
            "runs": self.runs,
            "looked_at": self.runs if eager else len(sums),
            "again": self._again if eager else again,
            "distinct": len(set(sums)),
            "step_distinct": self._distinct(self.natural),
            "same_steps": len(self.same),
            "same_distinct": self._distinct(self.same),
            "signature": "%08x" % zlib.crc32(repr(sums).encode()),
            "zeros_ratio": round(self._zeros / looks, 6),
            "equal_rows_ratio": round(self._rows / looks, 4),
            "padding_ratio": round(self._padding / looks, 4),
            "low": self._low,
            "high": self._high,
        }
