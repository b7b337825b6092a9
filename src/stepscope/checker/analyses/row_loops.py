"""Python loops over the rows of a tensor: which tensor, which names stand for a row, what an iteration passes on."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.checker.analyses.batchable import COLLECTING
from stepscope.checker.context import Context
from stepscope.checker.inference.tags import Tag
from stepscope.checker.source.bindings import FUNCTIONS
from stepscope.checker.source.syntax import last_word, stored_names, walk

MANY = 100
"""Rows from which a loop takes milliseconds by itself."""
FEW = 10
"""Repeats of a loop that are too few to matter."""
_MAYBE_LISTS = frozenset({"input", "inputs", "output", "outputs"})
"""Attributes of a model that are a tensor, or a list of them."""
RowNode = ast.For | ast.ListComp | ast.GeneratorExp
_COUNTS = frozenset({"range", "tensorflow.range", "tqdm.trange", "keras.ops.arange"})


@dataclass(frozen=True, slots=True)
class RowLoop:
    """A loop whose iterations take one row of a tensor each."""

    node: RowNode
    tensor: ast.expr
    rows: frozenset[str]
    """Names that stand for a row: the loop's own, and those assigned from one."""
    index: str
    """Name that a tensor is subscripted by; "" if the loop iterates over the tensor itself."""

    @property
    def body(self) -> list[ast.AST]:
        """The nodes executed for each row."""
        return body(self.node)

    def is_row(self, node: ast.AST) -> bool:
        """Whether an expression is a row, or a part of one."""
        if isinstance(node, ast.Name):
            return node.id in self.rows
        return isinstance(node, ast.Subscript) and bool(self.index) and first_index(node) == self.index

    def mentions_row(self, node: ast.AST) -> bool:
        """Whether a node contains a row."""
        return any(self.is_row(part) for part in ast.walk(node))


def body(node: RowNode) -> list[ast.AST]:
    """The nodes that a loop or comprehension executes in each iteration."""
    return list(node.body) if isinstance(node, ast.For) else [node.elt]


def row_loop(ctx: Context, node: RowNode, tensors: frozenset[str] = frozenset()) -> RowLoop | None:
    """The description of a loop over rows; None if it is not one.

    Args:
        ctx: the file.
        node: the loop.
        tensors: names known to be tensors although the code does not show it (arguments of a loss function).
    """
    if not isinstance(node, ast.For) and (len(node.generators) > 1 or node.generators[0].ifs):
        return None
    head = node if isinstance(node, ast.For) else node.generators[0]
    over, target = head.iter, head.target
    names = _targets(target)
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "enumerate" and over.args:
        over = over.args[0]
        names = _targets(target.elts[-1]) if isinstance(target, ast.Tuple) else frozenset()
    if _is_tensor(ctx, over, tensors):
        return RowLoop(node, over, _with_derived(node, names, ""), "")
    if isinstance(over, ast.Call) and _is_count(ctx, over) and isinstance(target, ast.Name):
        index = target.id
        for part in walk(body(node)):
            if isinstance(part, ast.Subscript) and first_index(part) == index and _is_tensor(ctx, part.value, tensors):
                return RowLoop(node, part.value, _with_derived(node, frozenset(), index), index)
    return None


def _is_tensor(ctx: Context, expr: ast.expr, tensors: frozenset[str]) -> bool:
    if isinstance(expr, ast.Name) and expr.id in tensors:
        return True
    if isinstance(expr, ast.Call) or (isinstance(expr, ast.Attribute) and expr.attr in _MAYBE_LISTS):
        return False
    return ctx.tag(expr) is Tag.TENSOR and not _known_list(ctx, expr)


def _known_list(ctx: Context, expr: ast.expr) -> bool:
    """Whether an expression is behind ``if isinstance(rows, (list, tuple))``."""
    base = expr
    while isinstance(base, ast.Subscript):
        base = base.value
    text = ast.unparse(base)
    child: ast.AST = expr
    parent = ctx.parent(child)
    while parent is not None and not isinstance(parent, FUNCTIONS):
        if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if child in body and any(_asks_for_list(part, text) for part in _and(parent.test)):
                return True
        child, parent = parent, ctx.parent(parent)
    return False


def _and(test: ast.expr) -> list[ast.expr]:
    """The conditions that all hold if a test holds."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _asks_for_list(test: ast.expr, text: str) -> bool:
    if not isinstance(test, ast.Call) or last_word(test.func) != "isinstance":
        return False
    what, *kinds = test.args
    names = {n.id for kind in kinds for n in ast.walk(kind) if isinstance(n, ast.Name)}
    return ast.unparse(what) == text and bool(names) and names <= {"list", "tuple", "dict", "set"}


def _is_count(ctx: Context, call: ast.Call) -> bool:
    name = ctx.name(call.func)
    return name in _COUNTS or (isinstance(call.func, ast.Name) and call.func.id == "range")


def _targets(target: ast.expr) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def first_index(node: ast.Subscript) -> str:
    """The name that subscripts the first axis: i in ``x[i]`` and ``x[i, 0]``; "" if there is none."""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return first.id if isinstance(first, ast.Name) else ""


def _with_derived(node: RowNode, names: frozenset[str], index: str) -> frozenset[str]:
    """Names that are assigned from a row in the body."""
    known = set(names)
    for part in walk(body(node)):
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            of_row = any(
                (isinstance(n, ast.Name) and n.id in known)
                or (isinstance(n, ast.Subscript) and bool(index) and first_index(n) == index)
                for n in ast.walk(part.value)
            )
            if of_row:
                known.add(part.targets[0].id)
    return frozenset(known)


def often(ctx: Context, node: RowNode) -> bool:
    """Whether the loop has many rows, or is itself repeated, so that it costs more than a moment."""
    times = ctx.engine.loops.iterations(ctx.module, node)
    outer = (lp for lp in ctx.loops.around(node) if not lp.is_comprehension)
    return (times is not None and times >= MANY) or any(lp.iterations is None or lp.iterations > FEW for lp in outer)


def carries(nodes: Iterable[ast.AST]) -> bool:
    """Whether one iteration passes something to the next, other than sums and lists that are only appended to.

    ``state = cell(x, state)`` does; ``total += f(x)``, ``total = total + f(x)``, ``best = tf.maximum(best, x)`` and
    ``out.append(x)`` do not; nor does ``out = tf.concat([out, x], 0)``.
    """
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    stored: set[str] = set()
    for statement in statements:
        stored |= stored_names(statement)
    collected = _collected(statements)
    seen: set[str] = set()
    return any(_reads_before(s, stored - collected, seen) for s in statements)


def _collected(statements: list[ast.stmt]) -> set[str]:
    """Names that only sum or collect: used only in the statements that add to them."""
    found: dict[str, int] = {}
    for node in walk(statements):
        name = ""
        uses = 0
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name, uses = node.target.id, sum(isinstance(n, ast.Name) and n.id == node.target.id for n in ast.walk(node))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            target = node.targets[0].id
            inner = sum(isinstance(n, ast.Name) and n.id == target for n in ast.walk(node.value))
            sums = isinstance(node.value, ast.BinOp) or (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Attribute)
                and node.value.func.attr
                in ("concat", "concatenate", "add", "maximum", "minimum", "append", *COLLECTING)
            )
            if inner == 1 and sums:
                name, uses = target, 2
        if name:
            found[name] = found.get(name, 0) + uses
    total: dict[str, int] = dict.fromkeys(found, 0)
    for node in walk(statements):
        if isinstance(node, ast.Name) and node.id in total:
            total[node.id] += 1
    return {name for name, count in total.items() if count == found[name]}


def _reads_before(statement: ast.stmt, stored: set[str], seen: set[str]) -> bool:
    """Whether a name that the body stores is read before this iteration has stored it."""
    if isinstance(statement, (ast.If, ast.For, ast.While, ast.With)):
        head: list[ast.AST] = [n for n in ast.iter_child_nodes(statement) if isinstance(n, (ast.expr, ast.withitem))]
        if isinstance(statement, ast.For):
            seen |= _targets(statement.target)
            head = [statement.iter]
        if any(_reads(n, stored - seen) for n in head):
            return True
        inner = [*statement.body, *getattr(statement, "orelse", [])]
        before = set(seen)
        if any(_reads_before(s, stored, seen) for s in inner):
            return True
        if isinstance(statement, ast.If):
            both = (
                set.intersection(*(set(_stored(b)) for b in (statement.body, statement.orelse)))
                if statement.orelse
                else set()
            )
            seen &= before | both
        return False
    value = getattr(statement, "value", None)
    if isinstance(value, ast.AST) and _reads(value, stored - seen):
        return True
    target = statement.target if isinstance(statement, ast.AugAssign) else None
    if isinstance(target, ast.Name) and target.id in stored - seen:
        return True
    seen |= stored_names(statement)
    return False


def _stored(statements: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for statement in statements:
        found |= stored_names(statement)
    return found


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names for n in ast.walk(node))
