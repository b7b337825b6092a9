"""Edits of chains of method calls as a unified diff: calls are moved, inserted and removed, and given arguments.

The chain of one statement is taken apart into the texts of its calls, these are put into their new order, and the
rest of the file stays as it is, comments included. What spans several statements is refused.
"""

from __future__ import annotations

import ast
import difflib
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import source_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.causes.input.source_change import SourceChange
    from stepscope.model.log.events import DatasetMade

_COMMENT = re.compile(r"[ \t]*#[^\r\n]*")
NO_ORDINALS: Mapping[int, tuple[int, int]] = {}
CONTEXT = 3
"""Lines around a change."""


class RefusedError(Exception):
    """Raised if a change cannot be made in the text; the message says why."""


class _Call(Struct):
    """One call of a chain: ``.map(f)`` with the blanks before its dot."""

    method: str
    line: int
    text: str
    comment: str = ""
    """After it, on its last line."""


class _Chain(Struct):
    """The calls of one expression after its root, in the order in which they run."""

    start: int
    end: int
    first_line: int
    calls: list[_Call]
    root: str
    """Name that it begins with: ``dataset`` in ``dataset.map(f)``; else empty."""
    target: str = ""
    """Name that is given its value: ``dataset`` in ``dataset = dataset.map(f)``; else empty."""
    scope: int = 0
    """Number of the function that it stands in."""


def edited(
    text: str,
    changes: Iterable[SourceChange],
    method: Mapping[int, str],
    ordinal: Mapping[int, tuple[int, int]] = NO_ORDINALS,
) -> str:
    """The text after changes.

    Args:
        text: a Python file.
        changes: what to do, in this order.
        method: name of the method that made each dataset, by its id.
        ordinal: which of the calls alike on its line made a dataset, from 1, and how many did; by its id.

    Raises:
        RefusedError: a call is not found, or two of one change stand in different statements.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise RefusedError("the source does not parse") from error
    file = _File(text, tree, method, ordinal)
    for change in changes:
        file.make(change)
    after = file.text()
    try:
        ast.parse(after)
    except SyntaxError as error:
        raise RefusedError("the result would not parse") from error
    return after


class _File:
    """The chains of a file, while they are edited."""

    def __init__(
        self, text: str, tree: ast.Module, method: Mapping[int, str], ordinal: Mapping[int, tuple[int, int]]
    ) -> None:
        self._text = text
        self._ordinal = ordinal
        self._tree = tree
        self._method = method
        self._chains = _chains(text, tree)
        self._found: dict[int, tuple[_Chain, _Call]] = {}
        self._touched: list[_Chain] = []

    def text(self) -> str:
        """The file as it is by now."""
        text = self._text
        used = {id(chain): chain for chain in (*self._touched, *(chain for chain, _ in self._found.values()))}
        for chain in sorted(used.values(), key=lambda c: -c.start):
            text = text[: chain.start] + "".join(c.text + c.comment for c in chain.calls) + text[chain.end :]
            if not chain.calls and chain.target == chain.root:
                text = _without_line(text, chain)
        return text

    def make(self, change: SourceChange) -> None:
        """Make one change."""
        chain, call = self._find(change.made)
        if change.kind == "move" and change.other is not None:
            where, before = self._find(change.other)
            if where is not chain:
                if not _follows(chain, where):
                    raise RefusedError(f"{call.method} and {before.method} do not stand in one chain")
                call.text = call.text.lstrip()
                self._found[change.made.id] = where, call
                self._touched.append(chain)
            chain.calls.remove(call)
            where.calls.insert(where.calls.index(before), call)
        elif change.kind == "insert":
            gap = call.text[: len(call.text) - len(call.text.lstrip())]
            added = f"{gap}.{_named(change.text, self._tree)}"
            new = _Call(change.text.partition("(")[0], 0, added)
            if "\n" not in gap:
                new.comment, call.comment = call.comment, ""
            chain.calls.insert(chain.calls.index(call) + 1, new)
        elif change.kind == "remove":
            chain.calls.remove(call)
        elif change.kind == "keyword":
            call.text = _with_argument(call.text, _named(change.text, self._tree))

    def _find(self, made: DatasetMade) -> tuple[_Chain, _Call]:
        if made.id not in self._found:
            self._found[made.id] = _find(self._chains, made, self._method[made.id], self._ordinal.get(made.id, (1, 1)))
        return self._found[made.id]


def _without_line(text: str, chain: _Chain) -> str:
    """The text without the line of a chain all of whose calls are gone, if it only gives a name its own value."""
    begin, end = text.rfind("\n", 0, chain.start) + 1, text.find("\n", chain.start) + 1
    if end and text[begin:end].strip() == f"{chain.target} = {chain.root}":
        return text[:begin] + text[end:]
    return text


def ordinals(datasets: Sequence[DatasetMade], method: Mapping[int, str]) -> dict[int, tuple[int, int]]:
    """Of each dataset that a pipeline is made of: which of the calls alike on its line made it, and how many did.

    A call in a loop over epochs makes one after the other, of the same inputs, with the same function: it is one call.
    """
    by_call: dict[tuple[str, int, str], list[tuple[object, ...]]] = {}
    found: dict[int, tuple[list[tuple[object, ...]], int]] = {}
    for made in sorted(datasets, key=lambda d: d.id):
        calls = by_call.setdefault((made.file, made.line, method[made.id]), [])
        given = (*made.inputs, made.fn_name, made.fn_file, made.fn_line)
        if given not in calls or not made.inputs:
            calls.append(given)
        found[made.id] = calls, calls.index(given) + 1 if made.inputs else len(calls)
    return {one: (at, len(calls)) for one, (calls, at) in found.items()}


def diff(name: str, before: str, after: str) -> str:
    """A unified diff that ``patch -p1`` takes."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=CONTEXT
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _chains(text: str, tree: ast.AST) -> list[_Chain]:
    """The outermost chains of method calls."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    inner = {id(n.func.value) for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}
    found: list[_Chain] = []
    placed = _placed(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or id(node) in inner:
            continue
        calls: list[_Call] = []
        at: ast.expr = node
        start = end = _commented(text, offset(node.end_lineno or node.lineno, node.end_col_offset or 0))
        while isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute):
            close = offset(at.end_lineno or at.lineno, at.end_col_offset or 0)
            begin = _commented(text, offset(at.func.value.end_lineno or 1, at.func.value.end_col_offset or 0))
            comment = text[close : _commented(text, close)]
            calls.insert(0, _Call(at.func.attr, at.func.end_lineno or at.lineno, text[begin:close], comment))
            start, at = begin, at.func.value
        if calls:
            root = at.id if isinstance(at, ast.Name) else ""
            found.append(_Chain(start=start, end=end, first_line=node.lineno, calls=calls, root=root))
            found[-1].target, found[-1].scope = placed.get(id(node), ("", 0))
    return found


def _commented(text: str, at: int) -> int:
    """The end of the comment that follows on the same line; ``at`` if there is none."""
    found = _COMMENT.match(text, at)
    return found.end() if found is not None else at


def _follows(chain: _Chain, before: _Chain) -> bool:
    """Whether a chain continues what another one gave: ``dataset = a.map(f)``, then ``dataset.batch(8)``."""
    return (
        bool(chain.root) and (chain.root, chain.scope) == (before.target, before.scope) and chain.start > before.start
    )


def _placed(tree: ast.AST) -> dict[int, tuple[str, int]]:
    """(name that is given its value, number of its function) of each expression that is a statement's value."""
    found: dict[int, tuple[str, int]] = {}
    todo: list[tuple[ast.AST, int]] = [(tree, 0)]
    while todo:
        node, scope = todo.pop()
        scope = id(node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        if isinstance(node, (ast.Assign, ast.Return, ast.Expr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            found[id(node.value)] = (names[0] if len(names) == 1 else "", scope)
        todo += [(child, scope) for child in ast.iter_child_nodes(node)]
    return found


def _find(chains: list[_Chain], made: DatasetMade, method: str, ordinal: tuple[int, int]) -> tuple[_Chain, _Call]:
    """The call that made a dataset: on its line, or, before Python 3.11, in the only chain that begins there.

    Of several calls alike the one in its turn, if all of them were made.
    """
    at, count = ordinal
    words = source_change.ALIKE.get(method, (method,))
    exact = [(chain, c) for chain in chains for c in chain.calls if c.method in words and c.line == made.line]
    if exact and len(exact) == count:
        return exact[at - 1]
    first = [(c, call) for c in chains if c.first_line == made.line for call in c.calls if call.method in words]
    if first and len(first) == count and not exact:
        return first[at - 1]
    raise RefusedError(f"line {made.line} has {len(exact) or len(first)} calls of {method}, expected {count}")


def _with_argument(text: str, argument: str) -> str:
    """A call's text with a further argument."""
    body = text[: text.rindex(")")].rstrip()
    comma = "" if body.endswith("(") else " " if body.endswith(",") else ", "
    return f"{body}{comma}{argument}{text[text.rindex(')') :]}"


def _named(text: str, tree: ast.Module) -> str:
    """``text`` with TensorFlow's name in this file."""
    if "tf." not in text:
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in ("tensorflow", "tensorflow.compat.v2") and (
                    alias.asname or alias.name == "tensorflow"
                ):
                    return text.replace("tf.", f"{alias.asname or 'tensorflow'}.")
    raise RefusedError("the file does not import tensorflow under a name")
