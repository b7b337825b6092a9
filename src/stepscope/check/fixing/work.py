"""The input of an action: the plan, the file, and access to nodes and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import libcst as cst

from stepscope.check.fixing import template
from stepscope.check.fixing.edits import CannotFixError, Edit
from stepscope.check.fixing.naming import Naming
from stepscope.check.fixing.tree import Statement, Tree
from stepscope.check.hits import FixPlan, Span

_Node = TypeVar("_Node", bound=cst.CSTNode)


class PlannedFile:
    """One plan on one file.

    Args:
        plan: what to do.
        tree: the file.
        naming: its names.
    """

    def __init__(self, plan: FixPlan, tree: Tree, naming: Naming) -> None:
        self.plan = plan
        self.tree = tree
        self.naming = naming
        self.imports: list[Edit] = []
        """Import edits that the requested texts need."""
        self._told = dict(plan.arguments)

    def told(self, name: str, default: str | None = None) -> str:
        """An argument of the plan.

        Raises:
            CannotFixError: the rule did not give it.
        """
        found = self._told.get(name, default)
        if found is None:
            raise CannotFixError(f"its rule plans {self.plan.action} without {name}")
        return found

    def has(self, name: str) -> bool:
        """Whether the plan has an argument."""
        return name in self._told

    def expression(self, number: int, kind: type[_Node]) -> _Node:
        """The plan's node of a number, from 0, as an expression."""
        return self.tree.expression(self._span(number), kind)

    def any_expression(self, number: int) -> cst.BaseExpression:
        """The plan's node of a number, from 0, whatever expression it is."""
        return self.tree.any_expression(self._span(number))

    def statement(self, number: int) -> Statement:
        """The plan's node of a number, from 0, as a statement."""
        return self.tree.statement(self._span(number))

    def _span(self, number: int) -> Span:
        if not -len(self.plan.spans) <= number < len(self.plan.spans):
            raise CannotFixError(f"its rule plans {self.plan.action} on {len(self.plan.spans)} nodes")
        return self.plan.spans[number]

    def text(self, source: str, offset: int, nodes: Sequence[cst.BaseExpression] | None = None) -> str:
        """A text of the plan at a place, see ``template``; ``nodes`` defaults to the plan's own."""
        if nodes is None:
            nodes = [self.any_expression(n) for n in range(len(self.plan.spans))] if "$" in source else []
        found, imports = template.render(source, self.tree, self.naming, nodes, offset)
        self.imports += imports
        return found


Action = Callable[[PlannedFile], "tuple[Edit, ...]"]
"""Function that returns the edits of a plan; raises CannotFixError if it is impossible."""
