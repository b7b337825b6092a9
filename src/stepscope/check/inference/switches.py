"""Switches of a function: parameters that a call sets to True or False, and the code that then never runs.

`preprocess(image, training=False)` augments nothing, whatever the code below `if training:` does.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from stepscope.check.inference.names import Function
from stepscope.check.inference.values import passed
from stepscope.check.source.syntax import default


def switches(call: ast.Call, function: Function, given: Mapping[str, bool]) -> dict[str, bool]:
    """The parameters of a function that a call sets to True or False, or leaves at such a default.

    ``given``: the switches of the function that contains the call, which may be passed on.
    """
    arguments = function.node.args
    hidden = any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)
    found: dict[str, bool] = {}
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        value = passed(call, function, parameter.arg)
        if value is None and not hidden:
            value = default(arguments, parameter.arg)
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            found[parameter.arg] = value.value
        elif isinstance(value, ast.Name) and value.id in given:
            found[parameter.arg] = given[value.id]
    return {name: value for name, value in found.items() if len(function.scope.bindings.get(name, ())) == 1}


def never_runs(function: Function, node: ast.AST, given: Mapping[str, bool]) -> bool:
    """Whether a node of a function is in a branch that its switches never take."""
    child, parent = node, function.module.parent(node)
    while parent is not None and child is not function.node:
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            held = _holds(parent.test, given)
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if held is not None and held is not (child in body):
                return True
        child, parent = parent, function.module.parent(parent)
    return False


def _holds(test: ast.expr, given: Mapping[str, bool]) -> bool | None:
    """Whether a condition holds; None if it depends on anything but switches."""
    if isinstance(test, ast.Name):
        return given.get(test.id)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        held = _holds(test.operand, given)
        return None if held is None else not held
    if isinstance(test, ast.BoolOp):
        held_of = [_holds(value, given) for value in test.values]
        decides = isinstance(test.op, ast.Or)
        if decides in held_of:
            return decides
        return None if None in held_of else not decides
    return None
