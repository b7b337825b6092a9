"""Looks for a Python function of the program, and exchanges its code.

It is looked for among the live functions, first in the program's modules, then everywhere; functions that are made
later are found when the agent's thread looks again.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import os
import sys
import types
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.trials.code import trampoline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType, FunctionType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.trials.effect import Effect

    MakeHandler = Callable[[Effect, FunctionType], trampoline.Handler]
    """Function that makes what is called in place of a function."""

AGAIN_NS = 1_000_000_000
"""Time between two looks at all live functions: one takes about 50 ms."""


def exchange(effect: Effect, make: MakeHandler) -> None:
    """Exchange the functions that the argument of ``effect`` names, as soon as they are there.

    Raises:
        ValueError: it names none.
    """
    if not effect.argument:
        raise ValueError("%s needs a function's name or FILE:LINE" % effect.name)
    effect.pending = True
    effect.missed("no live function %s" % effect.argument)
    search = Search(effect, make)
    effect.state.hooks.on_tick(search.tick)
    effect.on_steady = search.everywhere


class Search:
    """Looks for the function until it is found. ``tick`` on the agent's thread."""

    def __init__(self, effect: Effect, make: MakeHandler) -> None:
        self._effect = effect
        self._make = make
        self._found = False
        self._next_ns = 0

    def tick(self, now_ns: int) -> None:
        """Look at the program's modules, once a second at all live functions."""
        if self._found or self._effect.failure:
            return
        with self._effect.wall:
            self._look(_in_modules())
            if not self._found and now_ns >= self._next_ns:
                self._next_ns = now_ns + AGAIN_NS
                self.everywhere()

    def everywhere(self) -> None:
        """Look at all live functions."""
        if not self._found:
            self._look(_alive())

    def _look(self, functions: Iterable[FunctionType]) -> None:
        own = {id(found): found for found in functions if is_called_by_name(found.__code__)}
        wanted = matching(list(own.values()), self._effect.argument)
        for function in wanted:
            self._found = True
            _replace(self._effect, function, self._make)


def is_called_by_name(code: CodeType) -> bool:
    """Whether code of the program is that of a function that is there for more than one call.

    While a module, the body of a class or a comprehension runs, Python has a function for it as well.
    """
    if not (code.co_flags & inspect.CO_OPTIMIZED and frames.is_own(code.co_filename)):
        return False
    return not code.co_name.startswith("<") or code.co_name == "<lambda>"


def matching(functions: list[FunctionType], argument: str) -> list[FunctionType]:
    """The functions of a qualified name, or the innermost at FILE:LINE."""
    file, _, line = argument.rpartition(":")
    if not file or not line.isdigit():
        return [function for function in functions if _is_called(function, argument)]
    at = int(line)
    near = []
    for function in functions:
        code = function.__code__
        last = frames.last_line(code)
        if _is_file(code.co_filename, file) and code.co_firstlineno <= at <= last:
            near.append((last - code.co_firstlineno, function))
    least = min((lines for lines, _ in near), default=0)
    return [function for lines, function in near if lines == least]


def _is_called(function: FunctionType, name: str) -> bool:
    qualified = function.__qualname__.replace(".<locals>", "")
    return qualified == name or qualified.endswith("." + name)


def _is_file(path: str, wanted: str) -> bool:
    full = frames.absolute(path)
    return full == wanted or full.endswith(os.sep + wanted.lstrip("./"))


def _in_modules() -> Iterator[FunctionType]:
    """Functions in the program's modules and in classes of them. Lazy modules and proxies are not made to load."""
    for module in list(sys.modules.values()):
        if not issubclass(type(module), types.ModuleType):
            continue
        names = object.__getattribute__(module, "__dict__")
        file = names.get("__file__")
        if names.get("__name__") == "__main__" or (isinstance(file, str) and frames.is_own(file)):
            for value in list(names.values()):
                yield from _functions(value, depth=2)


def _functions(value: Foreign, depth: int) -> Iterator[FunctionType]:
    kind = type(value)
    if kind is types.FunctionType:
        while type(value) is types.FunctionType:
            yield value
            value = vars(value).get("__wrapped__")
    elif kind in (staticmethod, classmethod):
        yield from _functions(value.__func__, depth)
    elif kind is property:
        yield from _functions(value.fget, depth)
    elif issubclass(kind, type) and depth:
        for inner in list(vars(value).values()):
            yield from _functions(inner, depth - 1)


def _alive() -> list[FunctionType]:
    """All live functions. No other thread runs between asking for all objects and letting go of all that is not called.

    ``tuple(generator)`` on another thread fails with SystemError if it runs while somebody holds the tuple that it
    fills. One call in C asks, filters, and lets go, so the interpreter lock stays here; ``callable`` runs no code of
    the objects'.
    """
    asked = itertools.islice(iter(gc.get_objects, None), 1)
    called = list(filter(callable, itertools.chain.from_iterable(asked)))
    return [thing for thing in called if type(thing) is types.FunctionType]


def _replace(effect: Effect, function: FunctionType, make: MakeHandler) -> None:
    try:
        code = trampoline.code_for(function.__code__, make(effect, trampoline.copy_of(function)))
    except ValueError as error:
        effect.missed(str(error))
        effect.pending = False
        return
    effect.missed("%s is not called again" % effect.argument)
    before = function.__code__
    function.__code__ = code
    effect.state.hooks.on_uninstall(functools.partial(setattr, function, "__code__", before))
