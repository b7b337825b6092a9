"""slopes:FUNCTION, slopes:FILE:LINE: calls of a Python function of the program take a little longer, in some blocks.

What the function is given and gives back stays as it is. A generator is delayed at each of its items.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import zlib
from typing import TYPE_CHECKING

from stepscope.agent.trials.code import functions
from stepscope.agent.trials.slopes import tally as numbers
from stepscope.agent.trials.slopes.preparing import Delays
from stepscope.agent.trials.support import in_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FunctionType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.code.trampoline import Handler
    from stepscope.agent.trials.effect import Effect
    from stepscope.agent.trials.slopes.tally import Tally

LEAST_NS = 50_000
"""Shortest delay: a sleep lasts some 60 us longer than asked for, and a shorter one would be mostly that. Calls that
are to take less longer are delayed together, at one of them; what was too long counts for the next."""
WORK = bytes(1 << 16)
"""What is summed up to compute without the interpreter lock: zlib lets go of it for more than 5 KiB."""
HELD_S = 0.001


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: not in a module, but wherever the function is."""
    tally = numbers.Tally()
    effect.delays = Delays(effect, tally)
    functions.exchange(effect, functools.partial(_handler, tally))
    return []


def _handler(tally: Tally, effect: Effect, real: FunctionType) -> Handler:
    timed = functools.partial(_timed, tally)
    generates = inspect.isgeneratorfunction(real)

    def handle(args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> Foreign:
        if in_trace():
            effect.missed("%s runs only while a graph is made" % effect.argument)
            return real(*args, **kwargs)
        return items_of(timed, real(*args, **kwargs)) if generates else timed(real, args, kwargs)

    return handle


class TimedItems:
    """A generator whose items are timed; what it is sent and thrown passes, and so does its end."""

    __slots__ = ("_made", "_timed")

    def __init__(self, timed: Callable[..., Foreign], made: Generator[Foreign, Foreign, Foreign]) -> None:
        self._timed, self._made = timed, made

    def __iter__(self) -> TimedItems:
        return self

    def __next__(self) -> Foreign:
        """The next item."""
        return self._timed(self._made.__next__, (), {})

    def send(self, value: Foreign) -> Foreign:
        """The item for ``value``."""
        return self._timed(self._made.send, (value,), {})

    def throw(self, *error: Foreign) -> Foreign:
        """The item for an exception."""
        return self._timed(self._made.throw, error, {})

    def close(self) -> None:
        """Close it."""
        self._made.close()


def items_of(timed: Callable[..., Foreign], made: Generator[Foreign, Foreign, Foreign]) -> Foreign:
    """The items of a generator, as one."""
    return (yield from TimedItems(timed, made))


def _timed(
    tally: Tally, real: Callable[..., Foreign], args: tuple[Foreign, ...], kwargs: dict[str, Foreign]
) -> Foreign:
    """Call ``real``, delayed if delays are on, and count it."""
    own, words, tid = tally.own, tally.words, threading.get_native_id()
    if own.inside == tid:
        return real(*args, **kwargs)
    if own.at < 0 or words[own.at + numbers.TID] != tid:  # a thread that is new, or of a process that was forked
        own.at = tally.claim(tid)
    at = own.at
    if at < 0:
        return real(*args, **kwargs)
    own.inside = tid
    words[at + numbers.ACTIVE] = 1
    try:
        _delay(tally, at)
        began, cpu = time.perf_counter_ns(), time.thread_time_ns()
        try:
            return real(*args, **kwargs)
        finally:
            words[at + numbers.CPU] += time.thread_time_ns() - cpu
            words[at + numbers.WALL] += time.perf_counter_ns() - began
            words[at + numbers.CALLS] += 1
    finally:
        words[at + numbers.ACTIVE] = 0
        own.inside = 0


def _delay(tally: Tally, at: int) -> None:
    """Wait as the head says; ``at``: where this thread's numbers begin."""
    own, words = tally.own, tally.words
    while words[numbers.HELD_UNTIL] > time.monotonic_ns():
        time.sleep(HELD_S)
    wanted = words[numbers.DELAY]
    if not wanted:
        own.owed = 0
        return
    words[at + numbers.DELAYS] += 1
    own.owed = max(own.owed, -wanted) + wanted
    if own.owed >= LEAST_NS:
        began = time.perf_counter_ns()
        _wait(words[numbers.HOW], began, own.owed)
        took = time.perf_counter_ns() - began
        own.owed -= took
        words[at + numbers.ADDED] += took


def _wait(how: int, began_ns: int, for_ns: int) -> None:
    if how == numbers.SLEEP:
        time.sleep(for_ns * 1e-9)
        return
    end_ns = began_ns + for_ns
    if how == numbers.BUSY_HELD:
        while time.perf_counter_ns() < end_ns:
            pass
        return
    while time.perf_counter_ns() < end_ns:
        zlib.crc32(WORK)
