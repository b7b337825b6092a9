"""Context-free values: conclusions from known values, and the arguments that calls pass."""

from __future__ import annotations

import ast

from stepscope.check.inference import signatures as sig
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import UNKNOWN_VALUE, Tag, Value
from stepscope.check.source.syntax import last_word


def assigned_names(function: Function) -> list[str]:
    """The names that a lambda is assigned to."""
    parent = function.module.parent(function.node)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def passed(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """The argument that a call passes to a parameter; None if it does not or hides it behind a star."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [a.arg for a in function.parameters]
    if name not in names:
        return None
    index = names.index(name)
    if function.cls is not None and not is_static(function):
        index -= 1
    before = call.args[: index + 1]
    if index < 0 or index >= len(call.args) or any(isinstance(a, ast.Starred) for a in before):
        return None
    return call.args[index]


def is_static(function: Function) -> bool:
    """Whether a function is a static method, which has no self."""
    return any(last_word(d) == "staticmethod" for d in function.decorators)


def at(value: Value, path: tuple[int, ...]) -> Value:
    """The part of a value at a place in its structure."""
    for index in path:
        value = value.element(index)
    return value


def many(element: Value) -> Value:
    """A container of such elements; unknown if nothing is known about them."""
    if not element.known or element.many or element.tag is Tag.NONE:
        return UNKNOWN_VALUE
    return Value(element.tag, many=True, kind=element.kind, cls=element.cls)


def arithmetic(op: ast.operator, left: Value, right: Value) -> Value:
    """The result of an operator on two values."""
    if left.many or right.many:
        return left if left.many and isinstance(op, ast.Add) else UNKNOWN_VALUE
    tags = {left.tag, right.tag}
    if tags & {Tag.TENSOR, Tag.VARIABLE}:
        return sig.TENSOR
    if Tag.NUMPY in tags:
        return sig.NUMPY
    if left.tag is Tag.PY_STRING:
        return sig.STRING
    return sig.SCALAR if tags <= {Tag.PY_SCALAR, Tag.BOOL} else UNKNOWN_VALUE


def branches(expr: ast.expr) -> list[ast.expr]:
    """The expressions of which one is the value: both of a conditional expression."""
    return [*branches(expr.body), *branches(expr.orelse)] if isinstance(expr, ast.IfExp) else [expr]


def true(expr: ast.expr) -> bool:
    """Whether an expression is a literal True."""
    return isinstance(expr, ast.Constant) and expr.value is True
