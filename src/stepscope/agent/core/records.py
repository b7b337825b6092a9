"""The records of this process: the ring, and calls that are counted instead of written.

``write`` stays the same object for as long as the process lives; only its target changes: the ring; nothing once the
agent has left; in a forked child that has recorded nothing yet, the code that makes its ring.
"""

from __future__ import annotations

import itertools

from stepscope.agent.core.short_calls import ShortCalls
from stepscope.wire.doing import CurrentActivity
from stepscope.wire.place import make_ring
from stepscope.wire.ring import DEFAULT_SLOTS, HEADER_BYTES, RECORD_BYTES, Thinning, make_write, tapped
from stepscope.wire.seals import Sealer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

    from stepscope.wire.ring import RingWriter, Tap, Write

_CHILD_SLOTS_DIVISOR = 8
"""Divisor of a forked child's ring size: there may be many, and each takes its memory at its first record."""


class Records:
    """Writes the records of one process."""

    def __init__(self, thread: Callable[[], int], wake: Callable[[], object]) -> None:
        """``thread``: the number of the calling thread; ``wake``: makes the log and the ring of a forked child."""
        self._wake = wake
        self._scratch = bytearray(HEADER_BYTES + RECORD_BYTES)
        self._ring: Optional[RingWriter] = None
        self._sealer: Optional[Sealer] = None
        self._claim: Callable[[], int] = itertools.count().__next__
        self._thin: Optional[Thinning] = None
        self._tap: Optional[Tap] = None
        self._left = False
        """Whether the agent has left for good."""
        write, self._rebind = make_write(self._scratch, 1, self._claim)
        self.write: Write = write
        """Function ``write(start_ns, dur_ns, arg, name, kind, flags, thread)`` that writes one record. Never raises."""
        self._short = ShortCalls(write, thread)
        self.short = self._short.add
        """Function ``short(name, kind, start_ns, dur_ns)`` for a call too short to record, see ``core.short_calls``."""
        self.doing = CurrentActivity()
        """What the process does at the moment, in a word of the ring."""
        self.counted = self._short.entries
        """Entries that ``short`` counts into, by ``wire.ring.count_key``; always the same object."""

    def open(self, folder: str, config: dict[str, Any], origin: str) -> RingWriter:
        """Make the ring of the process; records go there after ``bind``.

        Raises:
            OSError: no place for it.
        """
        slots = int(config.get("slots") or DEFAULT_SLOTS)
        if origin == "fork":
            slots //= _CHILD_SLOTS_DIVISOR
        self._ring = make_ring(folder, list(config.get("ring_dirs") or ()), slots)
        self._sealer = Sealer(self._ring)
        return self._ring

    def bind(self) -> None:
        """Point ``write`` at the ring, with the present thinning and tap."""
        if self._ring is not None and not self._left:
            place = (self._ring.buffer, self._ring.slots, self._ring.claim)
            self._rebind(*place, self._thin if self._tap is None else None, tapped(self._tap))

    def unbind(self) -> None:
        """Discard everything written from now on."""
        self._rebind(self._scratch, 1, self._claim, None)

    def leave(self) -> None:
        """Leave for good: ``bind`` no longer has a target for ``write``."""
        self._left = True
        self.unbind()

    def after_fork(self) -> None:
        """In a forked child: leave the parent's ring to the parent; the first record makes a new one. Cheap."""
        self._rebind(self._scratch, 1, self._first, None)
        self._ring = self._sealer = None
        self._thin = self._tap = None
        self._short.reset()

    def _first(self) -> int:
        """Index of a forked child's first record, after making its ring and log."""
        self._wake()
        return self._ring.claim() if self._ring is not None else self._claim()

    def written(self) -> int:
        """Records written so far by this process."""
        return self._ring.written() if self._ring is not None else 0

    def calls(self) -> tuple[int, int]:
        """(records written, short calls counted) so far."""
        return self.written(), self._short.counted()

    def since(self, index: int, most: int) -> tuple[int, list[tuple[int, ...]]]:
        """(index of the next record, fields of the complete records from ``index`` on), the newest ``most`` at most."""
        return self._ring.since(index, most) if self._ring is not None else (index, [])

    def newest_kinds(self, count: int) -> list[int]:
        """Kinds of the newest ``count`` records."""
        return self._ring.newest_kinds(count) if self._ring is not None else []

    def thinnable(self) -> int:
        """Number of calls subject to thinning so far, written or counted."""
        return self._short.thinnable()

    def thin(self, every: int, kinds: frozenset[int], always: int, mark: int) -> None:
        """Write every ``every``-th record of ``kinds`` from now on (1: all); see ``wire.ring.Thinning``."""
        self._thin = Thinning(self.counted, every, kinds, always, mark) if every > 1 else None
        self.bind()

    def tap(self, function: Optional[Tap]) -> None:
        """Call ``function`` with the fields of every record, on the thread that writes it; None ends that.

        Nothing is thinned meanwhile. Several threads write records. Exceptions of ``function`` are swallowed and lost.
        """
        self._tap = function
        self.bind()

    def flush(self) -> None:
        """Write the calls that ``short`` has counted."""
        self._short.flush()

    def seal(self, now_ns: int) -> None:
        """On the agent's thread: give the newest records their checksum (``wire.seals``)."""
        if self._sealer is not None:
            self._sealer.tick(now_ns)

    def seal_rest(self) -> None:
        """At the end, when the agent's thread no longer seals: give the last records their checksum."""
        if self._sealer is not None:
            self._sealer.seal()

    def flush_regularly(self) -> None:
        """Flush from the agent's thread, which is from then on the only one to do so."""
        self._short.ticking = True
        self._short.flush()
