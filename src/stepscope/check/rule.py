"""The definition of a rule: a value, like a detector, with a function that is called for the nodes it asked for.

A file is walked once for all rules: a rule names the calls (by qualified name) or the node types that it wants, and
receives each of them with a context that answers questions.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator

from msgspec import Struct

from stepscope.check.context import Call, Context
from stepscope.check.hits import CheckSeverity, Hit
from stepscope.tables.findings import Cause, PipelineStage, Stage, Symptom

OnCall = Callable[[Context, Call], Iterator[Hit]]
OnNode = Callable[[Context, ast.AST], Iterator[Hit]]
OnFile = Callable[[Context], Iterator[Hit]]


class Rule(Struct, frozen=True, kw_only=True):
    """A rule, as a value. Exactly one of ``on_call``, ``on_node``, ``on_file`` is given."""

    code: str
    """Code: family and number of the catalogue: TD01 is TFD001."""
    name: str
    """Name of the bad pattern: lower-case words with hyphens, readable after "allow"."""
    severity: CheckSeverity
    """Severity by measured gain: error if it dominates a program, warning from 1.5x, otherwise info."""
    symptom: Symptom
    cause: Cause
    introduced_stage: Stage
    exposed_stage: Stage
    pipeline_stage: PipelineStage
    speedup: float
    """Measured speedup: time of the slow example's pattern over that of the fixed one."""
    remedy: str
    """Remedy in one sentence."""
    calls: frozenset[str] = frozenset()
    """Qualified names in their canonical spelling, ``keras.Model.predict``; ``tensorflow.*`` for everything below."""
    on_call: OnCall | None = None
    nodes: tuple[type[ast.AST], ...] = ()
    """Node types: statements, loops, comprehensions, lambdas."""
    on_node: OnNode | None = None
    on_file: OnFile | None = None
    mentions: tuple[str, ...] = ()
    """Substrings of which a file must contain one; empty: any file."""
    since_version: tuple[int, int] = (0, 0)
    """First TensorFlow version that the rule applies to."""
    before_version: tuple[int, int] = (99, 0)
    """First TensorFlow version that the rule no longer applies to."""
    related: tuple[str, ...] = ()
    """Codes of the detectors that see the same at run time."""
    since: str = "0.1"
    status: str = "preview"

    @property
    def check(self) -> OnCall | OnNode | OnFile:
        """The function to call."""
        found = self.on_call or self.on_node or self.on_file
        if found is None:
            raise TypeError(f"rule {self.code} has no function")
        return found

    @property
    def doc(self) -> str:
        """The documentation: the docstring of the rule's module."""
        return inspect.cleandoc(sys.modules[self.check.__module__].__doc__ or "")

    def applies(self, version: tuple[int, int]) -> bool:
        """Whether the rule applies to a version of TensorFlow."""
        return self.since_version <= version < self.before_version

    def concerns(self, text: str) -> bool:
        """Whether a file with this text can contain the pattern."""
        return not self.mentions or any(mention in text for mention in self.mentions)


__all__ = ["Call", "Context", "Hit", "OnCall", "OnFile", "OnNode", "Rule"]
