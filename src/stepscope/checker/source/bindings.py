"""Scopes and bindings of one file: plain data that ``flow`` fills and everything above reads."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "assign", "unpack", "element", "with", "aug", "import", "def", "class", "param", "except", "phi", "match"
]
"""What bound a name. element: of what a loop or comprehension iterates over. phi: a loop's head, see ``sources``."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
LoopNode = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True, eq=False)
class Binding:
    """One place that gives a name a value. Compared by identity."""

    kind: Kind
    name: str
    node: ast.AST
    """The statement or target that binds."""
    scope: Scope
    value: ast.expr | None = None
    """assign, aug: the right side. unpack: the whole right side. element: what is iterated over. with: the manager."""
    path: tuple[int, ...] = ()
    """unpack, element: where in the value's structure the name stands; -1 for a starred one."""
    target: str = ""
    """import: the qualified name as written, relative ones made absolute."""
    annotation: ast.expr | None = None
    sources: tuple[Binding, ...] = ()
    """phi: what may come in from before the loop and from the end of its body. aug: what was there before."""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class or function body (comprehensions belong to the scope around them)."""

    node: ast.Module | ast.ClassDef | FunctionNode
    parent: Scope | None
    name: str
    """Qualified inside of the module: ``Trainer.step``; "" for the module."""
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """Every binding of each name, in the order of the source."""
    end: dict[str, tuple[Binding, ...]] = field(default_factory=dict)
    """What each name is bound to where the body ends."""
    shared: set[str] = field(default_factory=set)
    """Names declared global or nonlocal."""
    stars: list[str] = field(default_factory=list)
    """Modules of ``from m import *``."""
    returns: list[ast.expr] = field(default_factory=list)
    yields: list[ast.expr] = field(default_factory=list)
    attributes: dict[str, list[Binding]] = field(default_factory=dict)
    """Of a class: what its methods assign to attributes of self."""
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    """Functions defined directly here: the methods of a class."""

    @property
    def is_function(self) -> bool:
        """Not a module or class body."""
        return isinstance(self.node, FUNCTIONS)


@dataclass(slots=True)
class Flow:
    """What one pass over a file finds out."""

    module: Scope
    scopes: dict[ast.AST, Scope]
    """Module, class and function nodes to their scopes."""
    uses: dict[ast.Name, tuple[Binding, ...]]
    """Names that are read, to what may have bound them in the same scope. Not here: names of outer scopes."""
    outer: dict[ast.Name, Scope]
    """The other names that are read, to the scope in which they stand."""
    parents: dict[ast.AST, ast.AST]
    calls: dict[str, list[ast.Call]]
    """Calls by the last word of what is called: ``a.b.map(f)`` under "map"."""
    looped: dict[ast.Call, None]
    """Calls in a loop or comprehension of their own function; some of them in what it iterates over."""
    nodes: dict[type[ast.AST], list[ast.AST]]
    """Statements, loops, lambdas and comprehensions by type."""
    stores: list[ast.expr]
    """Attributes and subscripts that are assigned or deleted."""
    imported: dict[str, list[str]]
    """Names that imports bind, in whatever scope, to what they import."""
    aliases: list[tuple[str, ast.expr]]
    """Names with what is assigned to them, or is their default, where that is another name or dotted."""
