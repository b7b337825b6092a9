"""Selection of the parts of a file that rules want, so that as few names as possible need to be resolved.

Resolving the target of a call is most of a check's work. A call is resolved only if its last word is that of a name
that a rule wants (``fit``, ``map``), or if a rule wants everything below a module (``tensorflow.*``) and the call's
first word may stand for something in it, because it was imported, or assigned from something imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from stepscope.check.rule import OnFile, OnNode, Rule
from stepscope.check.source.canonical import canonical
from stepscope.check.source.modules import Module, Project

ALL_BELOW = ".*"
_ONE_ANOTHER = frozenset({"tensorflow", "keras"})
"""Modules that may each be reached through the other: ``tf.keras``."""


class Plan:
    """The rules that apply to a version, indexed by what they want.

    Args:
        rules: the rules to run.
        version: the version of TensorFlow.
    """

    def __init__(self, rules: Sequence[Rule], version: tuple[int, int]) -> None:
        self.codes = frozenset(rule.code for rule in rules)
        self.nodes: list[tuple[Rule, OnNode]] = []
        self.files: list[tuple[Rule, OnFile]] = []
        self.words: set[str] = set()
        """Last words of wanted names."""
        self.roots: set[str] = set()
        """First words of modules that are wanted entirely."""
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
        """The rules that want calls of a name: ``tensorflow.math.add`` also matches ``tensorflow.*``."""
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
        """Names that may stand for a module that is wanted entirely; None: any name, because of ``import *``."""
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
        """Whether an import leads to such a module or below it, or to a project file, which may pass it on."""
        if canonical(target).partition(".")[0] in self.roots:
            return True
        parts = target.split(".")
        return any(project.find(module, ".".join(parts[:size])) for size in range(1, len(parts) + 1))


def _roots(expr: ast.expr) -> tuple[str, ...]:
    """The first words of a dotted expression: two for a conditional expression, none for a call's result."""
    while isinstance(expr, (ast.Attribute, ast.NamedExpr)):
        expr = expr.value
    if isinstance(expr, ast.Name):
        return (expr.id,)
    return (*_roots(expr.body), *_roots(expr.orelse)) if isinstance(expr, ast.IfExp) else ()
