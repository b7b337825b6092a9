"""One pass over a file: scopes, bindings of each name that is read, parents, calls by name.

Flow-aware within a scope: branches of if, try and match are kept apart and merged after them, a later assignment hides
an earlier one, and bindings from a loop's body reach its head again through a phi. Names of outer scopes are left to
``names``, because it is unknown here when a function runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from stepscope.check.source.bindings import Binding, Flow, FunctionNode, Scope
from stepscope.check.source.scoping import Env, Scoping, merged
from stepscope.check.source.syntax import absolute, annotations_of, children, defaults, stored_names


def analyse(tree: ast.Module, *, package: str = "") -> Flow:
    """Analyse a module.

    Args:
        tree: the module.
        package: dotted name of the package that relative imports start from.

    Raises:
        RecursionError: expressions are nested too deeply.
    """
    return _Pass(tree, package).run()


class _Pass(Scoping):
    """Statements and expressions in execution order, as far as that is known."""

    def __init__(self, tree: ast.Module, package: str) -> None:
        super().__init__(tree)
        self.package = package
        self.tree = tree
        self.dead = False
        self.repeats = 0
        """Number of open loops and comprehensions of this function."""
        self.exits: list[list[Env]] = []
        """Environments at each break and continue, per open loop."""
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
        self.parameters(scope, node.args)
        if isinstance(node, ast.Lambda):
            saved = self.scope, self.env, self.dead, self.exits
            self.scope, self.env, self.dead, self.exits = scope, scope.end, False, []
            self.expr(node.body, node)
            scope.returns.append(node.body)
            self.scope, self.env, self.dead, self.exits = saved
        else:
            self._body(scope, node.body, node)

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
        """Walk alternatives from the same start and merge their bindings."""
        start, dead, since = self.env, self.dead, len(self.bound)
        ends: list[tuple[Env, bool]] = []
        for body, parent in arms:
            self.env, self.dead = dict(start), dead
            self.block(body, parent)
            ends.append((self.env, self.dead))
        live = [env for env, ended in ends if not ended]
        self.env = merged(live or [env for env, _ in ends], self.changed(since))
        self.dead = not live

    def _if(self, node: ast.If) -> None:
        self.expr(node.test, node)
        self._arms([(node.body, node), (node.orelse, node)])

    def _assignment(self, node: ast.Assign) -> None:
        self.expr(node.value, node)
        for target in node.targets:
            self.parents[target] = node
            self.assign(target, node.value, node, "assign")

    def _annotated(self, node: ast.AnnAssign) -> None:
        self.expr(node.annotation, node)
        self.parents[node.target] = node
        if node.value is not None:
            self.expr(node.value, node)
        self.assign(node.target, node.value, node, "assign")
        if isinstance(node.target, ast.Name):
            self.env[node.target.id][0].annotation = node.annotation

    def _augmented(self, node: ast.AugAssign) -> None:
        self.expr(node.value, node)
        self.parents[node.target] = node
        if isinstance(node.target, ast.Name):
            before = self.env.get(node.target.id, ())
            self.uses[node.target] = before
            self.bind(Binding("aug", node.target.id, node, self.scope, node.value, sources=before))
        else:
            self.assign(node.target, node.value, node, "aug")

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.expr(node.iter, node)
        phis = self._head(node)
        after, since = dict(self.env), len(self.bound)
        self.parents[node.target] = node
        self.assign(node.target, node.iter, node, "element")
        self._loop(node, phis, after, since)

    def _while(self, node: ast.While) -> None:
        phis = self._head(node)
        self.repeats += 1
        self.expr(node.test, node)
        self.repeats -= 1
        self._loop(node, phis, dict(self.env), len(self.bound))

    def _head(self, node: ast.For | ast.AsyncFor | ast.While) -> dict[str, Binding]:
        """Make phis for names that the body binds, which come in from before the loop and from its end."""
        phis = {}
        for name in stored_names(node):
            phi = Binding("phi", name, node, self.scope, sources=self.env.get(name, ()))
            phis[name] = phi
            self.env[name] = (phi,)
            self.bound.append(name)
        return phis

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, phis: dict[str, Binding], after: Env, since: int) -> None:
        """Walk the body of a loop: ``after`` holds the bindings if it does not run, ``since`` the time they were
        taken.
        """
        dead = self.dead
        self.exits.append([])
        self.repeats += 1
        self.block(node.body, node)
        self.repeats -= 1
        ends = [*self.exits.pop(), *([] if self.dead else [self.env])]
        for name, phi in phis.items():
            found = dict.fromkeys(phi.sources)
            for end in ends:
                found.update(dict.fromkeys(b for b in end.get(name, ()) if b is not phi))
            phi.sources = tuple(found)
        self.env, self.dead = merged([after, *ends], self.changed(since)), dead
        self.block(node.orelse, node)

    def _leave(self, node: ast.stmt) -> None:
        del node
        if self.exits and not self.dead:
            self.exits[-1].append(self.env)
            self.env = dict(self.env)
        self.dead = True

    def _try(self, node: ast.Try) -> None:
        start, since = dict(self.env), len(self.bound)
        self.block(node.body, node)
        middle, dead = self.env, self.dead
        ends = []
        for handler in node.handlers:
            self.parents[handler] = node
            self.env, self.dead = merged([start, middle], self.changed(since)), False
            if handler.type is not None:
                self.expr(handler.type, handler)
            if handler.name:
                self.bind(Binding("except", handler.name, handler, self.scope))
            self.block(handler.body, handler)
            ends.append((self.env, self.dead))
        self.env, self.dead = middle, dead
        self.block(node.orelse, node)
        ends.insert(0, (self.env, self.dead))
        live = [env for env, ended in ends if not ended]
        self.env, self.dead = merged(live or [env for env, _ in ends], self.changed(since)), not live
        self.block(node.finalbody, node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.parents[item] = node
            self.expr(item.context_expr, item)
            if item.optional_vars is not None:
                self.parents[item.optional_vars] = item
                self.assign(item.optional_vars, item.context_expr, node, "with")
        self.block(node.body, node)

    def _match(self, node: ast.Match) -> None:
        self.expr(node.subject, node)
        for case in node.cases:
            self.parents[case] = node
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.bind(Binding("match", name, part, self.scope))
            if case.guard is not None:
                self.expr(case.guard, case)
        self._arms([*((case.body, case) for case in node.cases), ([], node)])

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for expr in [*node.decorator_list, *defaults(node.args), *annotations_of(node)]:
            self.expr(expr, node)
        scope = self.open(node, node.name)
        self.scope.functions[node.name] = node
        self.bind(Binding("def", node.name, node, self.scope))
        self.later.append((scope, node))

    def _class(self, node: ast.ClassDef) -> None:
        for expr in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
            self.expr(expr, node)
        scope = self.open(node, node.name)
        self._body(scope, node.body, node)
        self.bind(Binding("class", node.name, node, self.scope))

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.imported(name, alias.name if alias.asname else name, node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = absolute(node.module or "", node.level, self.package)
        for alias in node.names:
            if alias.name == "*":
                self.scope.stars.append(base)
            else:
                name = alias.asname or alias.name
                self.imported(name, f"{base}.{alias.name}" if base else alias.name, node)

    def _shared(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.shared.update(node.names)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.parents[target] = node
                self.env.pop(target.id, None)
                self.bound.append(target.id)
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
        """Walk an expression in evaluation order, as far as it matters here."""
        self.parents[node] = parent
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            for child in children(node):
                self.expr(child, node)

    def _name(self, node: ast.Name) -> None:
        bound = self.env.get(node.id)
        if bound is not None:
            self.uses[node] = bound
        else:
            self.flow.outer[node] = self.scope

    def _inner(self, node: ast.Attribute | ast.Expr | ast.Starred) -> None:
        self.expr(node.value, node)

    def _subscript(self, node: ast.Subscript) -> None:
        self.expr(node.value, node)
        self.expr(node.slice, node)

    def _operation(self, node: ast.BinOp) -> None:
        self.expr(node.left, node)
        self.expr(node.right, node)

    def _elements(self, node: ast.Tuple | ast.List) -> None:
        for element in node.elts:
            self.expr(element, node)

    def _constant(self, node: ast.Constant) -> None:
        """Do nothing: a constant contains no node."""

    def _call(self, node: ast.Call) -> None:
        func = node.func
        word = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        self.flow.calls.setdefault(word, []).append(node)
        if self.repeats:
            self.flow.looped[node] = None
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
        self.later.append((self.open(node, "<lambda>"), node))

    def _walrus(self, node: ast.NamedExpr) -> None:
        self.expr(node.value, node)
        self.parents[node.target] = node
        self.assign(node.target, node.value, node, "assign")

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.flow.nodes.setdefault(type(node), []).append(node)
        names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        hidden = {name: self.env.get(name) for name in names}
        self.repeats += 1
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
        self.repeats -= 1
        for name, bound in hidden.items():
            if bound is None:
                self.env.pop(name, None)
            else:
                self.env[name] = bound

    def _comprehension_target(self, generator: ast.comprehension, node: ast.AST) -> None:
        """Bind targets that are visible only inside the comprehension: they do not become bindings of the scope."""
        kept = self.scope.bindings
        self.scope.bindings = {}
        self.assign(generator.target, generator.iter, node, "element")
        self.scope.bindings = kept

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        if node.value is not None:
            self.expr(node.value, node)
            self.scope.yields.append(node.value)


_Handler = Callable[[_Pass, ast.AST], None]


def _handlers(table: str) -> dict[type[ast.AST], _Handler]:
    """Methods by node type, from ``Type:method`` words; types that this Python lacks are omitted."""
    pairs = (word.split(":") for word in table.split())
    return {getattr(ast, kind): getattr(_Pass, method) for kind, method in pairs if hasattr(ast, kind)}


_STATEMENTS = _handlers(
    "If:_if Assign:_assignment AnnAssign:_annotated AugAssign:_augmented For:_for AsyncFor:_for While:_while Try:_try "
    "TryStar:_try With:_with AsyncWith:_with Match:_match FunctionDef:_function AsyncFunctionDef:_function "
    "ClassDef:_class Import:_import ImportFrom:_import_from Global:_shared Nonlocal:_shared Delete:_delete "
    "Return:_return Raise:_return Break:_leave Continue:_leave Expr:_inner"
)
_EXPRESSIONS = _handlers(
    "Name:_name Attribute:_inner Constant:_constant Call:_call Lambda:_lambda NamedExpr:_walrus Subscript:_subscript "
    "BinOp:_operation Tuple:_elements List:_elements Starred:_inner "
    "ListComp:_comprehension SetComp:_comprehension DictComp:_comprehension GeneratorExp:_comprehension "
    "Yield:_yield YieldFrom:_yield"
)
