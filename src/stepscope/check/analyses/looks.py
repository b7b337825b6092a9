"""Statements that only look at tensors: they print or keep a value, and nothing else of the code uses what they change.

``log.append(loss.numpy())`` keeps a step out of a graph, but can follow it: the step returns the loss. What the rest of
the code depends on, an action for an environment or a bound that a branch tests, is no look.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from stepscope.check.context import Context
from stepscope.check.inference.tags import Tag
from stepscope.check.source.bindings import FUNCTIONS
from stepscope.check.source.syntax import children, last_word, walk

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_BLOCKS = (ast.If, ast.For)
"""Statements that are looks if all that they contain are."""
UPDATING = frozenset({"gradient", "jacobian", "batch_jacobian", "minimize", "apply_gradients", "apply"})
"""Methods of tapes and optimizers: what they are given is what the step is for."""
_ACTING = UPDATING | {"input", "render", "step"}
"""Last words of calls whose effect may be waited for."""
_OF_THE_STEP = frozenset({Tag.MODEL, Tag.LAYER, Tag.VARIABLE, Tag.TENSOR, Tag.OPTIMIZER})
"""Objects whose state the step itself depends on."""
_NEVER = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def looks(
    ctx: Context, body: Sequence[ast.AST], reads: frozenset[ast.AST], needed: frozenset[str]
) -> tuple[ast.stmt, ...]:
    """The statements of some code that only look, outermost first.

    Args:
        ctx: context of the code's file.
        body: the code.
        reads: its nodes that take a tensor's value to Python.
        needed: what is needed after it.
    """
    statements = [node for node in walk(body) if isinstance(node, ast.stmt)]
    found = {one for one in statements if not reads.isdisjoint(walk([one])) and _changed(ctx, one) is not None}
    while True:
        known = {path for one in found for path in _changed(ctx, one) or ()}
        more = {
            one
            for one in statements
            if one not in found and _changed(ctx, one) is not None and any(_touch(path, known) for path in used_in(one))
        }
        if not more:
            break
        found |= more
    while used := needed.union(path for node in without(body, found) for path in used_in(node)):
        kept = {one for one in found if not any(_touch(path, used) for path in _changed(ctx, one) or ())}
        if kept == found:
            break
        found = kept
    return tuple(one for one in statements if one in found)


def without(body: Iterable[ast.AST], left_out: Iterable[ast.AST]) -> list[ast.AST]:
    """The nodes of some code without these statements: blocks that contain one are taken apart."""
    left = frozenset(left_out)
    found: list[ast.AST] = []
    for node in body:
        if node in left:
            continue
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) or left.isdisjoint(walk([node])):
            found.append(node)
        else:
            found += without(children(node), left)
    return found


def _changed(ctx: Context, statement: ast.stmt) -> frozenset[str] | None:
    """Names and attributes that a statement changes; None if it may do more than that."""
    if any(isinstance(node, _NEVER) for node in walk([statement])):
        return None
    if isinstance(statement, ast.Pass):
        return frozenset()
    if isinstance(statement, _BLOCKS):
        inner = [_changed(ctx, one) for one in (*statement.body, *statement.orelse)]
        if any(one is None for one in inner):
            return None
        own = _paths([statement.target]) if isinstance(statement, ast.For) else frozenset()
        return own.union(*(one for one in inner if one is not None))
    if not isinstance(statement, _SIMPLE):
        return None
    calls = [node for node in walk([statement]) if isinstance(node, ast.Call)]
    if any(_acts(ctx, call) for call in calls):
        return None
    if isinstance(statement, ast.Expr):
        return _receiver(ctx, statement.value)
    return _paths(statement.targets if isinstance(statement, ast.Assign) else [statement.target])


def _acts(ctx: Context, call: ast.Call) -> bool:
    """Whether a call is a part of the step, or does what is not known to be printing or keeping."""
    of_model = ctx.tag(call.func) in {Tag.MODEL, Tag.LAYER}
    return of_model or last_word(call.func) in _ACTING or bool(ctx.functions.callees(call))


def _receiver(ctx: Context, value: ast.expr) -> frozenset[str] | None:
    """What a call that is a statement changes: the object whose method it is; a function of a library changes none."""
    if not isinstance(value, ast.Call):
        return None
    called = value.func
    if isinstance(called, ast.Attribute) and ctx.tag(called.value) in _OF_THE_STEP:
        return None
    if ctx.name(called) or (isinstance(called, ast.Name) and called.id == "print"):
        return frozenset()
    return _paths([called.value]) if isinstance(called, ast.Attribute) else None


def _paths(targets: Iterable[ast.expr]) -> frozenset[str]:
    """What is changed where these are assigned to: ``log`` for ``log[i]``, ``self.best`` for ``self.best``."""
    found: set[str] = set()
    for target in targets:
        part = target
        while isinstance(part, (ast.Subscript, ast.Starred, ast.Call)):
            part = part.func if isinstance(part, ast.Call) else part.value
        if isinstance(part, (ast.Tuple, ast.List)):
            found |= _paths(part.elts)
        else:
            found.add(ast.unparse(part))
    return frozenset(found)


def used_in(node: ast.AST) -> Iterator[str]:
    """The longest names and attributes that code reads or calls: ``self.model`` of ``self.model(x)``."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.Name, ast.Attribute)) and _is_chain(part):
            if isinstance(part.ctx, ast.Load):
                yield ast.unparse(part)
        else:
            todo += children(part)


def _is_chain(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _touch(path: str, others: Iterable[str]) -> bool:
    """Whether one of the others is the same, a part of it, or holds it."""
    return any(one == path or one.startswith(f"{path}.") or path.startswith(f"{one}.") for one in others)
