"""Actions on statements, decorators and loops."""

from __future__ import annotations

import io
import itertools
import textwrap
import tokenize

import libcst as cst

from stepscope.check.fixing.edits import CannotFixError, Edit
from stepscope.check.fixing.template import one_expression
from stepscope.check.fixing.tree import Statement, Tree
from stepscope.check.fixing.work import PlannedFile

Loop = cst.For | cst.While
Definition = cst.FunctionDef | cst.ClassDef


def hoist_statement(work: PlannedFile) -> tuple[Edit, ...]:
    """Move statements of a loop, function or class (the last node) before it, in their order."""
    tree = work.tree
    loop = work.statement(-1)
    moved = [work.statement(n) for n in range(len(work.plan.spans) - 1)]
    if not isinstance(loop, Loop | Definition) or not moved or any(loop not in tree.around(m) for m in moved):
        raise CannotFixError("the target is not a statement in a loop or definition")
    place = _before(tree, loop)
    indent = tree.indentation(loop)
    edits = list(itertools.chain.from_iterable(_cut(tree, m, moved) for m in moved))
    added = "".join(_dedented(tree, m, indent) for m in moved)
    if isinstance(loop, Definition):
        added += 2 * tree.lines.newline
    return (Edit(place, place, added), *edits)


def hoist_expression(work: PlannedFile) -> tuple[Edit, ...]:
    """Compute an expression of a loop (the last node) before it: ``name = expression``, and ``inner`` in its place.

    ``inner`` is ``$0`` by default, the new name; ``next($0)`` for an iterator.
    """
    tree = work.tree
    node, loop = work.any_expression(0), work.statement(-1)
    if not isinstance(loop, Loop) or loop not in tree.around(node):
        raise CannotFixError("the target is not an expression in a loop")
    name = _fresh(tree, work.told("name"))
    source = tree.source(node)
    value = source if one_expression(source) else f"({source})"
    indent, place = tree.indentation(loop), _before(tree, loop)
    line = f"{indent}{name} = {value}{tree.lines.newline}"
    inner = work.told("inner", "$0").replace("$0", name)
    return (Edit(place, place, line), *tree.rewrite(*tree.whole(node), inner))


def remove_statement(work: PlannedFile) -> tuple[Edit, ...]:
    """Remove statements; the comments on their lines stay."""
    gone = [work.statement(n) for n in range(len(work.plan.spans))]
    return tuple(itertools.chain.from_iterable(_cut(work.tree, s, gone) for s in gone))


def insert_statement(work: PlannedFile) -> tuple[Edit, ...]:
    """Insert ``code`` at ``where``: before or after the statement, or at the beginning or end of its body."""
    tree, where = work.tree, work.told("where")
    statement = work.statement(0)
    newline = tree.lines.newline
    if where in {"first", "last"}:
        body = _body(statement)
        anchor, where = (body[0], "before") if where == "first" else (body[-1], "after")
    else:
        anchor = statement
    indent = tree.indentation(anchor)
    place = _before(tree, anchor) if where == "before" else tree.lines.after(_end(tree, anchor))
    code = work.text(work.told("code"), place)
    text = "".join(f"{indent}{line}{newline}" for line in code.splitlines())
    if place and tree.text[place - 1] not in "\r\n":
        text = newline + text.removesuffix(newline)
    return (Edit(place, place, text),)


def replace_statement(work: PlannedFile) -> tuple[Edit, ...]:
    """Replace a statement by ``code``; ``$1`` and up are texts of the plan's further nodes, which are expressions."""
    tree, statement = work.tree, work.statement(0)
    nodes = [work.any_expression(n) for n in range(1, len(work.plan.spans))]
    start, end = tree.range(statement)[0], _end(tree, statement)
    code = work.text(work.told("code"), start, nodes).splitlines()
    indent = tree.indentation(statement)
    return tree.rewrite(start, end, f"{tree.lines.newline}{indent}".join(code))


def remove_decorator(work: PlannedFile) -> tuple[Edit, ...]:
    """Remove ``@decorator``; the node is its expression."""
    decorator = work.tree.parent(work.any_expression(0))
    if not isinstance(decorator, cst.Decorator):
        raise CannotFixError("the target is not a decorator")
    return _cut_range(work.tree, work.tree.range(decorator)[0], work.tree.whole(decorator.decorator)[1])


def add_decorator(work: PlannedFile) -> tuple[Edit, ...]:
    """Add ``@decorator`` directly above a function's ``def``."""
    tree, function = work.tree, work.statement(0)
    if not isinstance(function, cst.FunctionDef):
        raise CannotFixError("the target is not a function")
    start = tree.range(function)[0]
    place = tree.lines.begin(start)
    text = work.text(work.told("decorator"), place)
    return (Edit(place, place, f"{tree.text[place:start]}@{text}{tree.lines.newline}"),)


# ---- lines ---------------------------------------------------------------------------------------------------------


def _before(tree: Tree, statement: Statement) -> int:
    """The start of a statement's first line, below comments above it."""
    start = _start(tree, statement)
    if isinstance(tree.parent(statement), cst.If):
        raise CannotFixError("it is an elif")
    begin = tree.lines.begin(start)
    if tree.text[begin:start].strip():
        raise CannotFixError("its statement does not start a line")
    return begin


def _start(tree: Tree, statement: Statement) -> int:
    """The start of a statement, including its decorators."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.decorators:
        return tree.range(statement.decorators[0])[0]
    return tree.range(statement)[0]


def _end(tree: Tree, statement: Statement) -> int:
    """The end of a statement, without the comment after it."""
    return tree.range(statement)[1]


def _body(statement: Statement) -> list[Statement]:
    block = getattr(statement, "body", None)
    if not isinstance(block, cst.IndentedBlock) or not block.body:
        raise CannotFixError("its body is not on separate lines")
    return [s for s in block.body if isinstance(s, Statement)]


def _cut(tree: Tree, statement: Statement, gone: list[Statement]) -> tuple[Edit, ...]:
    """Remove a statement; write ``pass`` if its block would be empty."""
    start, end = _start(tree, statement), _end(tree, statement)
    block = tree.parent(statement)
    alone = isinstance(block, cst.IndentedBlock) and all(s in gone for s in block.body)
    if alone and isinstance(block, cst.IndentedBlock) and statement is block.body[0]:
        return tree.rewrite(start, end, "pass")
    return _cut_range(tree, start, end)


def _cut_range(tree: Tree, start: int, end: int) -> tuple[Edit, ...]:
    """Remove whole lines, except a comment after them, which keeps the line."""
    if tree.comment_at(end) != end:
        blanks = len(tree.text[end:]) - len(tree.text[end:].lstrip(" \t"))
        return (Edit(start, end + blanks, ""),)
    return (Edit(tree.lines.begin(start), tree.lines.after(end), ""),)


def _dedented(tree: Tree, statement: Statement, indent: str) -> str:
    """A statement's lines as they stand before a loop; multi-line strings forbid changes inside them."""
    start, end = _start(tree, statement), _end(tree, statement)
    begin = tree.lines.begin(start)
    text = tree.text[begin:end]
    if any(q in text for q in ('"""', "'''")) and ("\n" in text or "\r" in text):
        raise CannotFixError("it contains a multi-line string")
    flat = textwrap.dedent(text) if "\n" in text else text.lstrip()
    return textwrap.indent(flat, indent) + tree.lines.newline


def _fresh(tree: Tree, name: str) -> str:
    """A name that the file does not use."""
    words = {t.string for t in tokenize.generate_tokens(io.StringIO(tree.text).readline) if t.type == tokenize.NAME}
    return next(n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2))) if n not in words)
