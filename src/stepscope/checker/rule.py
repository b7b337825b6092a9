"""What a rule is: a value, like a detector, with a function that is called for what it asked to see.

A file is walked once for all rules: a rule names the calls (by qualified name) or the kinds of node that it wants, and
is given each of them with a context that answers questions.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepscope.checker.context import Call, Context
from stepscope.checker.hits import CheckSeverity, Hit
from stepscope.model.report.finding import Cause, PipelineStage, Stage, Symptom

OnCall = Callable[[Context, Call], Iterator[Hit]]
OnNode = Callable[[Context, ast.AST], Iterator[Hit]]
OnFile = Callable[[Context], Iterator[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule is a value. Exactly one of ``on_call``, ``on_node``, ``on_file`` is given."""

    code: str
    """Family and number of the catalogue: TD01 is TFD001."""
    name: str
    """The bad pattern: lower-case words with hyphens, readable after "allow"."""
    severity: CheckSeverity
    """By measured pay-off: error where it dominates a program, warning from 1.5x, info else."""
    symptom: Symptom
    cause: Cause
    introduced_stage: Stage
    exposed_stage: Stage
    pipeline_stage: PipelineStage
    speedup: float
    """Measured: time of the slow example's pattern over that of the fixed one."""
    remedy: str
    """One sentence: what to do instead."""
    calls: frozenset[str] = frozenset()
    """Qualified names in their canonical spelling, ``keras.Model.predict``; ``tensorflow.*`` for all below."""
    on_call: OnCall | None = None
    nodes: tuple[type[ast.AST], ...] = ()
    """Statements, loops, comprehensions, lambdas."""
    on_node: OnNode | None = None
    on_file: OnFile | None = None
    mentions: tuple[str, ...] = ()
    """Only files whose text holds one of these can have it; empty: any file."""
    since_version: tuple[int, int] = (0, 0)
    """First TensorFlow it applies to."""
    before_version: tuple[int, int] = (99, 0)
    """First TensorFlow it applies to no more."""
    related: tuple[str, ...] = ()
    """Codes of the detectors that see the same at run time."""
    since: str = "0.1"
    status: str = "preview"

    @property
    def check(self) -> OnCall | OnNode | OnFile:
        """The function that is called."""
        found = self.on_call or self.on_node or self.on_file
        if found is None:
            raise TypeError(f"rule {self.code} has no function")
        return found

    @property
    def doc(self) -> str:
        """Documentation: the docstring of its module."""
        return inspect.cleandoc(sys.modules[self.check.__module__].__doc__ or "")

    def applies(self, version: tuple[int, int]) -> bool:
        """Whether it is meant for a version of TensorFlow."""
        return self.since_version <= version < self.before_version

    def concerns(self, text: str) -> bool:
        """Whether a file of this text can have it."""
        return not self.mentions or any(mention in text for mention in self.mentions)


__all__ = ["Call", "Context", "Hit", "OnCall", "OnFile", "OnNode", "Rule"]
