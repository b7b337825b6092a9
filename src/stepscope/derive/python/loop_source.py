"""The role of a statement of the training loop: makes the step's input, uses its result, or neither.

Def-use analysis over the body of the loop that encloses the step's call, on the session's copy of the source. No
execution, no types: names assigned, names read.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Role = Literal["feeds", "carries", "call", "uses", "other", "unknown"]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_REPEATING = (ast.For, ast.While, *_COMPREHENSIONS)


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class SourceLoop(Struct, frozen=True):
    """The lines of a ``for`` or ``while`` statement."""

    first: int
    header: int
    """Last line of its head."""
    last: int


def loops_around(source: str, line: int) -> tuple[SourceLoop, ...]:
    """The loops around a line within its innermost function, innermost first; none if the source does not parse."""
    tree = parsed(source)
    if tree is None:
        return ()
    found = [n for n in ast.walk(owner_of(tree, line)) if isinstance(n, _LOOPS) and n.lineno <= line <= _last(n)]
    loops = [SourceLoop(n.lineno, _last(n.test if isinstance(n, ast.While) else n.iter), _last(n)) for n in found]
    return tuple(sorted(loops, key=lambda loop: (-loop.first, loop.last)))


def _last(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def role_of_line(source: str, call_line: int, hot_line: int, model_lines: Collection[int] = ()) -> Role:
    """How the statement at ``hot_line`` relates to the step's call at ``call_line`` (1-based lines of ``source``).

    Args:
        source: text of the file.
        call_line: where the step is called.
        hot_line: the line in question.
        model_lines: further statements that are known to compute a part of the model.

    Returns:
        "feeds": its result reaches the call's arguments; "carries": it does too, but is made from what an earlier
        call, or another part of the model, returned (the next token of a decoder), so that no input pipeline could make
        it; "call": it is the call's own statement; "uses": it reads what the call returned; "other": neither;
        "unknown": the source does not parse, or no loop encloses both lines. Where no loop encloses the call, its
        function is the body of one: each step calls it.
    """
    tree = parsed(source)
    if tree is None:
        return "unknown"
    statements = _repeated(tree, call_line, hot_line)
    call, hot = _at(statements, call_line), _at(statements, hot_line)
    if not call or not hot:
        return "call" if _in_one_comprehension(tree, call_line, hot_line) else "unknown"
    if hot == call:
        return "call"
    if feeding := [unit for unit in hot if unit in _slice_back(statements, call)]:
        carried = any(_is_carried(statements, call, unit, model_lines) for unit in feeding)
        return "carries" if carried else "feeds"
    return "uses" if any(unit in _slice_forward(statements, call) for unit in hot) else "other"


def role_within(source: str, line: int, entered: str, step: str) -> Role:
    """The role of code that the statement of the step's call enters by calling ``entered``: "uses" if it is given what
    ``step`` returned; if it makes the step's arguments, "carries" if it makes them from what an earlier call returned,
    else "feeds".
    """
    tree = parsed(source)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    for call in calls:
        if not call.lineno <= line <= (call.end_lineno or line) or _called(call) != entered.rpartition(".")[2]:
            continue
        given = [n for value in (*call.args, *call.keywords) for n in ast.walk(value)]
        if any(isinstance(n, ast.Call) and _called(n) == step for n in given):
            return "uses"
        loop = _enclosing_loop(tree, line) if tree is not None else None
        statements = _statements(loop) if loop is not None else []
        own = _at(statements, line)
        if own and _reach(_paths(given)[0], _carried(statements, _calling(own))):
            return "carries"
    return "feeds"


def keeps_state(source: str, call_line: int, line: int) -> bool:
    """Whether the statement at ``line`` is a call for its effect on an object that another statement of the loop reads:
    ``tree.update(seen)``, where ``chosen = tree.draw()`` follows. Run less often, it would change what that one gets.
    Methods of ``self`` and functions of modules say nothing of that.
    """
    tree = parsed(source)
    statements = _repeated(tree, call_line, line) if tree is not None else []
    own = _at(statements, line)
    if tree is None:
        return False
    # Modules, self and cls hold all of a program, not one object's state.
    changed = {path for unit in own for path in unit.changed} - _imported(tree) - {"self", "cls"}
    return any(_reach(one.paths_read, changed) for one in statements if not one.changed & changed)


def _imported(tree: ast.Module) -> set[str]:
    """Names that a file binds by imports: modules, as a rule."""
    names = [name for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for name in n.names]
    return {(name.asname or name.name).partition(".")[0] for name in names}


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def in_header(source: str, call_line: int, line: int) -> bool:
    """Whether a line belongs to the header of the ``for`` around the step's call, that is to the iterable."""
    tree = parsed(source)
    loop = _enclosing_loop(tree, call_line) if tree is not None else None
    if not isinstance(loop, ast.For):
        return False
    header = _Unit(loop)
    return header.first <= line <= header.last


def takes_element(source: str, line: int) -> bool:
    """Whether the time at a line may be that of taking the next element of something: it calls ``next``, or is the
    head of a ``for`` whose body stands on other lines, and which counts no numbers.
    """
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and node.lineno <= line <= _last(node) and _called(node) == "next":
            return bool(node.args) and not isinstance(node.args[0], ast.GeneratorExp)
        if isinstance(node, ast.For | ast.AsyncFor) and node.lineno <= line <= _last(node.iter):
            counts = isinstance(node.iter, ast.Call) and _called(node.iter) == "range"
            return node.body[0].lineno > _last(node.iter) and not counts
    return False


def feeds(source: str, line: int, call_line: int) -> bool:
    """Whether a value made by the statement at ``line`` reaches the statement at ``call_line``, within one function.

    False if the source does not parse, or if one of the lines is no statement of the function around the call.
    """
    tree = parsed(source)
    if tree is None:
        return False
    owner = _innermost_function(tree, call_line)
    units = _flat(owner.body if owner is not None else tree.body)
    made, call = _at(units, line), _at(units, call_line)
    return made != call and any(unit in _slice_back(units, call) for unit in made)


def parsed(source: str) -> ast.Module | None:
    """The syntax tree; None if the text does not parse with this Python version or nests too deep."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def repeating_at(source: str, line: int) -> tuple[int, int] | None:
    """First and last line of the outermost loop or comprehension around a line, within its innermost function.

    None when there is none or the source does not parse.
    """
    tree = parsed(source)
    if tree is None:
        return None
    inner = _innermost_function(tree, line)
    if inner is None:
        return None
    loops = [n for n in ast.walk(inner) if isinstance(n, _REPEATING) and _covers(n, line)]
    first = min(loops, key=lambda n: n.lineno, default=None)
    return (first.lineno, first.end_lineno or first.lineno) if first is not None else None


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _enclosing_loop(tree: ast.AST, line: int) -> ast.For | ast.While | None:
    """The innermost for or while statement around a line, within one function."""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While) and _covers(n, line)]
    return max(loops, key=lambda n: n.lineno, default=None)


def _repeated(tree: ast.AST, call_line: int, line: int) -> list[_Unit]:
    """The statements of what is done in each step: the loop around the call, or its function; none if ``line`` is
    elsewhere, or if the loop may be a comprehension.
    """
    loop = _enclosing_loop(tree, call_line)
    if loop is not None:
        return _statements(loop) if _covers(loop, line) else []
    if any(isinstance(n, _COMPREHENSIONS) and _covers(n, call_line) for n in ast.walk(tree)):
        return []
    function = _innermost_function(tree, call_line)
    return _flat(function.body) if function is not None and _covers(function, line) else []


def owner_of(tree: ast.Module, line: int) -> ast.AST:
    """The innermost function around a line; the module, if it stands in none."""
    return _innermost_function(tree, line) or tree


def _innermost_function(tree: ast.AST, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    functions = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS) and _covers(n, line)]
    return max(functions, key=lambda n: n.lineno, default=None)


def _in_one_comprehension(tree: ast.AST, call_line: int, hot_line: int) -> bool:
    """Whether both lines belong to what a comprehension makes for each element: ``[step(x) for x in data]``."""
    kinds = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
    made = [n.elt for n in ast.walk(tree) if isinstance(n, kinds)]
    return any(n.lineno <= call_line <= (n.end_lineno or 0) >= hot_line >= n.lineno for n in made)


class _Unit:
    """A simple statement of the loop, or the header of a compound one."""

    def __init__(self, node: ast.stmt) -> None:
        self.first = node.lineno
        parts: list[ast.AST]
        if isinstance(node, ast.For):
            parts = [node.target, node.iter]
        elif isinstance(node, ast.While | ast.If):
            parts = [node.test]
        elif isinstance(node, ast.With):
            parts = list(node.items)
        elif isinstance(node, ast.Try):
            parts = []
        else:
            parts = [node]
        ends = [getattr(n, "end_lineno", 0) or 0 for p in parts for n in ast.walk(p)]
        self.last = max([self.first, *ends])
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.touched: set[str] = set()
        """Objects whose methods it calls, which may change them."""
        inside = [n for part in parts for n in ast.walk(part)]
        for node_inside in inside:
            self._note(node_inside)
        self.calls = any(isinstance(n, ast.Call) for n in inside)
        """Whether it calls anything."""
        self.paths_read, self.paths_written = _paths(inside)
        """Dotted names: ``self.tokens`` is not ``self.batches``."""
        self.changed: set[str] = set()
        """The object whose method it calls for its effect alone: ``tokens.append(x)``."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            changed = node.value.func.value if isinstance(node.value.func, ast.Attribute) else None
            self.changed = {_path(changed)} - {""} if changed is not None else set()
            self.paths_written |= self.changed

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            (self.reads if isinstance(node.ctx, ast.Load) else self.writes).add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            self.writes.update(_root(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.touched.update(_root(node.func.value))


def _root(node: ast.AST) -> tuple[str, ...]:
    """The name to which an attribute or item belongs; none for other expressions."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return (node.id,) if isinstance(node, ast.Name) else ()


def _paths(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Dotted names that are read, and those that are bound; an item counts as its container."""
    nodes = list(nodes)
    inner = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    read: set[str] = set()
    written: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or id(node) in inner:
            continue
        stored = not isinstance(node.ctx, ast.Load)
        if not isinstance(node, ast.Subscript) or stored:
            (written if stored else read).add(_path(node))
    return read - {""}, written - {""}


def _path(node: ast.AST) -> str:
    """``self.tokens`` for ``self.tokens[-1]``; "" if it is no name."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _reach(read: set[str], made: set[str]) -> bool:
    """Whether something read was made, or is a part of something made."""
    return any(path == other or path.startswith(other + ".") for path in read for other in made)


def _is_carried(units: list[_Unit], call: list[_Unit], hot: _Unit, model_lines: Collection[int]) -> bool:
    """Whether a statement computes a part of the model, or uses what such a statement or the call returned."""
    model = [*_calling(call), *(u for u in units[1:] if any(u.first <= line <= u.last for line in model_lines))]
    return hot in model or _reach(hot.paths_read, _carried(units, model))


def _calling(line: list[_Unit]) -> list[_Unit]:
    """Of the statements on the call's line those that call anything: a counter that it moves on is not returned."""
    return [unit for unit in line if unit.calls] or line


def _carried(units: list[_Unit], model: list[_Unit]) -> set[str]:
    """Paths that hold what the model returned, in this iteration of the loop or a later one."""
    made = {path for unit in model for path in unit.paths_written}
    size = -1
    while size != len(made):
        size = len(made)
        for unit in units:
            if _reach(unit.paths_read, made):
                made |= unit.paths_written
    return made


def _statements(loop: ast.For | ast.While) -> list[_Unit]:
    header = _Unit(loop)
    if isinstance(loop, ast.For):  # the iterable was made before the first iteration
        header.paths_read = set()
    return [header, *_flat(loop.body)]


def _flat(body: list[ast.stmt]) -> list[_Unit]:
    """The statements of a body and of its compound statements, in order, without definitions."""
    units: list[_Unit] = []
    todo = list(reversed(body))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        units.append(_Unit(node))
        inner = [*getattr(node, "body", []), *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
        todo.extend(reversed([n for n in inner if isinstance(n, ast.stmt)]))
    return units


def _at(units: list[_Unit], line: int) -> list[_Unit]:
    """The smallest units that cover a line: it may hold several statements, or a short ``if`` with what it does."""
    covering = [u for u in units if u.first <= line <= u.last]
    least = min((u.last - u.first for u in covering), default=0)
    return [u for u in covering if u.last - u.first == least]


def _slice_back(units: list[_Unit], call: list[_Unit]) -> list[_Unit]:
    """Units whose written names reach what the call reads."""
    wanted = {name for unit in call for name in unit.reads}
    found: list[_Unit] = []
    grew = True
    while grew:
        grew = False
        for unit in units:
            if unit not in call and unit not in found and unit.writes & wanted:
                found.append(unit)
                wanted |= unit.reads
                grew = True
    return found


def _slice_forward(units: list[_Unit], call: list[_Unit]) -> list[_Unit]:
    """Units that read what the call wrote, directly or through others."""
    made = {name for unit in call for name in unit.writes}
    found: list[_Unit] = []
    grew = True
    while grew:
        grew = False
        for unit in units:
            if unit not in call and unit not in found and unit.reads & made:
                found.append(unit)
                made |= unit.writes | unit.touched
                grew = True
    return found
