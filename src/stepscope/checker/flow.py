"""One pass over a file: scopes, what binds each name that is read, parents, calls by name.

Flow-aware inside of a scope: arms of if, try and match are kept apart and merged after them, a later assignment hides
an earlier one, and what a loop's body binds reaches its head again through a phi. Names of outer scopes are left to
``names``: when a function runs is not known here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from stepscope.checker.bindings import FUNCTIONS, Binding, Flow, FunctionNode, Kind, Scope
from stepscope.checker.syntax import absolute, annotations_of, children, defaults, stored_names

Env = dict[str, tuple[Binding, ...]]


def analyse(tree: ast.Module, *, package: str = "") -> Flow:
    """Pass over a module.

    Args:
        tree: the module.
        package: dotted name of the package that relative imports start from.

    Raises:
        RecursionError: expressions are nested too deeply.
    """
    return _Pass(tree, package).run()


class _Pass:
    """State of the pass: the scope that is walked and what names are bound to at this point."""

    def __init__(self, tree: ast.Module, package: str) -> None:
        self.package = package
        self.tree = tree
        self.module = Scope(tree, None, "")
        self.flow = Flow(self.module, {tree: self.module}, {}, {}, {}, {}, [])
        self.uses = self.flow.uses
        self.parents = self.flow.parents
        self.scope = self.module
        self.env: Env = {}
        self.dead = False
        self.exits: list[list[Env]] = []
        """Per open loop: what was bound at each break and continue."""
        self.later: list[tuple[Scope, FunctionNode]] = []

    def run(self) -> Flow:
        """Walk the module, then every function body, outer ones first."""
        self._body(self.module, self.tree.body, self.tree)
        for scope, node in self.later:
            self._function_body(scope, node)
        return self.flow

    # ---- scopes ----------------------------------------------------------------------------------------------

    def _body(self, scope: Scope, body: list[ast.stmt], node: ast.AST) -> None:
        saved = self.scope, self.env, self.dead, self.exits
        self.scope, self.env, self.dead, self.exits = scope, dict(scope.end), False, []
        self.block(body, node)
        scope.end = self.env
        self.scope, self.env, self.dead, self.exits = saved

    def _function_body(self, scope: Scope, node: FunctionNode) -> None:
        args = node.args
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            self._parameter(scope, arg)
        for extra in (args.vararg, args.kwarg):
            if extra is not None:
                self._parameter(scope, extra)
        if isinstance(node, ast.Lambda):
            saved = self.scope, self.env, self.dead, self.exits
            self.scope, self.env, self.dead, self.exits = scope, scope.end, False, []
            self.expr(node.body, node)
            scope.returns.append(node.body)
            self.scope, self.env, self.dead, self.exits = saved
        else:
            self._body(scope, node.body, node)

    def _parameter(self, scope: Scope, arg: ast.arg) -> None:
        binding = Binding("param", arg.arg, arg, scope, annotation=arg.annotation)
        scope.bindings.setdefault(arg.arg, []).append(binding)
        scope.end[arg.arg] = (binding,)

    def _open(self, node: ast.ClassDef | FunctionNode, name: str) -> Scope:
        outer = self.scope.name
        scope = Scope(node, self.scope, f"{outer}.{name}" if outer else name)
        self.flow.scopes[node] = scope
        return scope

    # ---- bindings --------------------------------------------------------------------------------------------

    def _bind(self, binding: Binding) -> None:
        name, scope = binding.name, self.scope
        scope.bindings.setdefault(name, []).append(binding)
        self.env[name] = (binding,)
        if name in scope.shared:
            self._owner(name).bindings.setdefault(name, []).append(binding)

    def _owner(self, name: str) -> Scope:
        outer = self.scope.parent
        while outer is not None and outer.parent is not None:
            if outer.is_function and name in outer.bindings:
                return outer
            outer = outer.parent
        return self.module

    def _assign(
        self, target: ast.expr, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...] = ()
    ) -> None:
        """Bind what stands left of ``=``, ``in``, ``as``."""
        if isinstance(target, ast.Name):
            self._bind(Binding(kind, target.id, node, self.scope, value, path))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, node, kind, path)
        elif isinstance(target, ast.Starred):
            self.parents[target.value] = target
            self._assign(target.value, value, node, kind, path)
        else:
            self.flow.stores.append(target)
            for child in children(target):
                self.expr(child, target)
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                self._attribute(target, value, node, kind, path)

    def _unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...]
    ) -> None:
        """Bind the elements; a literal of the same length is taken apart."""
        literal = value.elts if kind == "assign" and isinstance(value, (ast.Tuple, ast.List)) else []
        starred = any(isinstance(e, ast.Starred) for e in [*target.elts, *literal])
        for index, element in enumerate(target.elts):
            self.parents[element] = target
            if len(literal) == len(target.elts) and not starred:
                self._assign(element, literal[index], node, "assign")
            else:
                inner = "unpack" if kind == "assign" else kind
                self._assign(element, value, node, inner, (*path, -1 if starred else index))

    def _attribute(
        self, target: ast.Attribute, value: ast.expr | None, node: ast.AST, kind: Kind, path: tuple[int, ...]
    ) -> None:
        """``self.x = value`` belongs to the class around the method."""
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

    # ---- statements ------------------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.stmt], parent: ast.AST) -> None:
        """Walk statements in order."""
        for statement in body:
            self.parents[statement] = parent
            kind = type(statement)
            self.flow.nodes.setdefault(kind, []).append(statement)
            handler = _STATEMENTS.get(kind)
            if handler is not None:
                handler(self, statement)
            else:
                for child in children(statement):
                    self.expr(child, statement)

    def _arms(self, arms: Iterable[tuple[Iterable[ast.stmt], ast.AST]]) -> None:
        """Walk alternatives from the same start and merge what they bind."""
        start, dead = self.env, self.dead
        ends: list[tuple[Env, bool]] = []
        for body, parent in arms:
            self.env, self.dead = dict(start), dead
            self.block(body, parent)
            ends.append((self.env, self.dead))
        live = [env for env, ended in ends if not ended]
        self.env = _merged(live or [env for env, _ in ends])
        self.dead = not live

    def _if(self, node: ast.If) -> None:
        self.expr(node.test, node)
        self._arms([(node.body, node), (node.orelse, node)])

    def _assignment(self, node: ast.Assign) -> None:
        self.expr(node.value, node)
        for target in node.targets:
            self.parents[target] = node
            self._assign(target, node.value, node, "assign")

    def _annotated(self, node: ast.AnnAssign) -> None:
        self.expr(node.annotation, node)
        self.parents[node.target] = node
        if node.value is not None:
            self.expr(node.value, node)
        self._assign(node.target, node.value, node, "assign")
        if isinstance(node.target, ast.Name):
            self.env[node.target.id][0].annotation = node.annotation

    def _augmented(self, node: ast.AugAssign) -> None:
        self.expr(node.value, node)
        self.parents[node.target] = node
        if isinstance(node.target, ast.Name):
            before = self.env.get(node.target.id, ())
            self.uses[node.target] = before
            self._bind(Binding("aug", node.target.id, node, self.scope, node.value, sources=before))
        else:
            self._assign(node.target, node.value, node, "aug")

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.expr(node.iter, node)
        phis = self._head(node)
        after = dict(self.env)
        self.parents[node.target] = node
        self._assign(node.target, node.iter, node, "element")
        self._loop(node, node.body, phis, after)

    def _while(self, node: ast.While) -> None:
        phis = self._head(node)
        self.expr(node.test, node)
        self._loop(node, node.body, phis, dict(self.env))

    def _head(self, node: ast.For | ast.AsyncFor | ast.While) -> dict[str, Binding]:
        """Names that the body binds come in from before and from its end."""
        phis = {}
        for name in stored_names(node):
            phi = Binding("phi", name, node, self.scope, sources=self.env.get(name, ()))
            phis[name] = phi
            self.env[name] = (phi,)
        return phis

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, body: list[ast.stmt], phis: dict[str, Binding], after: Env
    ) -> None:
        dead = self.dead
        self.exits.append([])
        self.block(body, node)
        ends = [*self.exits.pop(), *([] if self.dead else [self.env])]
        for name, phi in phis.items():
            found = dict.fromkeys(phi.sources)
            for end in ends:
                found.update(dict.fromkeys(b for b in end.get(name, ()) if b is not phi))
            phi.sources = tuple(found)
        self.env, self.dead = _merged([after, *ends]), dead
        self.block(node.orelse, node)

    def _leave(self, node: ast.stmt) -> None:
        del node
        if self.exits and not self.dead:
            self.exits[-1].append(self.env)
            self.env = dict(self.env)
        self.dead = True

    def _try(self, node: ast.Try) -> None:
        start = dict(self.env)
        self.block(node.body, node)
        middle, dead = self.env, self.dead
        ends = []
        for handler in node.handlers:
            self.parents[handler] = node
            self.env, self.dead = _merged([start, middle]), False
            if handler.type is not None:
                self.expr(handler.type, handler)
            if handler.name:
                self._bind(Binding("except", handler.name, handler, self.scope))
            self.block(handler.body, handler)
            ends.append((self.env, self.dead))
        self.env, self.dead = middle, dead
        self.block(node.orelse, node)
        ends.insert(0, (self.env, self.dead))
        live = [env for env, ended in ends if not ended]
        self.env, self.dead = _merged(live or [env for env, _ in ends]), not live
        self.block(node.finalbody, node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.parents[item] = node
            self.expr(item.context_expr, item)
            if item.optional_vars is not None:
                self.parents[item.optional_vars] = item
                self._assign(item.optional_vars, item.context_expr, node, "with")
        self.block(node.body, node)

    def _match(self, node: ast.Match) -> None:
        self.expr(node.subject, node)
        for case in node.cases:
            self.parents[case] = node
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._bind(Binding("match", name, part, self.scope))
            if case.guard is not None:
                self.expr(case.guard, case)
        self._arms([*((case.body, case) for case in node.cases), ([], node)])

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for expr in [*node.decorator_list, *defaults(node.args), *annotations_of(node)]:
            self.expr(expr, node)
        scope = self._open(node, node.name)
        self.scope.functions[node.name] = node
        self._bind(Binding("def", node.name, node, self.scope))
        self.later.append((scope, node))

    def _class(self, node: ast.ClassDef) -> None:
        for expr in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
            self.expr(expr, node)
        scope = self._open(node, node.name)
        self._body(scope, node.body, node)
        self._bind(Binding("class", node.name, node, self.scope))

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind(Binding("import", name, node, self.scope, target=target))

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = absolute(node.module or "", node.level, self.package)
        for alias in node.names:
            if alias.name == "*":
                self.scope.stars.append(base)
            else:
                name = alias.asname or alias.name
                target = f"{base}.{alias.name}" if base else alias.name
                self._bind(Binding("import", name, node, self.scope, target=target))

    def _shared(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.shared.update(node.names)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.parents[target] = node
                self.env.pop(target.id, None)
            else:
                self.expr(target, node)

    def _return(self, node: ast.Return | ast.Raise) -> None:
        for child in children(node):
            self.expr(child, node)
        if isinstance(node, ast.Return) and node.value is not None:
            self.scope.returns.append(node.value)
        self.dead = True

    # ---- expressions -----------------------------------------------------------------------------------------

    def expr(self, node: ast.AST, parent: ast.AST) -> None:
        """Walk an expression in the order in which it is evaluated, as far as that matters here."""
        self.parents[node] = parent
        if isinstance(node, ast.Name):
            bound = self.env.get(node.id)
            if bound is not None:
                self.uses[node] = bound
            return
        if isinstance(node, ast.Attribute):
            self.expr(node.value, node)
            return
        if isinstance(node, ast.Constant):
            return
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            for child in children(node):
                self.expr(child, node)

    def _call(self, node: ast.Call) -> None:
        func = node.func
        word = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        self.flow.calls.setdefault(word, []).append(node)
        self.expr(func, node)
        for argument in node.args:
            self.expr(argument, node)
        for keyword in node.keywords:
            self.parents[keyword] = node
            self.expr(keyword.value, keyword)

    def _lambda(self, node: ast.Lambda) -> None:
        for expr in defaults(node.args):
            self.expr(expr, node)
        self.flow.nodes.setdefault(ast.Lambda, []).append(node)
        self.later.append((self._open(node, "<lambda>"), node))

    def _walrus(self, node: ast.NamedExpr) -> None:
        self.expr(node.value, node)
        self.parents[node.target] = node
        self._assign(node.target, node.value, node, "assign")

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.flow.nodes.setdefault(type(node), []).append(node)
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        hidden = {name: self.env.get(name) for name in names}
        for generator in node.generators:
            self.parents[generator] = node
            self.expr(generator.iter, generator)
            self.parents[generator.target] = generator
            self._comprehension_target(generator, node)
            for test in generator.ifs:
                self.expr(test, generator)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            self.expr(part, node)
        for name, bound in hidden.items():
            if bound is None:
                self.env.pop(name, None)
            else:
                self.env[name] = bound

    def _comprehension_target(self, generator: ast.comprehension, node: ast.AST) -> None:
        """Targets are seen inside alone: they do not become bindings of the scope."""
        kept = self.scope.bindings
        self.scope.bindings = {}
        self._assign(generator.target, generator.iter, node, "element")
        self.scope.bindings = kept

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        if node.value is not None:
            self.expr(node.value, node)
            self.scope.yields.append(node.value)


def _merged(envs: list[Env]) -> Env:
    first = envs[0]
    for other in envs[1:]:
        if other is first:
            continue
        merged = dict(other)
        for name, bound in first.items():
            there = other.get(name)
            if there is None or there is bound or there == bound:
                merged[name] = bound
            else:
                merged[name] = tuple(dict.fromkeys((*bound, *there)))
        first = merged
    return first


_Handler = Callable[[_Pass, ast.AST], None]


def _handlers(table: str) -> dict[type[ast.AST], _Handler]:
    """Methods by node type, from ``Type:method`` words; types that this Python does not have are left out."""
    pairs = (word.split(":") for word in table.split())
    return {getattr(ast, kind): getattr(_Pass, method) for kind, method in pairs if hasattr(ast, kind)}


_STATEMENTS = _handlers(
    "If:_if Assign:_assignment AnnAssign:_annotated AugAssign:_augmented For:_for AsyncFor:_for While:_while Try:_try "
    "TryStar:_try With:_with AsyncWith:_with Match:_match FunctionDef:_function AsyncFunctionDef:_function "
    "ClassDef:_class Import:_import ImportFrom:_import_from Global:_shared Nonlocal:_shared Delete:_delete "
    "Return:_return Raise:_return Break:_leave Continue:_leave"
)
_EXPRESSIONS = _handlers(
    "Call:_call Lambda:_lambda NamedExpr:_walrus ListComp:_comprehension SetComp:_comprehension "
    "DictComp:_comprehension GeneratorExp:_comprehension Yield:_yield YieldFrom:_yield"
)
