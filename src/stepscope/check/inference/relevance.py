"""How often code runs, and on how much, where the source says so: what runs rarely is worth knowing, but no warning.

The one place where this is decided. A rule finds a pattern; the severity of its finding follows from what is known here
(``Often.rare``). Unknown is an answer: a loop of unknown length over the program's data may cost time. In a session's
report the measured time of the lines decides instead.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from stepscope.check.costs import SECONDS_EACH
from stepscope.check.hits import Often, Span
from stepscope.check.inference.datasets import DatasetAnalysis
from stepscope.check.inference.loops import Loops
from stepscope.check.inference.names import Function
from stepscope.check.inference.tracing import Tracing
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import argument, last_word
from stepscope.check.source.texts import own_word

FEW_RUNS = 16
"""Runs that are too few to matter where each takes less than a tenth of a second: less than two seconds in all."""
FEW_ELEMENTS = 100
"""Elements of a dataset that are too few to matter, repeated a few times."""
MAX_LEVELS = 3
"""Calls followed upwards."""
TESTS = "only tests run it"
DEAD = frozenset("trash backup backups bak old deprecated archive archived attic obsolete unused".split())
"""Names of folders that hold what is no longer used."""
_COPY = re.compile(r"(?:[ _-]copy(?:[ _-]?\d+)?|\s?\(\d+\)|[._-](?:old|bak|backup|orig))$", re.IGNORECASE)
_BENCHMARK = re.compile(r"(?:^|_)bench(?:mark(?:s|ing)?)?(?:_|$)", re.IGNORECASE)
_ONE_USE = re.compile(r"^(?:convert|export|migrate|download|plot|visuali[sz]e)(?:_|$)", re.IGNORECASE)
_SHAPED = frozenset("zeros ones empty full rand randn uniform normal random".split())
"""Calls whose first argument, or ``shape``, is the shape of the array that they make."""


class Relevance:
    """The estimate for any place of a project.

    Args:
        loops: loops around code, and values.
        tracing: functions around code.
        chains: how Datasets are made.
    """

    def __init__(self, loops: Loops, tracing: Tracing, chains: DatasetAnalysis) -> None:
        self.loops = loops
        self.tracing = tracing
        self.chains = chains
        self.inference = loops.inference
        self.project = loops.inference.project

    def of(self, module: Module, node: ast.AST, also: Sequence[Span], code: str) -> Often:
        """The estimate for a finding.

        Args:
            module: the file.
            node: what is reported.
            also: other places of the finding: its loop.
            code: the rule; what takes seconds each time matters however seldom it runs.
        """
        if any(self.project.is_test(span.path) for span in also):
            return Often(rare=TESTS)
        if why := self.why_rare(module, node):
            return Often(rare=why)
        if (elements := self._of_stage(module, node)) is not None:
            return Often(elements, f"it runs on {elements} elements" if elements <= FEW_ELEMENTS else "")
        runs = self._runs(module, node, {(span.path, span.line) for span in also})
        few = runs is not None and runs <= FEW_RUNS and code not in SECONDS_EACH
        return Often(runs, f"it runs {runs} times" if few else "")

    # ---- who runs it ---------------------------------------------------------------------------------------------

    def why_rare(self, module: Module, node: ast.AST, levels: int = MAX_LEVELS) -> str:
        """Why a place is run by few: its file, or all that calls its function; "" if it may run in every use."""
        why = self._file(module.path) or self._demonstration(module, node)
        function = self.tracing.enclosing(module, node)
        if why or function is None or not levels:
            return why
        callers = self.inference.callers(function)
        reasons = [self.why_rare(at, call, levels - 1) for at, call in callers]
        if not reasons or not all(reasons) or self._given_away(function, {call for _, call in callers}):
            return ""
        return TESTS if set(reasons) == {TESTS} else reasons[0]

    def _file(self, path: str) -> str:
        if self.project.is_test(path):
            return TESTS
        inside = self.project.inside(path)
        dead = next((part for part in inside.parts[:-1] if part.lower() in DEAD), "")
        if (dead or _COPY.search(inside.stem)) and not self._imported(path):
            return f"nothing uses {f'what is in {dead}' if dead else inside.name}"
        if any(_BENCHMARK.search(part) for part in (*inside.parts[:-1], inside.stem)):
            return "it is a benchmark"
        return "it is a script for one use" if _ONE_USE.search(inside.stem) else ""

    def _imported(self, path: str) -> bool:
        """Whether a file that is in use itself imports another."""
        mine = self.project.inside(path).parts[:-1]
        others = (self.project.inside(other).parts for other in self.project.importers(path, own_word(path)))
        return any(other[: len(mine)] != mine and not DEAD & {part.lower() for part in other[:-1]} for other in others)

    def _demonstration(self, module: Module, node: ast.AST) -> str:
        """A main program in a file that others import only shows what the file can do."""
        parent = module.parent(node)
        while parent is not None and not (isinstance(parent, ast.If) and is_main(parent)):
            parent = module.parent(parent)
        word = own_word(module.path)
        shown = parent is not None and self.project.importers(module.path, word)
        return "only the demonstration of a module that others import runs it" if shown else ""

    def _given_away(self, function: Function, found: set[ast.Call]) -> bool:
        """Whether a function may run other than by the calls that were found: one of an unknown object has its name, or
        the name is used as a value.
        """
        module, name = function.module, function.name
        if name == "__init__" and function.cls is not None:
            name = function.cls.scope.name.rpartition(".")[2]
        calls = self.project.calls(module, name)
        if any(call not in found and not self._file(at.path) for at, call in calls):
            return True
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.Name, ast.Attribute)) and last_word(node) == name:
                parent = module.parent(node)
                called = isinstance(parent, ast.Call) and parent.func is node
                if isinstance(node.ctx, ast.Load) and not called:
                    return True
        return any(not self._file(path) for path in self.project.importers(module.path, name))

    # ---- how many times ------------------------------------------------------------------------------------------

    def _runs(self, module: Module, node: ast.AST, heads: set[tuple[str, int]]) -> int | None:
        """How often the loops of a finding run it, if the source states it for all of them, and for all callers."""
        if not heads:
            return None
        loops = self.loops.around(module, node)
        if not any((loop.module.path, loop.line) in heads for loop in loops) or not self._stated(module, node):
            return None
        known = [loop.iterations for loop in loops if loop.iterations is not None]
        return math.prod(known) if len(known) == len(loops) else None

    def _stated(self, module: Module, node: ast.AST, levels: int = MAX_LEVELS) -> bool:
        """Whether all that leads to a place is in the project: no function on the way is for callers outside of it."""
        function = self.tracing.enclosing(module, node)
        if function is None:
            return True
        callers = self.inference.callers(function) if levels else ()
        return bool(callers) and all(self._stated(at, call, levels - 1) for at, call in callers)

    # ---- on how much ---------------------------------------------------------------------------------------------

    def _of_stage(self, module: Module, node: ast.AST) -> int | None:
        called = node.func if isinstance(node, ast.Call) else None
        return self.elements(module, called.value) if isinstance(called, ast.Attribute) else None

    def elements(self, module: Module, dataset: ast.expr) -> int | None:
        """The number of elements of a Dataset, in all ways in which it may be made; None if one is not stated."""
        sizes = []
        for chain in self.chains.of(module, dataset):
            source = chain.source
            if source.call is None or not source.call.args or {"repeat", "interleave", "flat_map"} & set(chain.names):
                return None
            if source.name == "range":
                sizes.append(self.loops.integer(source.module, source.call.args[-1]))
            elif source.name == "from_tensor_slices":
                sizes.append(self._rows(source.module, source.call.args[0]))
            else:
                return None
        known = [size for size in sizes if size is not None]
        return max(known) if known and len(known) == len(sizes) else None

    def _rows(self, module: Module, data: ast.expr) -> int | None:
        """The rows of data that is written out, or whose shape is."""
        if isinstance(data, ast.Tuple) and data.elts:
            return self._rows(module, data.elts[0])
        if isinstance(data, ast.Dict) and data.values:
            return self._rows(module, data.values[0])
        if isinstance(data, ast.Name):
            rows = {self._rows(module, source) for source in self.loops.sources(module, data)}
            return rows.pop() if len(rows) == 1 else None
        if isinstance(data, ast.Call) and last_word(data.func) in _SHAPED:
            shape = argument(data, 0, "shape") or argument(data, -1, "size")
            first = shape.elts[0] if isinstance(shape, (ast.List, ast.Tuple)) and shape.elts else shape
            return self.loops.integer(module, first) if first is not None else None
        return len(data.elts) if isinstance(data, ast.List) else None


def is_main(node: ast.If) -> bool:
    """Whether a condition is ``if __name__ == "__main__":``."""
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
