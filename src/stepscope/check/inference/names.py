"""The objects that names and dotted expressions stand for: library objects by qualified name, or parts of the project.

Follows imports of every form, star imports, re-exports, aliases by assignment and both arms of try/except imports.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable

from msgspec import Struct

from stepscope.check.inference.memo import Memo, Questions
from stepscope.check.inference.signatures import KINDS
from stepscope.check.inference.tags import UNKNOWN_VALUE, Class, Value
from stepscope.check.source.bindings import FUNCTIONS, Binding, FunctionNode, Scope
from stepscope.check.source.canonical import canonical
from stepscope.check.source.modules import Module, Project
from stepscope.check.source.syntax import default

MAX_DEPTH = 24
"""Depth of aliases and bases; a longer chain is a cycle."""
MAX_WAYS = 8
"""Number of objects that one name may stand for; more are treated as unknown."""


class Function(Struct, frozen=True):
    """A function, method or lambda of the project."""

    module: Module
    node: FunctionNode
    scope: Scope
    cls: Class | None = None
    """Class that defines a method."""

    @property
    def name(self) -> str:
        """The function's own name; ``<lambda>``."""
        return self.scope.name.rpartition(".")[2]

    @property
    def qualified(self) -> str:
        """``package.module.Class.method``."""
        return f"{self.module.name}.{self.scope.name}"

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters that can be given by position, including self and cls."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    @property
    def body(self) -> list[ast.AST]:
        """The statements, or the expression of a lambda."""
        return [self.node.body] if isinstance(self.node, ast.Lambda) else list(self.node.body)

    @property
    def decorators(self) -> list[ast.expr]:
        """Its decorators, as written."""
        return [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list


_ALIASES = (ast.Name, ast.Attribute, ast.Lambda, ast.IfExp, ast.NamedExpr)
_NAMED = (ast.Name, ast.Attribute, ast.Lambda, ast.IfExp, ast.NamedExpr, ast.Subscript)
"""Expressions that may stand for an object with a name."""
Thing = str | Function | Class | Module
"""An object: a library's by its canonical name, or a part of the project."""


class NameResolver:
    """Resolution of expressions to objects.

    Args:
        project: the modules.
        value_of: what is known about an expression's value (for an object whose method is called).
        questions: the open questions, shared with the analysis behind ``value_of``.
    """

    def __init__(self, project: Project, value_of: Callable[[Module, ast.expr], Value], questions: Questions) -> None:
        self.project = project
        self.value_of = value_of
        self._things: Memo[ast.expr, tuple[Thing, ...]] = Memo(questions, (), self._resolved)
        self._functions: dict[ast.AST, Function] = {}
        self._libraries: dict[Binding, str] = {}
        self._exports: Memo[tuple[Module, str], tuple[Thing, ...]] = Memo(questions, (), self._exported)

    def name(self, module: Module, expr: ast.expr) -> str:
        """The qualified name of a library or project object; "" if it is unknown or not a single one."""
        for thing in self.things(module, expr):
            if isinstance(thing, str):
                return thing
            return thing.qualified if isinstance(thing, Function) else thing.name
        return ""

    def names(self, module: Module, expr: ast.expr) -> tuple[str, ...]:
        """Every library name that an expression may stand for."""
        return tuple(thing for thing in self.things(module, expr) if isinstance(thing, str))

    def things(self, module: Module, expr: ast.expr) -> tuple[Thing, ...]:
        """Everything that an expression may stand for, without repeats; empty if nothing is known."""
        found = self._things.kept.get(expr)
        if found is None:
            if not isinstance(expr, _NAMED):
                return ()
            found = self._imported_name(module, expr) or self._things.get(expr, module, expr)
        return found

    def is_foreign(self, module: Module, expr: ast.expr) -> bool:
        """Whether a quick check shows that an expression is a library's or Python's own, not the project's."""
        unbound = isinstance(expr, ast.Name) and not self.reaching(module, expr)
        return unbound or bool(self._imported_name(module, expr))

    def _imported_name(self, module: Module, expr: ast.expr) -> tuple[Thing, ...]:
        """The object of an expression that begins with a library import: the most frequent case, which needs no
        inference.
        """
        attributes: list[str] = []
        root = expr
        while isinstance(root, ast.Attribute):
            attributes.append(root.attr)
            root = root.value
        bindings = self.reaching(module, root) if isinstance(root, ast.Name) else ()
        name = self._library(module, bindings[0]) if len(bindings) == 1 else ""
        if not name:
            return ()
        for attribute in reversed(attributes):
            name = canonical(f"{name}.{attribute}")
        self._things.kept[expr] = (name,)
        return (name,)

    def _library(self, module: Module, binding: Binding) -> str:
        """The canonical name of a library object that an import gives; "" for the project's, and for other bindings."""
        known = self._libraries.get(binding)
        if known is None:
            parts = binding.target.split(".")
            heads = (".".join(parts[:size]) for size in range(1, len(parts) + 1))
            own = binding.kind != "import" or any(self.project.find(module, head) is not None for head in heads)
            known = self._libraries[binding] = "" if own else canonical(binding.target)
        return known

    def _resolved(self, module: Module, expr: ast.expr) -> tuple[Thing, ...]:
        return _distinct(self._resolve(module, expr))

    def _resolve(self, module: Module, expr: ast.expr) -> Iterable[Thing]:
        if isinstance(expr, ast.Name):
            bindings = self.reaching(module, expr)
            for binding in bindings:
                yield from self.bound(module, binding)
            if not bindings:
                yield from self._starred(module, expr.id)
        elif isinstance(expr, ast.Attribute):
            bases = self.things(module, expr.value)
            for base in bases:
                yield from self.attribute(module, base, expr.attr)
            if not bases:
                yield from self._member(module, expr)
        elif isinstance(expr, ast.Lambda):
            yield self.function(module, expr)
        elif isinstance(expr, ast.IfExp):
            yield from self.things(module, expr.body)
            yield from self.things(module, expr.orelse)
        elif isinstance(expr, ast.NamedExpr):
            yield from self.things(module, expr.value)
        elif isinstance(expr, ast.Subscript):  # a generic: tf.data.Dataset[...]
            yield from (t for t in self.things(module, expr.value) if isinstance(t, (str, Class)))

    # ---- bindings ------------------------------------------------------------------------------------------------

    def reaching(self, module: Module, name: ast.Name) -> tuple[Binding, ...]:
        """The bindings that may reach a name where it is read; phis are replaced by their sources."""
        found = module.flow.uses.get(name)
        if found is None:
            found = self._outer(module, name)
        return flat(found)

    def _outer(self, module: Module, name: ast.Name) -> tuple[Binding, ...]:
        scope: Scope | None = module.flow.outer.get(name) or module.scope_of(name)
        first = scope
        while scope is not None:
            if name.id in scope.bindings and (scope is first or not isinstance(scope.node, ast.ClassDef)):
                return tuple(scope.bindings[name.id]) if scope is first else self._global(scope, name.id)
            scope = scope.parent
        return ()

    @staticmethod
    def _global(scope: Scope, name: str) -> tuple[Binding, ...]:
        """The bindings of a name at the end of its scope, and those made by inner functions."""
        end = scope.end.get(name, ())
        return (*end, *(b for b in scope.bindings[name] if b.scope is not scope and b not in end)) or tuple(
            scope.bindings[name]
        )

    def bound(self, module: Module, binding: Binding) -> Iterable[Thing]:
        """The objects that a binding's name stands for."""
        if binding.kind == "import":
            yield from self.dotted(module, binding.target)
        elif binding.kind in ("def", "class"):
            node = binding.node
            yield (
                self.function(module, node) if isinstance(node, FUNCTIONS) else Class(module, module.flow.scopes[node])
            )
        elif binding.kind == "assign" and isinstance(binding.value, _ALIASES):
            yield from self.things(module, binding.value)
        elif binding.kind == "param" and isinstance(binding.scope.node, FUNCTIONS):
            given = default(binding.scope.node.args, binding.name)
            if isinstance(given, (ast.Name, ast.Attribute)):
                yield from self.things(module, given)

    def function(self, module: Module, node: FunctionNode) -> Function:
        """The project function of a node."""
        if node not in self._functions:
            scope = module.flow.scopes[node]
            owner = scope.parent
            cls = Class(module, owner) if owner is not None and isinstance(owner.node, ast.ClassDef) else None
            self._functions[node] = Function(module, node, scope, cls)
        return self._functions[node]

    # ---- modules and attributes ----------------------------------------------------------------------------------

    def dotted(self, module: Module, target: str) -> Iterable[Thing]:
        """The objects that ``import target`` or ``from a import b`` (target ``a.b``) give."""
        parts = target.split(".")
        for size in range(len(parts), 0, -1):
            there = self.project.find(module, ".".join(parts[:size]))
            if there is None:
                continue
            things: tuple[Thing, ...] = (there,)
            for attr in parts[size:]:
                things = _distinct(t for thing in things for t in self.attribute(module, thing, attr))
            yield from things
            return
        yield canonical(target)

    def attribute(self, module: Module, base: Thing, attr: str) -> Iterable[Thing]:
        """The objects that ``base.attr`` stands for."""
        if isinstance(base, str):
            yield canonical(f"{base}.{attr}")
        elif isinstance(base, Module):
            yield from self.export(base, attr)
        elif isinstance(base, Class):
            yield from self.class_attribute(base, attr)
        del module

    def export(self, module: Module, name: str) -> tuple[Thing, ...]:
        """The objects that a project module exports under a name, including submodules of a package."""
        return self._exports.get((module, name), module, name)

    def _exported(self, module: Module, name: str) -> tuple[Thing, ...]:
        return _distinct(self._export(module, name))

    def _export(self, module: Module, name: str) -> Iterable[Thing]:
        scope = module.flow.module
        if name in scope.bindings:
            for binding in flat(self._global(scope, name)):
                yield from self.bound(module, binding)
            return
        found = tuple(self._starred(module, name))
        if not found and module.package == module.name:
            submodule = self.project.find(module, f"{module.package}.{name}")
            found = (submodule,) if submodule is not None else ()
        yield from found

    def exported(self, module: Module, name: str) -> tuple[Binding, ...]:
        """The bindings of a name in a module after it has run."""
        scope = module.flow.module
        return flat(self._global(scope, name)) if name in scope.bindings else ()

    def _starred(self, module: Module, name: str) -> Iterable[Thing]:
        if name.startswith("_"):
            return
        for target in module.flow.module.stars:
            there = self.project.find(module, target)
            if there is not None and there is not module:
                yield from self.export(there, name)
            elif there is None and _may_export(target, name):
                yield canonical(f"{target}.{name}")

    def class_attribute(self, cls: Class, attr: str, depth: int = 0) -> Iterable[Thing]:
        """A method or class attribute of a class or its project bases."""
        if attr in cls.scope.bindings:
            for binding in flat(tuple(cls.scope.end.get(attr, cls.scope.bindings[attr]))):
                yield from self.bound(cls.module, binding)
        elif depth < MAX_DEPTH:
            for base in self.bases(cls):
                if isinstance(base, Class):
                    yield from self.class_attribute(base, attr, depth + 1)

    def bases(self, cls: Class) -> tuple[Thing, ...]:
        """The known bases of a class."""
        node = cls.scope.node
        exprs = node.bases if isinstance(node, ast.ClassDef) else []
        return _distinct(t for base in exprs for t in self.things(cls.module, base) if isinstance(t, (str, Class)))

    def lineage(self, cls: Class, depth: int = 0) -> Iterable[str]:
        """Names of all library and project classes that a project class inherits from."""
        yield cls.name
        for base in self.bases(cls) if depth < MAX_DEPTH else ():
            if isinstance(base, str):
                yield base
            elif isinstance(base, Class):
                yield from self.lineage(base, depth + 1)

    def _member(self, module: Module, expr: ast.Attribute) -> Iterable[Thing]:
        """A method of an object: of a project class, or of a library class by its qualified name."""
        value = self.value_of(module, expr.value)
        if value.many or value == UNKNOWN_VALUE:
            return
        found: tuple[Thing, ...] = ()
        owner = None
        if value.cls is not None:
            found = tuple(self.class_attribute(value.cls, expr.attr))
            owner = None if found else self.owner(value.cls, expr.attr)
            if owner is not None:
                bindings = owner.scope.attributes[expr.attr]
                found = tuple(t for b in bindings for t in self.bound(owner.module, b))
        if found:
            yield from found
        elif owner is None and (kind := KINDS.get(value.tag, value.kind)) and (not value.cls or kind != value.cls.name):
            yield canonical(f"{kind}.{expr.attr}")

    def owner(self, cls: Class, attr: str, depth: int = 0) -> Class | None:
        """The class, among a class and its project bases, whose methods assign ``self.attr``."""
        if cls.scope.attributes.get(attr):
            return cls
        for base in self.bases(cls) if depth < MAX_DEPTH else ():
            if isinstance(base, Class) and (found := self.owner(base, attr, depth + 1)):
                return found
        return None


def flat(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """Bindings with phis replaced by their sources."""
    bindings = tuple(bindings)
    if not any(b.kind == "phi" for b in bindings):
        return bindings
    found: dict[Binding, None] = {}
    seen: set[Binding] = set()
    todo = list(reversed(bindings))
    while todo:
        binding = todo.pop()
        if binding in seen:
            continue
        seen.add(binding)
        if binding.kind == "phi":
            todo += reversed(binding.sources)
        else:
            found[binding] = None
    return tuple(found)


def _distinct(things: Iterable[Thing]) -> tuple[Thing, ...]:
    found = tuple(things)
    if len(found) > 1:
        found = tuple(dict.fromkeys(found))
    return found if len(found) <= MAX_WAYS else ()


def _may_export(module: str, name: str) -> bool:
    """Whether a star import of a library can provide a name: frameworks only, and no Python builtins."""
    return module.partition(".")[0] in {"tensorflow", "keras", "tf_keras", "numpy"} and name not in _BUILTINS


_BUILTINS = frozenset(vars(builtins))
