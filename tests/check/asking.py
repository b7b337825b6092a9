"""What tests of the engine share: expressions of a text, found by a marker, and questions about them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping

from tests.check.checking import engine_of

from stepscope.check.context import Context
from stepscope.check.registry import ALL


class Asked:
    """A project with questions about ``ask(expression)`` in its main file."""

    def __init__(self, files: str | Mapping[str, str], version: str = "2.21") -> None:
        project = {"main.py": files} if isinstance(files, str) else dict(files)
        self.engine = engine_of(project, version)
        module = self.engine.project.load("main.py")
        assert module is not None, self.engine.project.skipped
        self.module = module
        self.context = Context(self.engine, module, ALL[0])
        self.text = textwrap.dedent(project["main.py"])

    @property
    def expressions(self) -> list[ast.expr]:
        """The arguments of all calls of ``ask``, in the order of the source."""
        calls = sorted(self.module.flow.calls.get("ask", []), key=lambda call: (call.lineno, call.col_offset))
        return [call.args[0] for call in calls]

    @property
    def names(self) -> list[str]:
        """What they stand for."""
        return [self.context.name(expr) for expr in self.expressions]

    @property
    def tags(self) -> list[str]:
        """Their tags; "many ..." for containers."""
        values = [self.context.value(expr) for expr in self.expressions]
        return [f"many {v.tag.value}" if v.many else v.tag.value for v in values]

    @property
    def chains(self) -> list[list[str]]:
        """The chains of the datasets, each as words, sorted."""
        return [sorted(" ".join(chain.names) for chain in self.context.chains(expr)) for expr in self.expressions]

    @property
    def varies(self) -> list[bool | None]:
        """Whether they vary in the innermost loop around them."""
        return [self.context.loops.varies(e, self.context.loops.around(e, calls=False)[0]) for e in self.expressions]
