"""Whether a function draws at random: what it gives for an element is then another each time, and is not to be kept.

Read from the session's copy of its file, helpers and methods of the same file that it names included. Nothing is
executed, no types are known. What is drawn by code of other files is not seen: "none was seen" is no promise.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    _Placed = ast.expr | ast.stmt

_MODULES = ("random", "secrets", "numpy.random", "scipy.stats", "albumentations", "imgaug")
"""Modules whose functions draw."""
_TENSORFLOW = ("tensorflow", "keras", "tf_keras")
_NO_DRAWS = frozenset(
    {
        *("seed", "set_seed", "get_state", "set_state", "getstate", "setstate", "get_seed", "SeedSequence"),
        *("BitGenerator", "PCG64", "get_global_generator", "set_global_generator", "create_rng_state"),
    }
)
"""Last words of names in these modules that draw nothing."""
_GENERATORS = frozenset(
    {"default_rng", "RandomState", "Generator", "Random", "SystemRandom", "from_seed", "from_state", "SeedGenerator"}
)
"""Last words of what makes a generator: its methods draw."""
_GIVEN = frozenset({"rng", "random_state"})
"""Arguments that are generators by their names."""
_NO_WORK = frozenset(
    f"?{name}" for name in ("range", "len", "enumerate", "zip", "int", "float", "str", "isinstance", "print", "super")
)
"""Callees that are no work worth keeping; those of ``time`` are none either."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Draw(Struct, frozen=True):
    """A call that draws."""

    name: str
    """As the source has it, "np.random.randint"."""
    line: int
    path: tuple[Turn, ...] = ()
    """From the function that draws outwards to the one that was asked for."""
    after_work: bool | None = None
    """Whether the source shows work before it, in these functions; None: the source is not known."""


class Turn(Struct, frozen=True):
    """The line at which a function draws, or calls what does."""

    first: int
    last: int
    line: int


class _File(Struct):
    """What the names of one file stand for."""

    functions: dict[str, list[_Function]] = field(default_factory=dict)
    """By name; of methods ``.name``."""
    imports: dict[str, str] = field(default_factory=dict)
    generators: set[str] = field(default_factory=set)
    """Names and attributes that hold a generator, or a layer that draws, whose state goes on from call to call."""
    seeded: set[str] = field(default_factory=set)
    """Names that hold a generator which a function makes anew with a seed: it gives the same in each call."""


def of_function(source: str, line: int) -> Draw | None:
    """The first call that draws of the function or lambda that begins at ``line``; None where none is seen."""
    tree = loop_source.parsed(source)
    if tree is None:
        return None
    known = _names(tree)
    for function, callers in _reached(tree, line, known):
        called = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        draws = [(draw, node) for node in called if (draw := _draw(node, known)) is not None]
        if draws:
            draw, node = min(draws, key=lambda found: found[0].line)
            path = ((function, node), *callers)
            return replace(
                draw,
                path=tuple(Turn(_first(f), f.end_lineno or f.lineno, at.lineno) for f, at in path),
                after_work=any(_works_before(f, at, known) for f, at in path),
            )
    return None


def works_before(source: str, first: int, line: int) -> bool | None:
    """Whether the function that begins at ``first`` works before a line of it; None: not known."""
    tree = loop_source.parsed(source)
    if tree is None or line <= 0:
        return None
    found = _functions_at(tree, first)
    known, at = _names(tree), ast.Pass(lineno=line)
    return any(_works_before(function, at, known) for function in found) if found else None


def _works_before(function: _Function, at: _Placed, known: _File) -> bool:
    """Whether calls or loops of a function end above a node, or are in what the call there is given."""
    inside = [node for call in ast.walk(function) if _calls(call, at) for node in ast.walk(call) if node is not call]
    return any(
        _is_work(node, known) and (end < at.lineno or any(node is one for one in inside))
        for node, end in _own_nodes(function)
    )


def _calls(node: ast.AST, at: _Placed) -> bool:
    return isinstance(node, ast.Call) and (node is at or node.func is at)


def _own_nodes(function: _Function) -> Iterator[tuple[ast.AST, int]]:
    """What a function itself runs, each with its last line; not the bodies of functions that it defines."""
    left: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        yield node, getattr(node, "end_lineno", 0) or 0
        left += ast.iter_child_nodes(node)


def _is_work(node: ast.AST, known: _File) -> bool:
    if isinstance(node, _LOOPS):
        return True
    if not isinstance(node, ast.Call) or _draw(node, known) is not None:
        return False
    name = _resolved(node.func, known)
    return name not in _NO_WORK and name.partition(".")[0] != "time" and name.rpartition(".")[2] not in _GENERATORS


def reached(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """The function around a line, and those of the same file that it names, and they."""
    return (function for function, _ in _reached(tree, line, _names(tree)))


def _reached(
    tree: ast.Module, line: int, known: _File
) -> Iterator[tuple[_Function, tuple[tuple[_Function, _Placed], ...]]]:
    """Each with the functions that it is reached through, its caller first, and where they name it."""
    left: list[tuple[_Function, tuple[tuple[_Function, _Placed], ...]]]
    left = [(function, ()) for function in _functions_at(tree, line)]
    seen: set[int] = set()
    while left:
        function, callers = left.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function, callers
        for name, at in _mentions(function):
            left += [(callee, ((function, at), *callers)) for callee in known.functions.get(name, [])]


def _functions_at(tree: ast.Module, line: int) -> list[_Function]:
    found = [n for n in ast.walk(tree) if isinstance(n, _FUNCTIONS) and _first(n) <= line <= (n.end_lineno or n.lineno)]
    last = max((_first(n) for n in found), default=0)
    return [n for n in found if _first(n) == last]


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    """As ``co_firstlineno`` has it: with decorators."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(d.lineno for d in decorators)])


def _names(tree: ast.Module) -> _File:
    known = _File()
    methods = {id(n) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for n in c.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            known.functions.setdefault(f".{node.name}" if id(node) in methods else node.name, []).append(node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                known.imports[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known.imports.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    inside = {id(n) for functions in known.functions.values() for f in functions for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                _note(known, target, node.value, local=id(node) in inside)
    return known


def _note(known: _File, target: ast.expr, value: ast.expr, *, local: bool) -> None:
    """What an assignment makes of a name."""
    name = _last(target)
    if not name:
        return
    if isinstance(value, ast.Call):
        made = _resolved(value.func, known)
        if _draws_at_random(made) and made.rpartition(".")[2] in _GENERATORS:
            anew = local and isinstance(target, ast.Name) and bool(value.args or value.keywords)
            (known.seeded if anew else known.generators).add(name)
    if any(isinstance(n, ast.Call) and _is_layer(_resolved(n.func, known)) for n in ast.walk(value)):
        known.generators.add(name)


def _mentions(function: ast.AST) -> Iterator[tuple[str, _Placed]]:
    """Functions that a body names, and where: called, or handed on."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
            yield f".{node.attr}", node


def _draw(node: ast.AST, known: _File) -> Draw | None:
    if not isinstance(node, ast.Call):
        return None
    function, name = node.func, _resolved(node.func, known)
    last = name.rpartition(".")[2]
    draws = _draws_at_random(name) and last not in _GENERATORS | _NO_DRAWS
    if not draws and isinstance(function, ast.Attribute):
        owner = _last(function.value)
        draws = owner in known.generators or (owner in _GIVEN and owner not in known.seeded)
        draws = draws and last not in _NO_DRAWS
    if not draws:  # a layer that draws, made elsewhere
        draws = _last(function) in known.generators
    if not draws and isinstance(function, ast.Call):  # RandomFlip()(image), default_rng().normal()
        draws = _is_layer(_resolved(function.func, known))
    if not draws and isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
        made = function.value
        maker = _resolved(made.func, known)
        draws = _draws_at_random(maker) and maker.rpartition(".")[2] in _GENERATORS and not made.args
    return Draw(ast.unparse(function), node.lineno) if draws else None


def _draws_at_random(name: str) -> bool:
    """Whether a qualified name belongs to what draws."""
    root, _, rest = name.partition(".")
    if root in _TENSORFLOW:
        last = rest.rpartition(".")[2]
        return ".random." in f".{rest}" or last.startswith(("random_", "stateless_random_", "stateless_sample_"))
    return any(name.startswith(f"{module}.") for module in _MODULES)


def _is_layer(name: str) -> bool:
    """Whether it makes a layer of Keras' that augments."""
    return name.partition(".")[0] in _TENSORFLOW and ".layers." in name and name.rpartition(".")[2].startswith("Random")


def _resolved(function: ast.expr, known: _File) -> str:
    """The qualified name of a callee by the file's imports; "" where it is none."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        return ""
    return ".".join([known.imports.get(function.id, f"?{function.id}"), *reversed(parts)])


def _last(target: ast.expr) -> str:
    """``rng`` of ``rng`` and of ``self.rng``."""
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
