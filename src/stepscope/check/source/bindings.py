"""Scopes and bindings of one file: plain data, filled by ``flow`` and read by all layers above."""

from __future__ import annotations

import ast
from typing import Literal

from msgspec import Struct, field

Kind = Literal[
    "assign", "unpack", "element", "with", "aug", "import", "def", "class", "param", "except", "phi", "match"
]
"""Kind of a binding. element: from the iterable of a loop or comprehension. phi: a loop's head, see ``sources``."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LoopNode = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Binding(Struct, eq=False):
    """One place that gives a name a value. Compared by identity."""

    kind: Kind
    name: str
    node: ast.AST
    """Statement or target that binds the name."""
    scope: Scope
    value: ast.expr | None = None
    """Value. assign, aug: the right side. unpack: the whole right side. element: the iterable. with: the manager."""
    path: tuple[int, ...] = ()
    """Position of the name in the value's structure, for unpack and element; -1 for a starred one."""
    target: str = ""
    """Imported qualified name as written, with relative ones made absolute."""
    annotation: ast.expr | None = None
    sources: tuple[Binding, ...] = ()
    """Incoming bindings. phi: from before the loop and from the end of its body. aug: the previous ones."""


class Scope(Struct, eq=False):
    """A module, class or function body (comprehensions belong to the scope around them)."""

    node: ast.Module | ast.ClassDef | FunctionNode
    parent: Scope | None
    name: str
    """Name qualified within the module: ``Trainer.step``; "" for the module."""
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """Bindings of each name, in source order."""
    end: dict[str, tuple[Binding, ...]] = field(default_factory=dict)
    """Bindings of each name at the end of the body."""
    shared: set[str] = field(default_factory=set)
    """Names declared global or nonlocal."""
    stars: list[str] = field(default_factory=list)
    """Modules of ``from m import *``."""
    returns: list[ast.expr] = field(default_factory=list)
    yields: list[ast.expr] = field(default_factory=list)
    attributes: dict[str, list[Binding]] = field(default_factory=dict)
    """Attributes of self that the methods of a class assign."""
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    """Functions defined directly here: the methods of a class."""

    @property
    def is_function(self) -> bool:
        """Whether the scope is a function, not a module or class body."""
        return isinstance(self.node, FUNCTIONS)


class Flow(Struct):
    """Result of one pass over a file."""

    module: Scope
    scopes: dict[ast.AST, Scope]
    """Scopes of module, class and function nodes."""
    uses: dict[ast.Name, tuple[Binding, ...]]
    """Names that are read, with the bindings in the same scope that may reach them; names of outer scopes are in
    ``outer``."""
    outer: dict[ast.Name, Scope]
    """Names read from outer scopes, with the scope that reads them."""
    parents: dict[ast.AST, ast.AST]
    calls: dict[str, list[ast.Call]]
    """Calls by the last word of the called name: ``a.b.map(f)`` under "map"."""
    looped: dict[ast.Call, None]
    """Calls in a loop or comprehension of their own function; some of them in its iterable."""
    nodes: dict[type[ast.AST], list[ast.AST]]
    """Statements, loops, lambdas and comprehensions by type."""
    stores: list[ast.expr]
    """Attributes and subscripts that are assigned or deleted."""
    imported: dict[str, list[str]]
    """Names that imports bind in any scope, with what they import."""
    aliases: list[tuple[str, ast.expr]]
    """Names whose assigned or default value is another name or dotted expression, with that value."""
