"""Code that stands in for a function's code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import cast

import pytest

from stepscope.agent.trials.code import trampoline
from stepscope.agent.trials.code.functions import matching


def exchanged(function: Callable[..., object], handler: Callable[..., object]) -> FunctionType:
    """The function, with a handler in place of its code."""
    found = cast("FunctionType", function)
    found.__code__ = trampoline.code_for(found.__code__, handler)
    return found


def test_arguments_and_signature() -> None:
    """The handler gets what the function was given, defaults included; the signature stays."""

    def target(a: int, b: int = 2, /, c: int = 3, *rest: int, d: int, e: int = 5, **more: int) -> None: ...

    before = inspect.signature(target)
    code = target.__code__
    found = exchanged(target, lambda args, kwargs: (args, kwargs))
    assert found(1, d=4, f=6) == ((1, 2, 3), {"d": 4, "e": 5, "f": 6})
    assert found(1, 7, 8, 9, d=4) == ((1, 7, 8, 9), {"d": 4, "e": 5})
    assert inspect.signature(found) == before
    assert (found.__code__.co_filename, found.__code__.co_name) == (code.co_filename, code.co_name)
    assert inspect.getsource(found).strip().startswith("def target")


def test_closures_and_super() -> None:
    """A function with free variables can be exchanged, and its copy still does what it did."""
    first, second = 1, 2

    class Base:
        def value(self) -> int:
            return 10

    class Derived(Base):
        def value(self) -> int:
            return super().value() + first + second

    real = trampoline.copy_of(cast("FunctionType", Derived.__dict__["value"]))
    exchanged(Derived.__dict__["value"], lambda args, kwargs: real(*args, **kwargs) * 2)
    assert Derived().value() == 26


def test_what_cannot_be_exchanged() -> None:
    """Coroutines are refused."""

    async def coroutine() -> int:
        return 1

    with pytest.raises(ValueError, match="coroutine is a coroutine"):
        trampoline.code_for(cast("FunctionType", coroutine).__code__, lambda args, kwargs: None)


def test_a_generator_can_be_exchanged() -> None:
    """What stands in for a generator function returns what its handler makes."""

    def generator(count: int) -> Iterator[int]:
        yield from range(count)

    real = trampoline.copy_of(cast("FunctionType", generator))
    exchanged(generator, lambda args, kwargs: (2 * item for item in real(*args, **kwargs)))
    assert list(generator(3)) == [0, 2, 4]


def test_functions_are_found_by_name_and_by_line() -> None:
    """A name finds methods of that name, a line the innermost function around it."""

    def outer() -> Callable[[], int]:
        def inner() -> int:
            return 1

        return inner

    functions = [cast("FunctionType", function) for function in (outer, outer())]
    line = functions[1].__code__.co_firstlineno
    assert matching(functions, "outer.inner") == matching(functions, f"test_trampoline.py:{line + 1}") == [functions[1]]
    assert matching(functions, "outer") == [functions[0]]
    assert matching(functions, f"code/test_trampoline.py:{line - 1}") == [functions[0]]
    assert matching(functions, "ner") == matching(functions, f"other.py:{line}") == []
