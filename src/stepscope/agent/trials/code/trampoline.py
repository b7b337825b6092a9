"""Code that stands in for a function's: it has the same parameters and free variables, and calls a handler.

The code object of a function can be exchanged while the function stays the same object, wherever it is held: in a
class, a closure, a pipeline. The new code keeps the file, the line and the name, so that tracebacks, ``inspect`` and
AutoGraph, which reads the source of what it converts, see the user's function.
"""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FunctionType

    from stepscope.agent.core.foreign import Foreign

    Handler = Callable[[tuple[Foreign, ...], dict[str, Foreign]], Foreign]

HOLE = "stepscope: the handler"
UNFIT = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def code_for(code: CodeType, handler: Handler) -> CodeType:
    """Code that calls ``handler(args, kwargs)`` in place of ``code``; that of a generator returns one.

    Raises:
        ValueError: coroutines cannot be replaced so.
    """
    if code.co_flags & UNFIT:
        raise ValueError("%s is a coroutine" % code.co_name)
    outer = compile(_source(code), code.co_filename, "exec", dont_inherit=True)
    made: Foreign = _inner(_inner(outer))
    same = {"co_filename": code.co_filename, "co_name": code.co_name, "co_firstlineno": code.co_firstlineno}
    if hasattr(code, "co_qualname"):
        same["co_qualname"] = code.co_qualname
    consts = tuple(handler if value == HOLE and isinstance(value, str) else value for value in made.co_consts)
    replaced: CodeType = made.replace(co_consts=consts, co_freevars=code.co_freevars, **same)
    return replaced


def copy_of(function: FunctionType) -> FunctionType:
    """A function that does what ``function`` does now, whatever becomes of its code."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _inner(code: CodeType) -> CodeType:
    return next(value for value in code.co_consts if isinstance(value, types.CodeType))


def _source(code: CodeType) -> str:
    """A function of the same parameters, inside one that binds the free variables; they are named, never read."""
    names = list(code.co_varnames)
    positional, keywords = names[: code.co_argcount], names[code.co_argcount :][: code.co_kwonlyargcount]
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    star = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    stars = rest[0] if code.co_flags & inspect.CO_VARKEYWORDS else ""
    parameters = list(positional)
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if star or keywords:
        parameters.append("*" + star)
    parameters += keywords + (["**" + stars] if stars else [])
    args = "".join(name + ", " for name in positional) + ("*" + star if star else "")
    kwargs = "".join("%r: %s, " % (name, name) for name in keywords) + ("**" + stars if stars else "")
    free = "".join(name + " = " for name in code.co_freevars)
    body = "if 0: (%s)\n" % "".join(name + ", " for name in code.co_freevars) if free else "pass\n"
    return "def outer():\n %sNone\n def inner(%s):\n  %s  __stepscope__ = %r\n  return __stepscope__((%s), {%s})\n" % (
        free,
        ", ".join(parameters),
        body,
        HOLE,
        args,
        kwargs,
    )
