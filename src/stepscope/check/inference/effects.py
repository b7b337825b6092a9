"""The effects of functions in tf.data stages, other than computing a result.

tf.data runs ``map`` in parallel by default if the function is stateless; this module finds what makes it stateful.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from stepscope.check.inference.elementwise import Elementwise
from stepscope.check.inference.infer import Inference
from stepscope.check.inference.names import Function
from stepscope.check.inference.switches import never_runs, switches
from stepscope.check.inference.tags import Tag
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import walk

Kind = Literal["random", "variable", "table", "python", "side effect"]
MAX_LEVELS = 3
_RANDOM = frozenset(
    "tensorflow.random.uniform tensorflow.random.normal tensorflow.random.truncated_normal tensorflow.random.shuffle "
    "tensorflow.random.gamma tensorflow.random.poisson tensorflow.random.categorical "
    "tensorflow.random.log_uniform_candidate_sampler tensorflow.nn.dropout tensorflow.nn.experimental.dropout "
    "tensorflow.image.sample_distorted_bounding_box tensorflow.Generator.uniform".split()
)
_PYTHON = frozenset({"tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.py_func"})
_TABLES = ("tensorflow.lookup.", "tensorflow.contrib.lookup.")


class Effect(Struct, frozen=True):
    """One thing that makes a function stateful."""

    kind: Kind
    name: str
    """Qualified name of the op, or the user's name of the variable."""
    module: Module
    node: ast.expr


_Part = tuple[Effect | Function, ast.expr]
"""An effect or called function, and its place."""


class Effects:
    """Analysis of the effects of project functions.

    Args:
        inference: values and callees.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.elementwise = Elementwise(inference)
        self._effects: dict[ast.AST, tuple[Effect, ...]] = {}
        self._known: dict[ast.AST, tuple[_Part, ...]] = {}

    def of(self, function: Function) -> tuple[Effect, ...]:
        """What makes a function stateful, including its project callees; empty if nothing is known to."""
        known = self._effects.get(function.node)
        if known is None:
            self._effects[function.node] = ()
            known = self._effects[function.node] = tuple(self._find(function, MAX_LEVELS, frozenset(), {}))
        return known

    def _find(
        self, function: Function, levels: int, seen: frozenset[ast.AST], given: Mapping[str, bool]
    ) -> Iterable[Effect]:
        for part, node in self._parts(function):
            if given and never_runs(function, node, given):
                continue
            if isinstance(part, Effect):
                yield part
            elif levels and part.node not in seen and isinstance(node, ast.Call):
                yield from self._find(part, levels - 1, seen | {function.node}, switches(node, part, given))

    def _parts(self, function: Function) -> tuple[_Part, ...]:
        """A function's own effects and the project functions it calls, in source order."""
        known = self._known.get(function.node)
        if known is None:
            known = self._known[function.node] = tuple(self._look(function))
        return known

    def _look(self, function: Function) -> Iterable[_Part]:
        module = function.module
        for node in own_nodes(function):
            if isinstance(node, ast.Call):
                yield from ((effect, node) for effect in self._call(module, node))
                yield from ((callee, node) for callee in self.inference.callee(module, node))
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                value = self.inference.value(module, node)
                if value.tag is Tag.VARIABLE and not value.many:
                    yield Effect("variable", ast.unparse(node), module, node), node

    def _call(self, module: Module, call: ast.Call) -> Iterable[Effect]:
        names = self.inference.names.names(module, call.func)
        for name in names:
            last = name.rpartition(".")[2]
            drawn = name in _RANDOM or name.startswith(("tensorflow.random.Generator.", "keras.random.SeedGenerator."))
            if drawn or (name.startswith("tensorflow.image.") and last.startswith("random_")):
                yield Effect("random", name, module, call)
            elif name in _PYTHON:
                yield Effect("python", name, module, call)
            elif name.startswith(_TABLES):
                yield Effect("table", name, module, call)
            elif name.startswith("keras.layers.Random"):
                yield Effect("random", name, module, call)
        if not names:
            callee = self.inference.value(module, call.func)
            if callee.kind.startswith("keras.layers.Random"):
                yield Effect("random", callee.kind, module, call)
            elif callee.kind.endswith(("Lookup", "TextVectorization", "Hashing")) and callee.tag is Tag.LAYER:
                yield Effect("table", callee.kind, module, call)
            elif callee.tag is Tag.MODEL:
                yield Effect("variable", ast.unparse(call.func), module, call)

    def vectorisable(self, function: Function) -> bool | None:
        """True: elementwise, so that a batch gives the same. None: unknown. Stateful functions are never
        vectorisable.
        """
        if self.of(function):
            return False
        return True if self.elementwise.of(function) else None


def own_nodes(function: Function) -> Iterable[ast.AST]:
    """Every node of a function's body, without the bodies of inner functions that are not called there."""
    yield from walk(function.body)
