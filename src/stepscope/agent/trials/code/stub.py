"""stub:FUNCTION, stub:FILE:LINE: a Python function of the program returns its last result, after some real calls.

A function that TensorFlow traces keeps its code there. A generator gives its first items again and again.
"""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING

from stepscope.agent.trials.code import functions
from stepscope.agent.trials.inputs import held
from stepscope.agent.trials.support import in_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FunctionType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.code.trampoline import Handler
    from stepscope.agent.trials.effect import Effect

REAL = 5
"""Real calls before the first that only returns the last result."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: not in a module, but wherever the function is."""
    functions.exchange(effect, _handler)
    return []


def _handler(effect: Effect, real: FunctionType) -> Handler:
    return (_of_generator if inspect.isgeneratorfunction(real) else _of_function)(effect, real)


def _of_function(effect: Effect, real: FunctionType) -> Handler:
    calls = 0
    last: Foreign = None

    def handle(args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> Foreign:
        nonlocal calls, last
        if in_trace():
            effect.missed("%s runs only while a graph is made" % effect.argument)
            return real(*args, **kwargs)
        if calls >= REAL and not effect.passed():
            effect.took()
            return last
        result = real(*args, **kwargs)
        calls += 1
        last = result
        return result

    return handle


def _of_generator(effect: Effect, real: FunctionType) -> Handler:
    def handle(args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> Foreign:
        return _held_items(effect, real(*args, **kwargs))

    return handle


def _held_items(effect: Effect, items: Iterator[Foreign]) -> Iterator[Foreign]:
    """The first items, then the same again and again: as many as an epoch of unknown length has.

    While the trial is off, they come from the generator itself.
    """
    first = []
    for item in itertools.islice(items, held.FEW):
        first.append(item)
        yield item
    if len(first) < held.FEW:
        return
    again = itertools.islice(itertools.cycle(first), held.LONG - held.FEW)
    while True:
        off = effect.passed()
        if not off:
            effect.took()
        try:
            item = next(items if off else again)
        except StopIteration:
            return
        yield item
