"""Loops around code, including through calls within the project; whether an expression varies in them (``varies``).

``analyses.invariant`` extends the answer to callers, ``analyses.unchanged`` to the content of objects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct

from stepscope.check.inference.infer import Inference
from stepscope.check.inference.names import Function
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import COMPREHENSIONS, FUNCTIONS, LOOPS, Binding, LoopNode
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import default, function_body, last_word, leaves

MAX_LEVELS = 3
"""Number of calls between a loop and the code it repeats."""
_CHANGING = frozenset(
    "time.time time.perf_counter time.monotonic time.time_ns next input random.random random.randint random.choice "
    "random.uniform random.randrange random.sample random.gauss".split()
)
"""Calls whose result differs each time."""


_Open = set[Binding | ast.AST]
"""Questions in progress: one that depends on itself asks about the earlier value."""


class Loop(Struct, frozen=True):
    """A loop that repeats a piece of code."""

    module: Module
    node: LoopNode
    via: tuple[tuple[Module, ast.Call], ...] = ()
    """Calls that lead from the loop's body to the code, outermost first; empty if the code is in the body."""
    iterations: int | None = None
    """Number of iterations, if the source states it."""

    @property
    def is_comprehension(self) -> bool:
        """Whether the loop is a comprehension or generator expression."""
        return isinstance(self.node, COMPREHENSIONS)

    @property
    def line(self) -> int:
        """The first line of the loop."""
        return self.node.lineno

    @property
    def body(self) -> list[ast.AST]:
        """The nodes that the loop repeats."""
        node = self.node
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return list(node.body)
        return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]


class Loops:
    """Analysis of loops.

    Args:
        inference: values and callers.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.names = inference.names
        self._asked: set[ast.expr] = set()
        """Names whose length is being determined: one that is made from itself has no stated length."""

    def around(
        self, module: Module, node: ast.AST, *, calls: bool = True, levels: int = MAX_LEVELS
    ) -> tuple[Loop, ...]:
        """The loops that repeat a node, innermost first; with ``calls`` also those of the project's callers."""
        if not calls and isinstance(node, ast.Call) and node not in module.flow.looped:
            return ()
        return tuple(self._around(module, node, levels if calls else 0, (), frozenset()))

    def _around(
        self,
        module: Module,
        node: ast.AST,
        levels: int,
        via: tuple[tuple[Module, ast.Call], ...],
        seen: frozenset[ast.AST],
    ) -> Iterable[Loop]:
        child, parent = node, module.parent(node)
        before: ast.AST = node
        while parent is not None:
            if isinstance(parent, LOOPS) and _repeats(parent, child, before):
                yield Loop(module, parent, via, self.iterations(module, parent))
            if isinstance(parent, FUNCTIONS) and child in function_body(parent):
                function = self.names.function(module, parent)
                if levels and parent not in seen and not self.inference.is_graph_function(function):
                    for caller, call in self._program_calls(module, function):
                        yield from self._around(caller, call, levels - 1, ((caller, call), *via), seen | {parent})
                return
            before, child, parent = child, parent, module.parent(parent)

    def _program_calls(self, module: Module, function: Function) -> Iterable[tuple[Module, ast.Call]]:
        """The calls of a function that the program makes: a loop of a test repeats nothing that a user waits for."""
        project = self.inference.project
        own_test = project.is_test(module.path)
        return (made for made in self.inference.callers(function) if own_test or not project.is_test(made[0].path))

    def iterations(self, module: Module, loop: LoopNode) -> int | None:
        """The number of iterations of a loop, if the source states it: ``range(3)``, a literal."""
        if isinstance(loop, ast.While):
            return None
        if isinstance(loop, (ast.For, ast.AsyncFor)):
            return self.length(module, loop.iter)
        total = 1
        for generator in loop.generators:
            length = self.length(module, generator.iter)
            if length is None:
                return None
            total *= length
        return total

    def length(self, module: Module, expr: ast.expr) -> int | None:
        """The number of elements of an iterable, if the source states it."""
        if isinstance(expr, (ast.List, ast.Tuple, ast.Set)):
            return len(expr.elts) if not any(isinstance(e, ast.Starred) for e in expr.elts) else None
        if isinstance(expr, ast.Dict):
            return len(expr.keys)
        if isinstance(expr, (ast.ListComp, ast.SetComp)):
            return None if any(g.ifs for g in expr.generators) else self.iterations(module, expr)
        if isinstance(expr, ast.Name):
            if expr in self._asked:
                return None
            self._asked.add(expr)
            try:
                values = {self.length(module, v) for v in self.sources(module, expr)}
            finally:
                self._asked.discard(expr)
            return values.pop() if len(values) == 1 and not _grows(module, expr.id) else None
        if not isinstance(expr, ast.Call):
            return None
        word = expr.func.attr if isinstance(expr.func, ast.Attribute) else getattr(expr.func, "id", "")
        if word == "take" and isinstance(expr.func, ast.Attribute) and expr.args:
            return self.integer(module, expr.args[0])
        if word in ("range", "trange"):
            bounds = [self.integer(module, a) for a in expr.args]
            known = [b for b in bounds if b is not None]
            return len(range(*known)) if known and len(known) == len(bounds) and known[2:] != [0] else None
        if word in (
            "enumerate",
            "reversed",
            "sorted",
            "list",
            "tuple",
            "tqdm",
            "track",
            "zip",
            "items",
            "keys",
            "values",
        ):
            base = expr.func.value if isinstance(expr.func, ast.Attribute) and not expr.args else None
            candidates = [base] if base is not None else expr.args[:1] if word != "zip" else expr.args
            lengths = [n for a in candidates if (n := self.length(module, a)) is not None]
            return min(lengths, default=None)
        return None

    def integer(self, module: Module, expr: ast.expr) -> int | None:
        """An integer literal, followed through names."""
        if isinstance(expr, ast.Constant):
            return expr.value if isinstance(expr.value, int) and not isinstance(expr.value, bool) else None
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub):
            inner = self.integer(module, expr.operand)
            return -inner if inner is not None else None
        if isinstance(expr, ast.Name):
            values = {self.integer(module, v) for v in self.sources(module, expr)}
            return values.pop() if len(values) == 1 else None
        return self._arithmetic(module, expr) if isinstance(expr, ast.BinOp) else None

    def _arithmetic(self, module: Module, expr: ast.BinOp) -> int | None:
        left, right = self.integer(module, expr.left), self.integer(module, expr.right)
        if left is None or right is None:
            return None
        if isinstance(expr.op, ast.Add):
            return left + right
        if isinstance(expr.op, ast.Sub):
            return left - right
        if isinstance(expr.op, ast.Mult):
            return left * right
        return left // right if isinstance(expr.op, ast.FloorDiv) and right else None

    def sources(self, module: Module, name: ast.Name) -> list[ast.expr]:
        """The expressions that a name stands for in its file; empty if anything else binds it.

        For a parameter it is the default, provided that no project call passes it.
        """
        bindings = self.names.reaching(module, name)
        exprs = [e for b in bindings if (e := self._source(module, b)) is not None and e is not name]
        return exprs if len(exprs) == len(bindings) else []

    def _source(self, module: Module, binding: Binding) -> ast.expr | None:
        if binding.kind == "assign":
            return binding.value
        node = binding.scope.node
        if binding.kind != "param" or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        function = self.names.function(module, node)
        given = any(passed(call, function, binding.name) for _, call in self.inference.callers(function))
        return None if given else default(node.args, binding.name)

    # ---- what varies ---------------------------------------------------------------------------------------------

    def varies(self, module: Module, expr: ast.expr, loop: LoopNode) -> bool | None:
        """Whether an expression in a loop's body differs between iterations. None: unknown."""
        return self._varies(module, expr, loop, set())

    def _varies(self, module: Module, expr: ast.AST, loop: LoopNode, open_: _Open) -> bool | None:
        if isinstance(expr, ast.Name):
            return self._name_varies(module, expr, loop, open_)
        if isinstance(expr, ast.Constant):
            return False
        if isinstance(expr, ast.Attribute):
            stored = self._stored(module, expr, loop, open_)
            if stored:
                return True
            base = self._varies(module, expr.value, loop, open_)
            return base if base is not False else stored
        parts = [c for c in ast.iter_child_nodes(expr) if isinstance(c, (ast.expr, ast.keyword, ast.comprehension))]
        if isinstance(expr, ast.Call):
            if self.names.name(module, expr.func) in _CHANGING or getattr(expr.func, "id", "") in ("next", "input"):
                return True
            known = _any(self._varies(module, p, loop, open_) for p in parts)
            return known if known is not False or self._pure(module, expr) else None
        if isinstance(expr, ast.Lambda):
            return None
        return _any(self._varies(module, p, loop, open_) for p in parts)

    def _name_varies(self, module: Module, expr: ast.Name, loop: LoopNode, open_: _Open) -> bool | None:
        answers: list[bool | None] = []
        bindings = self.names.reaching(module, expr)
        inside = [b for b in bindings if self.within(module, b.node, loop)]
        for binding in inside:
            if binding in open_ or binding.kind == "aug" or binding.node is loop:
                answers.append(True)
            elif binding.kind == "element" and binding.value is not None:
                answers.append(self._inner(module, binding.value, loop, open_))
            elif binding.kind in ("assign", "unpack", "with") and binding.value is not None:
                open_.add(binding)
                answers.append(self._varies(module, binding.value, loop, open_))
                open_.discard(binding)
            elif binding.kind in ("def", "class", "import"):
                answers.append(False)
            else:
                answers.append(None)
        if len(inside) > 1 or (inside and len(inside) < len(bindings)):
            answers.append(None)
        if self._mutated(module, expr.id, loop):
            answers.append(None)
        return _any(answers)

    def within(self, module: Module, node: ast.AST, loop: LoopNode) -> bool:
        """Whether a node is inside a loop, including the loop's targets."""
        current: ast.AST | None = node
        while current is not None:
            if current is loop:
                return True
            current = module.parent(current)
        return False

    def _inner(self, module: Module, iterated: ast.expr, loop: LoopNode, open_: _Open) -> bool | None:
        """Whether an inner loop's iterable varies; it is the same in each iteration only if it is a literal."""
        varies = self._varies(module, iterated, loop, open_)
        fixed = isinstance(iterated, (ast.List, ast.Tuple)) or last_word(getattr(iterated, "func", iterated)) == "range"
        return varies if fixed or varies else None

    def _stored(self, module: Module, expr: ast.Attribute, loop: LoopNode, open_: _Open) -> bool | None:
        """Whether the loop's own body assigns an attribute; unknown if it may be assigned elsewhere."""
        text = ast.dump(expr.value)
        for store in module.flow.stores:
            if isinstance(store, ast.Attribute) and store.attr == expr.attr and self.within(module, store, loop):
                if ast.dump(store.value) != text:
                    return None
                statement = module.parent(store)
                if not isinstance(statement, ast.Assign) or statement.value is expr or statement in open_:
                    return True
                open_.add(statement)
                varies = self._varies(module, statement.value, loop, open_)
                open_.discard(statement)
                return varies
        value = self.inference.value(module, expr.value)
        if value.cls is not None:
            owner = self.names.owner(value.cls, expr.attr)
            made = {b.scope.name.rpartition(".")[2] for b in owner.scope.attributes[expr.attr]} if owner else set()
            return None if made - {"__init__", "build"} else False
        return False

    def _mutated(self, module: Module, name: str, loop: LoopNode) -> bool:
        """Whether the loop stores into an object, or calls a method that may change it."""
        for store in module.flow.stores:
            base: ast.AST = store
            while isinstance(base, (ast.Attribute, ast.Subscript)):
                base = base.value
            if isinstance(base, ast.Name) and base.id == name and self.within(module, store, loop):
                return True
        words = ("append", "extend", "add", "update", "insert", "pop", "popleft", "appendleft", "remove", "clear")
        return any(
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == name
            and self.within(module, call, loop)
            for word in words
            for call in module.flow.calls.get(word, ())
        )

    def _pure(self, module: Module, call: ast.Call) -> bool:
        """Whether the same arguments give the same result: Python conversions and arithmetic."""
        if isinstance(call.func, ast.Name) and not self.names.reaching(module, call.func):
            return call.func.id in (
                "int",
                "float",
                "str",
                "len",
                "abs",
                "min",
                "max",
                "round",
                "range",
                "tuple",
                "list",
            )
        return self.names.name(module, call.func).startswith(("math.", "numpy.arange", "numpy.zeros", "numpy.ones"))


def _grows(module: Module, name: str) -> bool:
    """Whether a container starts as a short literal and is filled later: ``rows = []``, ``rows.append(row)``."""
    stored = any(
        isinstance(store, ast.Subscript) and isinstance(store.value, ast.Name) and store.value.id == name
        for store in module.flow.stores
    )
    return stored or any(
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == name
        for word in ("append", "extend", "insert", "add", "update", "setdefault")
        for call in module.flow.calls.get(word, ())
    )


def _repeats(loop: LoopNode, child: ast.AST, before: ast.AST) -> bool:
    """Whether a child of a loop runs repeatedly, and not only after a failure."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return child in loop.body and not leaves(loop.body)
    if isinstance(loop, ast.While):
        return (child is loop.test or child in loop.body) and not leaves(loop.body)
    return not (child is loop.generators[0] and before is loop.generators[0].iter)


def _any(answers: Iterable[bool | None]) -> bool | None:
    unknown = False
    for answer in answers:
        if answer:
            return True
        unknown = unknown or answer is None
    return None if unknown else False
