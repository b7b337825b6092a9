"""Wraps a method with which the host reads a tensor or an array, or waits for it: SYNC.

Most calls take a microsecond and are only counted. But where nothing else that has a probe repeats, what is read is all
that shows the turns of the loop: then each read has its record (``Reads``).
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, Sites, drop_our_frame, outside
from stepscope.agent.quiet import Quiet
from stepscope.wire.kinds import Kind, Trait, kinds_with
from stepscope.wire.ring import count_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

LOOK_NS = 500_000_000
QUIET_NS = 3_000_000_000
"""Time without a call that may be a step after which each read has its record."""


class Reads:
    """How long a read takes at least to have its record."""

    __slots__ = ("_due_ns", "_quiet", "least_ns")

    def __init__(self, state: AgentState) -> None:
        self._quiet = Quiet(state, kinds_with(Trait.MARK))
        self._due_ns = 0
        self.least_ns = 0
        """0 while nothing else repeats."""

    def tick(self, now_ns: int) -> None:
        """Look, on the agent's thread, whether anything else repeats."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + LOOK_NS
            last = self._quiet.last(now_ns)
            self.least_ns = SHORT_NS if last and now_ns - last < QUIET_NS else 0


def wrap(
    state: AgentState, original: Callable[..., Foreign], method: str, reads: Reads, *, takes_more: bool = True
) -> Callable[..., Foreign]:
    """Add two clock readings and a comparison around the call: most calls take below a microsecond.

    ``takes_more``: the method has arguments.
    """
    text = method.strip("_")
    sites = Sites(state, ("sync", method), text=text)
    short_name = state.name(("sync", method), text)
    kind = int(Kind.SYNC)
    now = state.now
    write = state.write
    short = state.short
    caller = sys._getframe
    local = shared(state).local
    counted = state.records.counted
    key = count_key(short_name, kind, 0)

    def alone(self: Foreign) -> Foreign:
        start = now()
        try:
            value = original(self)
        except BaseException as error:
            write(start, now() - start, 0, short_name, kind, drop_our_frame(error), state.thread())
            raise
        spent = now() - start
        if spent >= reads.least_ns:
            write(start, spent, 0, sites.name(outside(caller(1))), kind, 0, state.thread())
            return value
        me = local.me
        me.thread = thread = me.thread or state.thread()
        entry = counted.get(key | thread << 8)
        if entry is None or entry.counted == entry.reported:
            short(short_name, kind, start, spent)
        else:
            entry.counted += 1
            entry.total_ns += spent
        return value

    def with_arguments(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        start = now()
        try:
            value = original(self, *args, **kwargs)
        except BaseException as error:
            write(start, now() - start, 0, short_name, kind, drop_our_frame(error), state.thread())
            raise
        spent = now() - start
        if spent < reads.least_ns:
            short(short_name, kind, start, spent)
        else:
            write(start, spent, 0, sites.name(outside(caller(1))), kind, 0, state.thread())
        return value

    wrapper = with_arguments if takes_more else alone
    if isinstance(getattr(original, "__qualname__", None), str):
        return functools.update_wrapper(wrapper, original)
    wrapper.__name__ = wrapper.__qualname__ = method  # a method in C++, whose attributes are no texts
    return wrapper
