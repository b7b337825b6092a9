"""Which rules want to see which parts of a file, so that as few names as possible have to be found out.

Finding out what a call calls is most of a check's work. A call is only looked into when its last word is that of a name
that a rule wants (``fit``, ``map``), or when a rule wants all below a module (``tensorflow.*``) and the call's first
word may stand for something of it: because it was imported, or assigned from what was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from stepscope.checker.rule import OnFile, OnNode, Rule
from stepscope.checker.source.canonical import canonical
from stepscope.checker.source.modules import Module, Project

ALL_BELOW = ".*"
_ONE_ANOTHER = frozenset({"tensorflow", "keras"})
"""Each may be reached through the other: ``tf.keras``."""


class Plan:
    """Rules that apply to a version, by what they want.

    Args:
        rules: those to run.
        version: of TensorFlow.
    """

    def __init__(self, rules: Sequence[Rule], version: tuple[int, int]) -> None:
        self.nodes: list[tuple[Rule, OnNode]] = []
        self.files: list[tuple[Rule, OnFile]] = []
        self.words: set[str] = set()
        """Last words of names that are wanted."""
        self.roots: set[str] = set()
        """First words of modules all below which is wanted."""
        self._by_name: dict[str, list[Rule]] = {}
        self._wanting: dict[str, tuple[Rule, ...]] = {}
        for rule in rules:
            if rule.applies(version):
                self._add(rule)
        if self.roots & _ONE_ANOTHER:
            self.roots |= _ONE_ANOTHER

    def _add(self, rule: Rule) -> None:
        for name in rule.calls:
            self._by_name.setdefault(name, []).append(rule)
            if name.endswith(ALL_BELOW):
                self.roots.add(name.partition(".")[0])
            else:
                self.words.add(name.rpartition(".")[2])
        if rule.on_node is not None:
            self.nodes.append((rule, rule.on_node))
        if rule.on_file is not None:
            self.files.append((rule, rule.on_file))

    def wanting(self, name: str) -> tuple[Rule, ...]:
        """The rules that want calls of a name: ``tensorflow.math.add`` is meant by ``tensorflow.*`` as well."""
        known = self._wanting.get(name)
        if known is None:
            found = dict.fromkeys(self._by_name.get(name, ()))
            head = name.rpartition(".")[0]
            while head:
                found.update(dict.fromkeys(self._by_name.get(f"{head}{ALL_BELOW}", ())))
                head = head.rpartition(".")[0]
            known = self._wanting[name] = tuple(found)
        return known

    def calls(self, project: Project, module: Module) -> Iterable[ast.Call]:
        """The calls of a file that a rule may want."""
        rooted = self._rooted(project, module)
        for word, calls in module.flow.calls.items():
            if word in self.words:
                yield from calls
            elif rooted is None:
                yield from (call for call in calls if _roots(call.func))
            elif rooted:
                yield from (call for call in calls if not rooted.isdisjoint(_roots(call.func)))

    def _rooted(self, project: Project, module: Module) -> set[str] | None:
        """Names that may stand for a module all below which is wanted; None: any, because of ``import *``."""
        flow = module.flow
        if any(scope.stars for scope in flow.scopes.values()):
            return None
        found: set[str] = {
            name for name, targets in flow.imported.items() if any(self._leads(project, module, t) for t in targets)
        }
        before = -1
        while found and before != len(found):
            before = len(found)
            found.update(name for name, value in flow.aliases if not found.isdisjoint(_roots(value)))
        return found

    def _leads(self, project: Project, module: Module, target: str) -> bool:
        """An import that gives such a module or what is below it, or a file of the project, which may hand it on."""
        if canonical(target).partition(".")[0] in self.roots:
            return True
        parts = target.split(".")
        return any(project.find(module, ".".join(parts[:size])) for size in range(1, len(parts) + 1))


def _roots(expr: ast.expr) -> tuple[str, ...]:
    """The first words of a dotted expression: two where it is one or another; none of a call's result."""
    while isinstance(expr, (ast.Attribute, ast.NamedExpr)):
        expr = expr.value
    if isinstance(expr, ast.Name):
        return (expr.id,)
    return (*_roots(expr.body), *_roots(expr.orelse)) if isinstance(expr, ast.IfExp) else ()
