"""Whether a function gives the same on a batch as on its elements, so that it may move after ``batch``.

The function is followed with the dependencies of each value: a part of the element, whose shape elementwise ops keep,
or nothing of it. Two parts are never combined, because their ranks may differ and a batch would then broadcast
differently.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct

from stepscope.check.inference.infer import Inference
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.inference.values import is_static, passed
from stepscope.check.source.modules import Module

MAX_LEVELS = 2
MAX_CHANNELS = 4
"""Length up to which a constant is taken as one number per channel: it broadcasts over a batch as over an image."""
_ONE = frozenset(
    "cast to_float to_int32 abs square sqrt exp negative identity saturate_cast sigmoid tanh sign floor "
    "round image.convert_image_dtype nn.relu math.log math.log1p clip_by_value strings.lower strings.to_number "
    "strings.strip zeros_like ones_like image.rgb_to_grayscale image.adjust_brightness".split()
)
"""Ops with one input tensor and an output of the same shape; other arguments are settings."""
_MANY = frozenset("divide multiply add subtract minimum maximum where truediv math.floormod math.divide_no_nan".split())
"""Ops with several operands, which broadcast."""
_LAYERS = frozenset({"keras.layers.Rescaling", "keras.layers.experimental.preprocessing.Rescaling"})


class _UnknownError(Exception):
    """Raised if the dependencies of a value cannot be determined."""


class _Part(Struct, frozen=True):
    """A value that depends on one part of the element and has its shape."""

    path: str


class _Fixed(Struct, frozen=True):
    """A value that does not depend on the element."""

    scalar: bool


class _Structure(Struct, frozen=True):
    """A tuple, list or dict; keys are strings or indices."""

    parts: tuple[tuple[str, _Value], ...]


_Value = _Part | _Fixed | _Structure
_Env = dict[str | ast.expr, _Value]
"""Values of names and of the given expressions."""


class Elementwise:
    """Analysis of whether project functions work elementwise.

    Args:
        inference: names, values and callees.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference

    def of(self, function: Function, parts: Mapping[ast.expr, str] | None = None) -> bool:
        """Whether a function is known to give the same on a batch; False: unknown.

        Args:
            function: the function to analyse.
            parts: expressions of its body that are treated as parts of the element, with a name for each.
        """
        names = [a.arg for a in function.parameters]
        if function.cls is not None and not is_static(function):
            names = names[1:]
        env: _Env = {name: _Part(name) for name in names}
        env.update({expr: _Part(name) for expr, name in (parts or {}).items()})
        try:
            return _all_parts(self._run(function, env, MAX_LEVELS))
        except _UnknownError:
            return False

    def _run(self, function: Function, env: _Env, levels: int) -> _Value:
        module = function.module
        if isinstance(function.node, ast.Lambda):
            return self._expr(module, function.node.body, env, levels)
        for statement in function.node.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self._expr(module, statement.value, env, levels)
            if isinstance(statement, ast.Assign):
                value = self._expr(module, statement.value, env, levels)
                for target in statement.targets:
                    _assign(target, value, env)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                before = env.get(statement.target.id)
                if before is None or isinstance(statement.op, ast.MatMult):
                    raise _UnknownError
                value = self._expr(module, statement.value, env, levels)
                env[statement.target.id] = self._combine(module, [before, value], [None, statement.value])
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise _UnknownError
        raise _UnknownError

    def _expr(self, module: Module, expr: ast.expr, env: _Env, levels: int) -> _Value:
        if expr in env:
            return env[expr]
        if isinstance(expr, ast.Constant):
            return _Fixed(scalar=True)
        if isinstance(expr, ast.Name) and expr.id in env:
            return env[expr.id]
        if isinstance(expr, (ast.Name, ast.Attribute)):
            return self._outer(module, expr, env)
        if isinstance(expr, (ast.Tuple, ast.List)):
            return _Structure(tuple((str(i), self._expr(module, e, env, levels)) for i, e in enumerate(expr.elts)))
        if isinstance(expr, ast.Dict):
            keys = [k.value for k in expr.keys if isinstance(k, ast.Constant)]
            if len(keys) != len(expr.values):
                raise _UnknownError
            values = [self._expr(module, v, env, levels) for v in expr.values]
            return _Structure(tuple((str(k), v) for k, v in zip(keys, values, strict=True)))
        if isinstance(expr, ast.Subscript):
            return _item(self._expr(module, expr.value, env, levels), expr.slice)
        if isinstance(expr, ast.BinOp) and not isinstance(expr.op, ast.MatMult):
            sides = [expr.left, expr.right]
            return self._combine(module, [self._expr(module, s, env, levels) for s in sides], sides)
        if isinstance(expr, ast.Compare) and len(expr.ops) == 1:
            sides = [expr.left, expr.comparators[0]]
            return self._combine(module, [self._expr(module, s, env, levels) for s in sides], sides)
        if isinstance(expr, ast.UnaryOp):
            return self._expr(module, expr.operand, env, levels)
        if isinstance(expr, ast.Call):
            return self._call(module, expr, env, levels)
        raise _UnknownError

    def _outer(self, module: Module, expr: ast.Name | ast.Attribute, env: _Env) -> _Value:
        base: ast.expr = expr
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name) and base.id in env:
            raise _UnknownError  # an attribute of the element: shape, dtype
        value = self.inference.value(module, expr)
        return _Fixed(scalar=value.tag in (Tag.PY_SCALAR, Tag.BOOL) and not value.many)

    def _call(self, module: Module, call: ast.Call, env: _Env, levels: int) -> _Value:
        if not call.args or any(isinstance(a, ast.Starred) for a in call.args):
            raise _UnknownError
        names = self.inference.names.names(module, call.func)
        shorts = [n.removeprefix("tensorflow.") for n in names]
        settings = [k.value for k in call.keywords]
        if shorts and all(s in _ONE or _preprocess(s) for s in shorts):
            return self._shaped(module, call.args[0], [*call.args[1:], *settings], env, levels)
        if shorts == ["one_hot"]:
            inner = self._shaped(module, call.args[0], [*call.args[1:], *settings], env, levels)
            return _Part(f"one_hot({inner.path})") if isinstance(inner, _Part) else inner
        if shorts == ["expand_dims"] and self._at_the_end(call):
            inner = self._shaped(module, call.args[0], [], env, levels)
            return _Part(f"expand_dims({inner.path})") if isinstance(inner, _Part) else inner
        if shorts and all(s in _MANY for s in shorts) and all(k.arg == "name" for k in call.keywords):
            if "where" in shorts and len(call.args) == 1:  # it returns indices
                raise _UnknownError
            return self._combine(module, [self._expr(module, a, env, levels) for a in call.args], call.args)
        if self.inference.value(module, call.func).kind in _LAYERS:
            return self._shaped(module, call.args[0], settings, env, levels)
        callees = self.inference.callee(module, call)
        if len(callees) == 1 and levels and callees[0].cls is None and not names:
            return self._follow(module, call, callees[0], env, levels)
        raise _UnknownError

    @staticmethod
    def _at_the_end(call: ast.Call) -> bool:
        """Whether a call is ``tf.expand_dims(x, -1)``: a batch gets its new dimension at the end, too, and its rows
        stay the same.
        """
        axes = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "axis")]
        last = [ast.unparse(axis) for axis in axes] == ["-1"]
        return last and all(k.arg in ("axis", "name") for k in call.keywords)

    def _follow(self, module: Module, call: ast.Call, callee: Function, env: _Env, levels: int) -> _Value:
        """Follow a project function with its arguments."""
        inner: _Env = {}
        for parameter in callee.parameters:
            given = passed(call, callee, parameter.arg)
            if given is None:
                raise _UnknownError
            inner[parameter.arg] = self._expr(module, given, env, levels)
        return self._run(callee, inner, levels - 1)

    def _shaped(
        self, module: Module, operand: ast.expr, settings: list[ast.expr], env: _Env, levels: int
    ) -> _Part | _Fixed:
        """The operand's own shape, with settings that do not depend on the element."""
        value = self._expr(module, operand, env, levels)
        if isinstance(value, _Structure):
            raise _UnknownError
        for setting in settings:
            if not isinstance(self._expr(module, setting, env, levels), _Fixed):
                raise _UnknownError
        return value

    def _combine(self, module: Module, values: list[_Value], exprs: list[ast.expr | None] | list[ast.expr]) -> _Value:
        """Combine operands of one op: one part of the element, and numbers."""
        found: _Part | None = None
        scalar = True
        for value, expr in zip(values, exprs, strict=True):
            if isinstance(value, _Structure) and expr is not None and _channels(expr):
                continue
            if isinstance(value, _Structure) or (isinstance(value, _Part) and found not in (None, value)):
                raise _UnknownError
            if isinstance(value, _Part):
                found = value
            elif not value.scalar and not (expr is not None and self._small(module, expr)):
                scalar = False
        if found is not None and not scalar:
            raise _UnknownError
        return found or _Fixed(scalar=scalar)

    def _small(self, module: Module, expr: ast.expr) -> bool:
        """Whether an expression is a constant with one number per channel, also through a name, ``np.array`` or
        ``tf.constant``.
        """
        if isinstance(expr, ast.Name):
            made = [b.value for b in self.inference.names.reaching(module, expr) if b.kind == "assign"]
            return bool(made) and all(m is not None and m is not expr and self._small(module, m) for m in made)
        if isinstance(expr, ast.Call) and expr.args:
            names = self.inference.names.names(module, expr.func)
            return any(n in ("numpy.array", "numpy.asarray", "tensorflow.constant") for n in names) and _channels(
                expr.args[0]
            )
        return _channels(expr)


def _all_parts(value: _Value) -> bool:
    """Whether every returned value depends on the element: a constant would get no batch dimension."""
    if isinstance(value, _Structure):
        return bool(value.parts) and all(_all_parts(part) for _, part in value.parts)
    return isinstance(value, _Part)


def _assign(target: ast.expr, value: _Value, env: _Env) -> None:
    if isinstance(target, ast.Name):
        env[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for index, part in enumerate(target.elts):
            _assign(part, _member(value, str(index)), env)
    elif (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str)
        and isinstance(base := env.get(target.value.id), _Structure)
    ):
        kept = tuple((k, v) for k, v in base.parts if k != target.slice.value)
        env[target.value.id] = _Structure((*kept, (target.slice.value, value)))
    else:
        raise _UnknownError


def _item(value: _Value, index: ast.expr) -> _Value:
    """The item ``features["image"]``, or a part of a tuple made here: never an index into a tensor."""
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        return _member(value, index.value)
    if isinstance(value, _Structure) and isinstance(index, ast.Constant):
        return _member(value, str(index.value))
    raise _UnknownError


def _member(value: _Value, key: str) -> _Value:
    if isinstance(value, _Structure):
        found = dict(value.parts).get(key)
        if found is None:
            raise _UnknownError
        return found
    if isinstance(value, _Part):
        return _Part(f"{value.path}[{key}]")
    raise _UnknownError


def _channels(expr: ast.expr) -> bool:
    """Whether an expression is a list of a few numbers."""
    return (
        isinstance(expr, (ast.List, ast.Tuple))
        and len(expr.elts) <= MAX_CHANNELS
        and all(isinstance(e, (ast.Constant, ast.UnaryOp, ast.BinOp)) for e in expr.elts)
    )


def _preprocess(name: str) -> bool:
    """Whether a name is like ``keras.applications.resnet.preprocess_input``: elementwise on the last axis."""
    return name.startswith("keras.applications.") and name.endswith(".preprocess_input")
