"""Python loops over the rows of a tensor: which tensor, which names stand for a row, what an iteration passes on."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct

from stepscope.check.analyses.batchable import COLLECTING
from stepscope.check.context import Context
from stepscope.check.inference.tags import Tag
from stepscope.check.source.bindings import FUNCTIONS
from stepscope.check.source.syntax import last_word, stored_names, walk

MANY = 100
"""Rows from which a loop takes milliseconds by itself."""
FEW = 10
"""Repeats of a loop that are too few to matter."""
TWO = 2
_TENSORS = (Tag.TENSOR, Tag.VARIABLE)
_SUMS = frozenset({
    "concat", "concatenate", "add", "maximum", "minimum", "append", "tensor_scatter_nd_update",
    "tensor_scatter_nd_add", *COLLECTING,
})  # fmt: skip
"""Calls whose result replaces their argument with something added to it."""
_ARRAYS = frozenset(
    f"numpy.{word}"
    for word in "arange linspace logspace array asarray sort argsort flatnonzero random.permutation "
    "random.rand random.randint random.randn random.choice random.uniform random.normal".split()
)
"""Calls that give one array."""
_LISTS_OF_ARRAYS = frozenset("split array_split hsplit vsplit dsplit meshgrid nonzero where load unstack".split())
"""Calls that give several arrays, each of which may be large."""
_MAYBE_LISTS = frozenset({"input", "inputs", "output", "outputs"})
"""Attributes of a model that are a tensor, or a list of them."""
RowNode = ast.For | ast.ListComp | ast.GeneratorExp
_COUNTS = frozenset({"range", "tensorflow.range", "tqdm.trange", "keras.ops.arange"})


class RowLoop(Struct, frozen=True):
    """A loop whose iterations take one part of a tensor each: a row, an element, a slice of an inner axis."""

    node: RowNode
    tensor: ast.expr
    rows: frozenset[str]
    """Names that stand for a part: the loop's own, and those made from one."""
    index: str
    """Name that a tensor is subscripted by; "" if the loop's names are the parts, or their places."""
    first: bool = True
    """Whether the parts are rows: all that is at one place of the first axis."""
    tag: Tag = Tag.TENSOR
    """Kind of what is gone through: TENSOR, VARIABLE, or NUMPY."""

    @property
    def body(self) -> list[ast.AST]:
        """The nodes executed for each row."""
        return body(self.node)

    def is_row(self, node: ast.AST) -> bool:
        """Whether an expression is a row, or a part of one."""
        if isinstance(node, ast.Name):
            return node.id in self.rows
        return isinstance(node, ast.Subscript) and bool(self.index) and _indexed(node, self.index, first=self.first)

    def mentions_row(self, node: ast.AST) -> bool:
        """Whether a node contains a row."""
        return any(self.is_row(part) for part in ast.walk(node))


def body(node: RowNode) -> list[ast.AST]:
    """The nodes that a loop or comprehension executes in each iteration."""
    return list(node.body) if isinstance(node, ast.For) else [node.elt]


def row_loop(
    ctx: Context, node: RowNode, tensors: frozenset[str] = frozenset(), *, parts: bool = False
) -> RowLoop | None:
    """The description of a loop over rows; None if it is not one.

    Args:
        ctx: the file.
        node: the loop.
        tensors: names known to be tensors although the code does not show it (arguments of a loss function).
        parts: whether slices of inner axes, elements at places that the loop is given, and rows of arrays count too.
    """
    if not isinstance(node, ast.For) and (len(node.generators) > 1 or node.generators[0].ifs):
        return None
    head = node if isinstance(node, ast.For) else node.generators[0]
    arrays: RowLoop | None = None
    for over, target in _pairs(head.iter, head.target):
        tag = _kind(ctx, over, tensors)
        if tag in _TENSORS:
            return RowLoop(node, over, _with_derived(node, _targets(target), ""), "", tag=tag)
        if tag is Tag.NUMPY and arrays is None and parts:
            arrays = RowLoop(node, over, _with_derived(node, _targets(target), ""), "", tag=tag)
    if isinstance(head.iter, ast.Call) and is_count(ctx, head.iter) and isinstance(head.target, ast.Name):
        return _by_index(ctx, node, head.target.id, tensors, parts=parts)
    return (_by_place(ctx, node, _targets(head.target), known=arrays is not None) or arrays) if parts else None


def _pairs(over: ast.expr, target: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What a loop goes through, each with the names that it binds: through ``enumerate`` and ``zip``."""
    if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Name) or not over.args:
        return [(over, target)]
    if over.func.id not in ("enumerate", "zip"):
        return [(over, target)]
    elements = target.elts if isinstance(target, ast.Tuple) else []
    if over.func.id == "enumerate":
        return _pairs(over.args[0], elements[-1]) if elements else []
    return list(zip(over.args, elements, strict=False)) if len(elements) == len(over.args) else []


def _by_index(ctx: Context, node: RowNode, index: str, tensors: frozenset[str], *, parts: bool) -> RowLoop | None:
    """A loop that counts, and takes a tensor's part at the number."""
    arrays: RowLoop | None = None
    for part in walk(body(node)):
        if not isinstance(part, ast.Subscript) or not _indexed(part, index, first=not parts):
            continue
        tag = _kind(ctx, part.value, tensors)
        first = first_index(part) == index
        if tag in _TENSORS:
            return RowLoop(node, part.value, _with_derived(node, frozenset(), index, first=first), index, first, tag)
        if tag is Tag.NUMPY and arrays is None and parts:
            arrays = RowLoop(node, part.value, _with_derived(node, frozenset(), index, first=first), index, first, tag)
    return arrays


def _by_place(ctx: Context, node: RowNode, names: frozenset[str], *, known: bool) -> RowLoop | None:
    """A loop over places, ``for r, c in places``, that reads or writes a tensor there.

    With one name it must be ``known`` that they are numbers: a dictionary of tensors is read in the same way.
    """
    for part in walk(body(node)):
        if not isinstance(part, ast.Subscript) or _kind(ctx, part.value, frozenset()) not in _TENSORS:
            continue
        places = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        own = [p for p in places if isinstance(p, ast.Name) and p.id in names]
        if len(own) >= TWO or (own and known):
            return RowLoop(node, part.value, _with_derived(node, names, ""), "", first=False)
    return None


def _kind(ctx: Context, expr: ast.expr, tensors: frozenset[str]) -> Tag:
    """The kind of what a loop takes parts of; UNKNOWN unless it is a tensor, a variable or an array."""
    if isinstance(expr, ast.Call) and ctx.name(expr.func) == "tensorflow.unstack" and expr.args:
        return Tag.TENSOR
    if _is_tensor(ctx, expr, tensors):
        return Tag.TENSOR
    if isinstance(expr, ast.Call):
        return Tag.NUMPY if ctx.name(expr.func) in _ARRAYS else Tag.UNKNOWN
    tag = ctx.tag(expr)
    if tag not in (Tag.VARIABLE, Tag.NUMPY) or _known_list(ctx, expr):
        return Tag.UNKNOWN
    made = [b.value for b in ctx.definitions(expr)] if isinstance(expr, ast.Name) else []
    several = any(isinstance(v, ast.Call) and last_word(v.func) in _LISTS_OF_ARRAYS for v in made)
    return Tag.UNKNOWN if several else tag


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


def is_count(ctx: Context, call: ast.Call) -> bool:
    """Whether a call gives numbers in turn: ``range``, ``tf.range``."""
    name = ctx.name(call.func)
    return name in _COUNTS or (isinstance(call.func, ast.Name) and call.func.id == "range")


def _targets(target: ast.expr) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def first_index(node: ast.Subscript) -> str:
    """The name that subscripts the first axis: i in ``x[i]`` and ``x[i, 0]``; "" if there is none."""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return first.id if isinstance(first, ast.Name) else ""


def _indexed(node: ast.Subscript, index: str, *, first: bool) -> bool:
    """Whether a name subscripts an axis of an object: the first one, or any."""
    places = node.slice.elts if isinstance(node.slice, ast.Tuple) and not first else []
    return first_index(node) == index or any(isinstance(p, ast.Name) and p.id == index for p in places)


def _with_derived(node: RowNode, names: frozenset[str], index: str, *, first: bool = True) -> frozenset[str]:
    """Names that are made from a row in the body: assigned, or bound by a loop over its parts."""
    known = set(names)
    for part in walk(body(node)):
        made: ast.expr | None = None
        into: list[ast.expr] = []
        if isinstance(part, ast.Assign) and len(part.targets) == 1:
            made, into = part.value, part.targets
        elif isinstance(part, (ast.For, ast.comprehension)):
            made, into = part.iter, [part.target]
        of_row = made is not None and any(
            (isinstance(n, ast.Name) and n.id in known)
            or (isinstance(n, ast.Subscript) and bool(index) and _indexed(n, index, first=first))
            for n in ast.walk(made)
        )
        if of_row:
            known.update(t.id for t in into if isinstance(t, ast.Name))
    return frozenset(known)


def often(ctx: Context, node: RowNode) -> bool:
    """Whether the loop has many rows, or is itself repeated, so that it costs more than a moment."""
    outer = [lp for lp in ctx.loops.around(node) if not lp.is_comprehension]
    called = max((lp.iterations or 1 for lp in outer if lp.via), default=1)
    return executions(ctx, node) * called >= MANY or any(lp.iterations is None or lp.iterations > FEW for lp in outer)


def executions(ctx: Context, node: RowNode) -> int:
    """How often the innermost code of nested loops runs, at least: loops of unknown length count as one iteration."""
    total = ctx.engine.loops.iterations(ctx.module, node) or 1
    for outer in ctx.loops.around(node, calls=False):
        total *= outer.iterations or 1
    inner = (p for p in walk(body(node)) if isinstance(p, (ast.For, ast.ListComp, ast.GeneratorExp)))
    return total * max((ctx.engine.loops.iterations(ctx.module, p) or 1 for p in inner), default=1)


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
                and node.value.func.attr in _SUMS
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
