"""The state of a pass over a file: the scope and the bindings of its names.

``flow`` walks the statements and expressions.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from stepscope.check.source.bindings import FUNCTIONS, Binding, Flow, FunctionNode, Kind, Scope
from stepscope.check.source.syntax import children

Env = dict[str, tuple[Binding, ...]]
ALIASES = (ast.Name, ast.Attribute, ast.IfExp, ast.NamedExpr)
"""Expressions that may stand for the object of another name."""


class Scoping(ABC):
    """The state of a pass.

    Args:
        tree: the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None, "")
        self.flow = Flow(self.module, {tree: self.module}, {}, {}, {}, {}, {}, {}, [], {}, [])
        self.uses = self.flow.uses
        self.parents = self.flow.parents
        self.scope = self.module
        self.env: Env = {}
        self.bound: list[str] = []
        """Names bound or unbound so far, in any scope: the changes since some point."""

    def changed(self, since: int) -> set[str]:
        """The names that may have changed since ``bound`` had a given length."""
        return set(self.bound[since:])

    @abstractmethod
    def expr(self, node: ast.AST, parent: ast.AST) -> None:
        """Walk an expression: parts of an assignment target are read."""

    def parameters(self, scope: Scope, args: ast.arguments) -> None:
        """Bind a function's parameters."""
        self.flow.aliases += _default_aliases(args)
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            self._parameter(scope, arg)
        for extra in (args.vararg, args.kwarg):
            if extra is not None:
                self._parameter(scope, extra)

    def _parameter(self, scope: Scope, arg: ast.arg) -> None:
        binding = Binding("param", arg.arg, arg, scope, annotation=arg.annotation)
        scope.bindings.setdefault(arg.arg, []).append(binding)
        scope.end[arg.arg] = (binding,)

    def open(self, node: ast.ClassDef | FunctionNode, name: str) -> Scope:
        """The scope of a class or function defined here."""
        outer = self.scope.name
        scope = Scope(node, self.scope, f"{outer}.{name}" if outer else name)
        self.flow.scopes[node] = scope
        return scope

    def bind(self, binding: Binding) -> None:
        """Bind a name of this scope."""
        name, scope = binding.name, self.scope
        scope.bindings.setdefault(name, []).append(binding)
        self.env[name] = (binding,)
        self.bound.append(name)
        if name in scope.shared:
            self._owner(name).bindings.setdefault(name, []).append(binding)

    def _owner(self, name: str) -> Scope:
        outer = self.scope.parent
        while outer is not None and outer.parent is not None:
            if outer.is_function and name in outer.bindings:
                return outer
            outer = outer.parent
        return self.module

    def assign(
        self, target: ast.expr, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...] = ()
    ) -> None:
        """Bind the target of ``=``, ``in`` or ``as``."""
        if isinstance(target, ast.Name):
            self.bind(Binding(kind, target.id, node, self.scope, value, path))
            if kind == "assign" and isinstance(value, ALIASES):
                self.flow.aliases.append((target.id, value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, node, kind, path)
        elif isinstance(target, ast.Starred):
            self.parents[target.value] = target
            self.assign(target.value, value, node, kind, path)
        else:
            self.flow.stores.append(target)
            for child in children(target):
                self.expr(child, target)
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                self._attribute(target, value, node, kind, path)

    def _unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...]
    ) -> None:
        """Bind the elements; a literal of the same length is split."""
        literal = value.elts if kind == "assign" and isinstance(value, (ast.Tuple, ast.List)) else []
        starred = any(isinstance(e, ast.Starred) for e in [*target.elts, *literal])
        for index, element in enumerate(target.elts):
            self.parents[element] = target
            if len(literal) == len(target.elts) and not starred:
                self.assign(element, literal[index], node, "assign")
            else:
                inner = "unpack" if kind == "assign" else kind
                self.assign(element, value, node, inner, (*path, -1 if starred else index))

    def _attribute(
        self, target: ast.Attribute, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...]
    ) -> None:
        """Bind ``self.x = value`` in the class around the method."""
        owner = self._class_of(target.value)
        if owner is not None:
            owner.attributes.setdefault(target.attr, []).append(
                Binding(kind, target.attr, node, self.scope, value, path)
            )

    def _class_of(self, base: ast.expr) -> Scope | None:
        """The class whose instance a first parameter is."""
        scope: Scope | None = self.scope
        while scope is not None and scope.parent is not None:
            if isinstance(scope.node, FUNCTIONS) and isinstance(scope.parent.node, ast.ClassDef):
                args = scope.node.args
                first = next(iter([*args.posonlyargs, *args.args]), None)
                named = isinstance(base, ast.Name) and first is not None and base.id == first.arg
                return scope.parent if named else None
            scope = scope.parent
        return None

    def imported(self, name: str, target: str, node: ast.AST) -> None:
        """Bind an imported name."""
        self.flow.imported.setdefault(name, []).append(target)
        self.bind(Binding("import", name, node, self.scope, target=target))


def _default_aliases(args: ast.arguments) -> list[tuple[str, ast.expr]]:
    positional = [*args.posonlyargs, *args.args]
    pairs = zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
    given = [*pairs, *((arg, d) for arg, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None)]
    return [(arg.arg, default) for arg, default in given if isinstance(default, ALIASES)]


def merged(envs: list[Env], changed: set[str]) -> Env:
    """The possible bindings of names where several paths meet.

    Args:
        envs: at the end of each path.
        changed: names whose bindings may differ from those where the paths part; most do not.
    """
    met = dict(envs[0])
    for other in envs[1:]:
        for name in changed:
            bound, there = met.get(name), other.get(name)
            if bound is None and there is not None:
                met[name] = there
            elif bound is not None and there is not None and bound is not there:
                met[name] = tuple(dict.fromkeys((*bound, *there)))
    return met
