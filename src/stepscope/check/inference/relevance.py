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
from stepscope.check.inference.tags import Class
from stepscope.check.inference.tracing import Tracing
from stepscope.check.source.modules import Module, ModuleDependencies
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
_PROGRAMS = frozenset({"main", "train", "run"})
"""Names of functions that are the program, if its last lines call them."""
_TRAINS = frozenset("fit fit_generator train_on_batch GradientTape apply_gradients minimize".split())
"""Last words of calls that train."""
_KEEPS = frozenset({"function", "staticmethod", "classmethod"})
"""Decorators that hand a function to nothing else: ``tf.function`` and Python's own."""
_SHAPED = frozenset("zeros ones empty full rand randn uniform normal random".split())
"""Calls whose first argument, ``shape`` or ``size`` is the shape of the array that they make; see ``_DRAWN``."""
_DRAWN = frozenset({"uniform", "normal"})
"""Those that take the shape after their parameters in numpy, and first in TensorFlow and Keras."""
_RESIZES = frozenset("repeat interleave flat_map unbatch apply concatenate".split())
"""Stages that may give more elements than they get."""


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
        """A main program in a file that others import only shows what the file can do, unless it trains."""
        parent = module.parent(node)
        while parent is not None and not (isinstance(parent, ast.If) and is_main(parent)):
            parent = module.parent(parent)
        if parent is None or any(self._trains(module, call) for call in calls_below(parent)):
            return ""
        importers = self.project.importers(module.path, own_word(module.path))
        shown = any(not self.project.is_test(path) and self._imports(path, module) for path in importers)
        return "only the demonstration of a module that others import runs it" if shown else ""

    def _imports(self, path: str, module: Module) -> bool:
        """Whether an import of a file leads to a module, not to another of the same name."""
        importer = self.project.load(path)
        if importer is None:
            return False
        self.project.looks.setdefault(module.path, ModuleDependencies()).modules.add(path)
        targets = [target for found in importer.flow.imported.values() for target in found]
        targets += [a.name for node in ast.walk(importer.tree) if isinstance(node, ast.Import) for a in node.names]
        targets += [star for scope in importer.flow.scopes.values() for star in scope.stars]
        heads = [target.rpartition(".")[0] for target in targets]
        return any(self.project.find(importer, dotted) is module for dotted in (*targets, *heads))

    def _trains(self, module: Module, call: ast.Call, levels: int = MAX_LEVELS) -> bool:
        """Whether a call in a main program is the program: by the name of what it calls, or because that trains."""
        callees = self.inference.callee(module, call)
        word = last_word(call.func)
        runs = word == "run" and isinstance(call.func, ast.Attribute) and last_word(call.func.value) != "app"
        if levels == MAX_LEVELS and word in _PROGRAMS and (callees or not runs):  # a session's run is no program
            return True
        return levels > 0 and any(
            last_word(inner.func) in _TRAINS or self._trains(function.module, inner, levels - 1)
            for function in callees
            for inner in calls_below(function.node)
        )

    def _given_away(self, function: Function, found: set[ast.Call]) -> bool:
        """Whether a function may run other than by the calls that were found: something outside of the project calls
        it, a call of an unknown object has its name, or the name is used as a value.
        """
        module, name = function.module, function.name
        if self._called_from_outside(function):
            return True
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

    def _called_from_outside(self, function: Function) -> bool:
        """Whether a decorator, a base class outside of the project, or who starts a program may call a function."""
        decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorators]
        if function.name == "main" or any(last_word(d) not in _KEEPS for d in decorators):
            return True
        return function.cls is not None and self._has_foreign_base(function.cls)

    def _has_foreign_base(self, cls: Class, levels: int = MAX_LEVELS) -> bool:
        node = cls.scope.node
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            things = self.inference.names.things(cls.module, base)
            own = [thing for thing in things if isinstance(thing, Class)]
            if last_word(base) != "object" and (not own or len(own) < len(things)):
                return True
            if levels and any(self._has_foreign_base(thing, levels - 1) for thing in own):
                return True
        return False

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
            if source.call is None or not source.call.args or _RESIZES & set(chain.names):
                return None
            if source.name == "range":
                sizes.append(self._range(source.module, source.call.args))
            elif source.name == "from_tensor_slices":
                sizes.append(self._rows(source.module, source.call.args[0]))
            else:
                return None
        known = [size for size in sizes if size is not None]
        return max(known) if known and len(known) == len(sizes) else None

    def _range(self, module: Module, given: Sequence[ast.expr]) -> int | None:
        bounds = [bound for arg in given if (bound := self.loops.integer(module, arg)) is not None]
        if len(bounds) < len(given) or len(bounds) > len(("start", "stop", "step")) or bounds[2:] == [0]:
            return None
        numbers = range(*bounds)  # len() is limited
        return (numbers[-1] - numbers[0]) // numbers.step + 1 if numbers else 0

    def _rows(self, module: Module, data: ast.expr) -> int | None:
        """The rows of data that is written out, or whose shape is."""
        if isinstance(data, ast.Tuple) and data.elts:
            return self._rows(module, data.elts[0])
        if isinstance(data, ast.Dict) and data.values and data.keys[0] is not None:
            return self._rows(module, data.values[0])
        if isinstance(data, ast.Name):
            rows = {self._rows(module, source) for source in self.loops.sources(module, data)}
            return rows.pop() if len(rows) == 1 else None
        if isinstance(data, ast.Call) and last_word(data.func) in _SHAPED:
            shape = self._shape(module, data)
            first = shape.elts[0] if isinstance(shape, (ast.List, ast.Tuple)) and shape.elts else shape
            return self.loops.integer(module, first) if first is not None else None
        if not isinstance(data, ast.List) or any(isinstance(element, ast.Starred) for element in data.elts):
            return None
        return len(data.elts) or None  # an empty list is filled by what follows

    def _shape(self, module: Module, call: ast.Call) -> ast.expr | None:
        """The argument that is the shape of a new array; numpy's distributions take their parameters before it."""
        if any(keyword.arg == "size" for keyword in call.keywords):
            return argument(call, -1, "size")
        if last_word(call.func) not in _DRAWN:
            return argument(call, 0, "shape")
        name = self.inference.names.name(module, call.func)
        if "numpy." in name:
            return argument(call, 2, "size")
        return argument(call, 0 if name.startswith(("tensorflow.", "keras.")) else -1, "shape")


def calls_below(node: ast.AST) -> list[ast.Call]:
    """All calls in a statement or a function."""
    return [part for part in ast.walk(node) if isinstance(part, ast.Call)]


def is_main(node: ast.If) -> bool:
    """Whether a condition is ``if __name__ == "__main__":``."""
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
