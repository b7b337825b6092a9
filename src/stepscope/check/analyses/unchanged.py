"""Whether the value that an expression reads is the same in every iteration of a loop, not only the same object.

A name bound once may stand for a variable, an array, a list or a model, whose content changes when they are assigned,
stepped, filled or passed on. A value therefore stays the same only if it cannot change (numbers, strings, tensors), or
if nothing in the loop can change any object. In a graph of TensorFlow 1 an op reads symbols: there variables and
tensors stay the same, and so does an object that the loop passes to nothing. An unknown value counts as changing.
"""

from __future__ import annotations

import ast

from stepscope.check.analyses import quiet
from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Class, Tag, Value
from stepscope.check.source.bindings import Binding
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import last_word

MAX_DEPTH = 6
"""Depth to which names are followed."""
_FIXED = (Tag.PY_SCALAR, Tag.BOOL, Tag.PY_STRING, Tag.NONE)
_STATE = (Tag.VARIABLE, Tag.MODEL, Tag.LAYER, Tag.OPTIMIZER, Tag.ITERATOR, Tag.DATASET, Tag.SESSION, Tag.FUNCTION)
"""Tags of objects that hold state, or are run for it."""
_SHAPES = frozenset({"shape", "dtype", "ndim"})
_SETTERS = ("setattr", "__setattr__", "vars", "exec")
_NAMESPACE = "argparse.Namespace"


def unchanged(ctx: Context, expr: ast.Name | ast.Attribute, loop: Loop, *, symbolic: bool) -> bool:
    """Whether a name or attribute in a loop's own body has the same value in each iteration.

    Args:
        ctx: the file.
        expr: the expression read.
        loop: a loop around it in the same function.
        symbolic: the loop builds a graph of TensorFlow 1.
    """
    if ctx.loops.varies(expr, loop) is not False:
        return False
    if isinstance(expr, ast.Name):
        return _name(ctx, expr, loop, symbolic=symbolic)
    return _attribute(ctx, expr, loop, symbolic=symbolic)


def _name(ctx: Context, name: ast.Name, loop: Loop, *, symbolic: bool) -> bool:
    bindings = ctx.definitions(name)
    if any(isinstance(thing, (Function, Class)) for thing in ctx.things(name)) or rebound(ctx, name.id):
        return False
    if not bindings or all(b.kind == "import" and not isinstance(_thing(ctx, name), Module) for b in bindings):
        return not bindings or _library(ctx, name) or _settled(ctx, name, loop, symbolic=symbolic)
    return _settled(ctx, name, loop, symbolic=symbolic)


def _attribute(ctx: Context, expr: ast.Attribute, loop: Loop, *, symbolic: bool) -> bool:
    if _library(ctx, expr):
        return True
    value = ctx.value(expr.value)
    if expr.attr in _SHAPES and isinstance(expr.value, ast.Name) and value.tag is Tag.TENSOR and not value.many:
        return not rebound(ctx, expr.value.id)
    thing = _thing(ctx, expr.value)
    if isinstance(thing, Module):
        bound = thing.flow.module.bindings.get(expr.attr, [])
        plain = len(bound) == 1 and bound[0].kind == "assign" and bound[0].scope is thing.flow.module
        return plain and not stored(ctx, thing, expr.attr) and _settled(ctx, expr, loop, symbolic=symbolic)
    if value.cls is not None:
        owner = ctx.engine.names.owner(value.cls, expr.attr)
        if owner is None or ctx.functions.methods(value.cls, expr.attr) or _stored_by_others(ctx, owner, expr.attr):
            return False
        return _settled(ctx, expr, loop, symbolic=symbolic)
    if value.tag in _STATE or (value.kind != _NAMESPACE and not symbolic) or stored(ctx, ctx.module, expr.attr):
        return False
    return _settled(ctx, expr, loop, symbolic=symbolic)


def _settled(ctx: Context, expr: ast.Name | ast.Attribute, loop: Loop, *, symbolic: bool) -> bool:
    """Whether the object cannot change, or nothing in the loop can change it."""
    value = ctx.value(expr)
    if not value.many and not value.parts and (value.tag in _FIXED or _tensor(ctx, expr, 0)):
        return True
    if symbolic:
        return value.tag in (Tag.TENSOR, Tag.VARIABLE) or not quiet.handed(ctx, expr, loop)
    return not _stateful(value) and not _holds_state(ctx, expr) and quiet.quiet(ctx, loop, expr)


def _stateful(value: Value) -> bool:
    return value.tag in _STATE or any(_stateful(part) for part in value.parts)


def _holds_state(ctx: Context, expr: ast.Name | ast.Attribute) -> bool:
    """Whether one of several possible values of a name is a variable, or may be."""
    if not isinstance(expr, ast.Name):
        return ctx.tag(expr) is Tag.TENSOR  # either a variable or a tensor; the two are not distinguished
    infer = ctx.engine.inference
    return any(_stateful(infer.binding(ctx.module, b)) or b.kind == "param" for b in ctx.definitions(expr))


def _tensor(ctx: Context, expr: ast.expr, depth: int) -> bool:
    """Whether a value is certainly a tensor: the result of an op or arithmetic. A join of tensors and variables has the
    tag of a tensor.
    """
    if depth > MAX_DEPTH or ctx.tag(expr) is not Tag.TENSOR:
        return False
    if isinstance(expr, ast.Name):
        bindings = ctx.definitions(expr)
        return bool(bindings) and all(_bound_to_tensor(ctx, b, depth) for b in bindings)
    if isinstance(expr, ast.Call):
        return ctx.name(expr.func).startswith(("tensorflow.", "keras."))
    if isinstance(expr, ast.Attribute):
        value = ctx.value(expr.value)
        owner = ctx.engine.names.owner(value.cls, expr.attr) if value.cls is not None else None
        bound = owner.scope.attributes[expr.attr] if owner is not None else []
        return bool(bound) and owner is not None and all(
            _bound_to_tensor(ctx.at(owner.module), b, depth) for b in bound
        )  # fmt: skip
    return isinstance(expr, (ast.BinOp, ast.UnaryOp))


def _bound_to_tensor(ctx: Context, binding: Binding, depth: int) -> bool:
    if binding.kind == "unpack":
        return isinstance(binding.value, ast.Call) and ctx.name(binding.value.func).startswith("tensorflow.")
    return binding.kind == "assign" and binding.value is not None and _tensor(ctx, binding.value, depth + 1)


def _library(ctx: Context, expr: ast.Name | ast.Attribute) -> bool:
    """Whether a name is a constant, type or op of a library: ``np.pi``, ``tf.float32``."""
    root: ast.expr = expr
    while isinstance(root, ast.Attribute):
        root = root.value
    bound = ctx.definitions(root) if isinstance(root, ast.Name) else ()
    return bool(bound) and all(b.kind == "import" for b in bound) and bool(ctx.names(expr))


def _thing(ctx: Context, expr: ast.expr) -> object:
    things = ctx.things(expr) if isinstance(expr, (ast.Name, ast.Attribute)) else ()
    return things[0] if len(things) == 1 else None


def rebound(ctx: Context, name: str) -> bool:
    """Whether a function binds a name of an outer scope, or the module's names are changed through their table."""
    flow = ctx.module.flow
    return any(name in scope.shared for scope in flow.scopes.values()) or _by_name(ctx.module, "globals", "exec")


def _by_name(module: Module, *words: str) -> bool:
    """Whether a file changes names or attributes whose names are computed at run time."""
    tables = any(isinstance(s, ast.Subscript) and last_word(s.value) == "__dict__" for s in module.flow.stores)
    return tables or any(module.flow.calls.get(word) for word in words)


def stored(ctx: Context, module: Module, attr: str, *, inits: bool = False) -> bool:
    """Whether an attribute of this name is assigned in one of two files, on any object, or by a computed name.

    With ``inits``, assignments in an ``__init__`` are not counted.
    """
    for one in (module, ctx.module):
        stores = [s for s in one.flow.stores if isinstance(s, ast.Attribute) and s.attr == attr]
        if any(not inits or one.scope_of(s).name.rpartition(".")[2] != "__init__" for s in stores):
            return True
    return any(_by_name(one, *_SETTERS) for one in (module, ctx.module))


def _stored_by_others(ctx: Context, owner: Class, attr: str) -> bool:
    """Whether an attribute is assigned anywhere but in the ``__init__`` of the class."""
    module = owner.module
    scopes = {b.scope.name for b in owner.scope.attributes[attr]}
    if {name.rpartition(".")[2] for name in scopes} != {"__init__"} or _by_name(module, *_SETTERS):
        return True
    if module is not ctx.module and stored(ctx, ctx.module, attr):
        return True
    return any(
        isinstance(store, ast.Attribute) and store.attr == attr and module.scope_of(store).name not in scopes
        for store in module.flow.stores
    )
