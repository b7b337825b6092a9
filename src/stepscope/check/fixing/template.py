"""Templates in plans: names in them are spelled as in the file, ``$1`` is the source of the plan's first node."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import libcst as cst

from stepscope.check.fixing.edits import CannotFixError, Edit
from stepscope.check.fixing.naming import ROOTS, Naming
from stepscope.check.fixing.tree import Tree

_PLACE = re.compile(r"\$(\d+)")
_HOLE = "_stepscope_{}_"
ATOMS = (
    cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set, cst.ListComp, cst.SetComp,
    cst.DictComp, cst.SimpleString, cst.FormattedString, cst.Integer, cst.Float, cst.Imaginary, cst.Ellipsis,
)  # fmt: skip
"""Expressions that never need parentheses."""


def is_atom(node: cst.BaseExpression) -> bool:
    """Whether ``.name`` may follow an expression as it is."""
    return bool(node.lpar) or (isinstance(node, ATOMS) and not isinstance(node, (cst.Integer, cst.Float)))


def render(
    template: str, tree: Tree, naming: Naming, nodes: Sequence[cst.BaseExpression], offset: int
) -> tuple[str, tuple[Edit, ...]]:
    """The text of a template at a place, and the edits that add the imports it needs.

    Args:
        template: an expression or statements. ``tensorflow.data.AUTOTUNE`` is spelled as in the file; ``$1`` and up
        are the texts of ``nodes``, in parentheses if needed.
        tree: the file.
        naming: its names.
        nodes: the nodes that the placeholders stand for.
        offset: the offset at which the text will be inserted.

    Raises:
        CannotFixError: the template is not Python, or has a placeholder without a node.
    """
    text = _PLACE.sub(lambda m: _HOLE.format(m.group(1)), template)
    if not text.isascii():
        raise CannotFixError("its rule plans a text with non-ASCII letters")
    try:
        parsed = ast.parse(text)
    except SyntaxError as error:
        raise CannotFixError(f"its rule plans {template!r}, which is not Python") from error
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits: list[Edit] = []
    imports: list[Edit] = []
    for node, bare in _parts(parsed):
        start, end = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 1) - 1] + _end(node)
        if isinstance(node, ast.Name):
            edits.append(Edit(start, end, _filled(node.id, tree, nodes, bare=bare)))
            continue
        spelled, needed = naming.spell(ast.unparse(node), offset)
        edits.append(Edit(start, end, spelled))
        imports += needed
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, tuple(imports)


def _end(node: ast.expr) -> int:
    return node.end_col_offset or 0


def _parts(parsed: ast.AST) -> list[tuple[ast.expr, bool]]:
    """Placeholders and library names, with a flag for those that are a whole argument or text and need no
    parentheses.
    """
    found: list[tuple[ast.expr, bool]] = []
    todo: list[tuple[ast.AST, bool]] = [(parsed, True)]
    while todo:
        node, bare = todo.pop()
        if isinstance(node, ast.Attribute) and _root(node) in ROOTS:
            found.append((node, bare))
            continue
        if isinstance(node, ast.Name):
            if node.id.startswith("_stepscope_"):
                found.append((node, bare))
            continue
        for field, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            inner = isinstance(node, (ast.Expr, ast.Assign, ast.keyword, ast.Return, ast.Module)) or (
                isinstance(node, ast.Call) and field == "args"
            )
            todo += [(part, inner) for part in parts if isinstance(part, ast.AST)]
    return found


def _root(node: ast.Attribute) -> str:
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""


def _filled(hole: str, tree: Tree, nodes: Sequence[cst.BaseExpression], *, bare: bool) -> str:
    number = int(hole.split("_")[2])
    if not 1 <= number <= len(nodes):
        raise CannotFixError(f"its rule plans ${number}, but names {len(nodes)} nodes")
    node = nodes[number - 1]
    text = tree.source(node)
    if is_atom(node) or (bare and not isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr))):
        return text if one_expression(text) else f"({text})"
    return f"({text})"


def one_expression(text: str) -> bool:
    """Whether a text is an expression anywhere: its line breaks are inside brackets."""
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True
