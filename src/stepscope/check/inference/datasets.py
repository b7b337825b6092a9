"""Chains of tf.data: for a Dataset, its stages in order, each with its call and the function it runs.

A chain is one way to make the dataset: branches of an if, siblings of one parent and later assignments of the same name
give separate chains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from stepscope.check.inference.infer import Inference
from stepscope.check.inference.names import Function
from stepscope.check.inference.signatures import TRANSFORMATIONS
from stepscope.check.inference.tags import Class, Tag
from stepscope.check.inference.values import passed
from stepscope.check.source.bindings import Binding
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import argument, last_word

MAX_CHAINS = 16
MAX_STAGES = 64
MAX_VISITS = 4096
"""Limit of expressions visited for one chain: conditional stages double the paths through a function."""
MAX_LEVELS = 4
"""Depth to which project functions are followed."""
_FUNCTION_STAGES = {
    "map": "map_func", "map_with_legacy_function": "map_func", "interleave": "map_func", "flat_map": "map_func",
    "filter": "predicate", "take_while": "predicate", "scan": "scan_func", "from_generator": "generator",
}  # fmt: skip
_Open = frozenset[ast.AST | Binding]


class Stage(Struct, frozen=True):
    """A call that makes a dataset: a source at the head of a chain, or a transformation."""

    name: str
    """Name of the stage: ``map``, ``batch``, ``from_tensor_slices``, ``TFRecordDataset``; ``unknown`` for an unknown
    source."""
    module: Module
    call: ast.Call | None
    """Call of the stage; None if the chain begins with something unknown: a parameter that no call passes."""

    def argument(self, index: int, keyword: str) -> ast.expr | None:
        """An argument by position or keyword; None if it is not given."""
        return argument(self.call, index, keyword) if self.call is not None else None


class Chain(Struct, frozen=True):
    """One way to make a dataset."""

    stages: tuple[Stage, ...]
    """Stages from the source to the last transformation."""

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names in order."""
        return tuple(stage.name for stage in self.stages)

    @property
    def source(self) -> Stage:
        """The first stage."""
        return self.stages[0]

    @property
    def complete(self) -> bool:
        """Whether the chain is known from its source on."""
        return self.stages[0].name != "unknown"

    def index(self, call: ast.Call) -> int:
        """The position of a call in the chain; -1 if it is not there."""
        return next((i for i, stage in enumerate(self.stages) if stage.call is call), -1)


class DatasetAnalysis:
    """Analysis of how datasets are made.

    Args:
        inference: values, names and callees.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.names = inference.names
        self._left = 0
        """Number of expressions that may still be visited for the current chain."""

    def of(self, module: Module, expr: ast.expr) -> tuple[Chain, ...]:
        """The chains that may make an expression's dataset; empty if none is known."""
        self._left = MAX_VISITS
        found = (stages for stages in self._stages(module, expr, frozenset(), MAX_LEVELS) if stages)
        return tuple(Chain(stages) for stages in islice(found, MAX_CHAINS))

    def function(self, stage: Stage) -> Function | None:
        """The project function that a stage runs; None if there is none or it is unknown."""
        keyword = _FUNCTION_STAGES.get(stage.name)
        expr = stage.argument(1 if stage.name == "scan" else 0, keyword) if keyword else None
        return self.callable(stage.module, expr) if expr is not None else None

    def callable(self, module: Module, expr: ast.expr) -> Function | None:
        """The project function an expression stands for: lambda, def, method, partial, or a tf.function of one."""
        if isinstance(expr, ast.Call):
            names = self.names.names(module, expr.func)
            wrapped = any(n in ("functools.partial", "tensorflow.function") for n in names)
            if wrapped and expr.args:
                return self.callable(module, expr.args[0])
            for function in self.inference.callee(module, expr):  # a function that makes one
                for returned in function.scope.returns:
                    if (inner := self.callable(function.module, returned)) is not None:
                        return inner
            return None
        for thing in self.names.things(module, expr):
            if isinstance(thing, Function):
                return thing
            if isinstance(thing, Class):
                return None
        if isinstance(expr, ast.Name):
            for binding in self.names.reaching(module, expr):
                if binding.kind == "assign" and isinstance(binding.value, ast.Call):
                    return self.callable(module, binding.value)
        value = self.inference.value(module, expr)
        methods = self.inference.methods(value.cls, "__call__") if value.cls is not None else []
        return methods[0] if methods else None

    # ---- following -----------------------------------------------------------------------------------------------

    def _stages(self, module: Module, expr: ast.expr, open_: _Open, levels: int) -> Iterable[tuple[Stage, ...]]:
        self._left -= 1
        if expr in open_ or len(open_) > MAX_STAGES or self._left < 0:
            return
        open_ |= {expr}
        if isinstance(expr, ast.Call):
            yield from self._call(module, expr, open_, levels)
        elif isinstance(expr, ast.Name):
            for binding in self.names.reaching(module, expr):
                yield from self._binding(module, binding, open_, levels)
        elif isinstance(expr, ast.IfExp):
            yield from self._stages(module, expr.body, open_, levels)
            yield from self._stages(module, expr.orelse, open_, levels)
        elif isinstance(expr, ast.NamedExpr):
            yield from self._stages(module, expr.value, open_, levels)
        elif isinstance(expr, ast.Attribute):
            value = self.inference.value(module, expr.value)
            owner = self.names.owner(value.cls, expr.attr) if value.cls is not None else None
            for binding in owner.scope.attributes[expr.attr] if owner else ():
                yield from self._binding(owner.module if owner else module, binding, open_, levels)
        elif self.inference.value(module, expr).tag is Tag.DATASET:
            yield (Stage("unknown", module, None),)

    def _binding(self, module: Module, binding: Binding, open_: _Open, levels: int) -> Iterable[tuple[Stage, ...]]:
        if binding in open_:
            return
        open_ |= {binding}
        value = binding.value
        if binding.kind == "assign" and value is not None:
            yield from self._stages(module, value, open_, levels)
        elif binding.kind == "param":
            yield from self._parameter(module, binding, open_, levels)
        elif self.inference.binding(module, binding).tag is Tag.DATASET:
            call = value if isinstance(value, ast.Call) else None
            name = last_word(call.func) if call is not None else "unknown"
            yield (Stage(name if binding.kind == "unpack" else "unknown", module, call),)

    def _parameter(self, module: Module, binding: Binding, open_: _Open, levels: int) -> Iterable[tuple[Stage, ...]]:
        any_ = False
        node = binding.scope.node
        if levels and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = self.names.function(module, node)
            for caller, call in self.inference.callers(function):
                given = passed(call, function, binding.name)
                if given is not None:
                    for stages in self._stages(caller, given, open_, levels - 1):
                        any_ = True
                        yield stages
        if not any_ and self.inference.binding(module, binding).tag is Tag.DATASET:
            yield (Stage("unknown", module, None),)

    def _call(self, module: Module, call: ast.Call, open_: _Open, levels: int) -> Iterable[tuple[Stage, ...]]:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in TRANSFORMATIONS:
            value = self.inference.value(module, func.value)
            if value.tag is Tag.DATASET and not value.many:
                heads = islice(self._stages(module, func.value, open_, levels), MAX_CHAINS)
                for head in tuple(heads) or ((Stage("unknown", module, None),),):
                    yield (*head, Stage(func.attr, module, call))
                return
        followed = False
        for function in self.inference.callee(module, call) if levels else ():
            for returned in function.scope.returns:
                for stages in self._stages(function.module, returned, open_, levels - 1):
                    followed = True
                    yield stages
        if not followed and self.inference.value(module, call).tag is Tag.DATASET:
            yield (Stage(last_word(func), module, call),)
