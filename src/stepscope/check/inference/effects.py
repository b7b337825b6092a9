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
from stepscope.check.inference.tags import Class, Tag
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import argument, last_word, walk

Kind = Literal["random", "variable", "table", "python", "side effect"]
MAX_LEVELS = 3
_RANDOM = frozenset(
    "tensorflow.random.uniform tensorflow.random.normal tensorflow.random.truncated_normal tensorflow.random.shuffle "
    "tensorflow.random.gamma tensorflow.random.poisson tensorflow.random.categorical "
    "tensorflow.random.log_uniform_candidate_sampler tensorflow.nn.dropout tensorflow.nn.experimental.dropout "
    "tensorflow.image.sample_distorted_bounding_box tensorflow.Generator.uniform".split()
)
_PYTHON = frozenset({"tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.py_func"})
_WEIGHTLESS = frozenset(
    f"keras.layers.{name}"
    for name in "Activation CenterCrop Concatenate Cropping1D Cropping2D Flatten Input InputLayer LeakyReLU "
    "Permute ReLU RepeatVector Rescaling Reshape Resizing Softmax ZeroPadding1D ZeroPadding2D".split()
)
"""Layers without variables."""
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
            kind = _kind_of(name)
            if kind is not None:
                yield Effect(kind, name, module, call)
        if not names:
            callee = self.inference.value(module, call.func)
            if callee.kind.startswith("keras.layers.Random"):
                yield Effect("random", callee.kind, module, call)
            elif callee.kind.endswith(("Lookup", "TextVectorization", "Hashing")) and callee.tag is Tag.LAYER:
                yield Effect("table", callee.kind, module, call)
            elif callee.tag is Tag.MODEL and not self._stateless(module, call.func):
                yield Effect("variable", ast.unparse(call.func), module, call)

    def _stateless(self, module: Module, model: ast.expr) -> bool:
        """Whether a model is a ``Sequential`` of layers that hold no weights and draw nothing.

        Measured on TensorFlow 2.15 and 2.21: a function that calls one is not stateful; tf.data runs it in parallel.
        """
        names = self.inference.names
        made = [b.value for b in names.reaching(module, model)] if isinstance(model, ast.Name) else []
        grown = [c.func.value for c in module.flow.calls.get("add", ()) if isinstance(c.func, ast.Attribute)]
        if last_word(model) in map(last_word, grown):  # of layers that come later nothing is known here
            return False
        for value in made:
            if not isinstance(value, ast.Call) or names.name(module, value.func) != "keras.Sequential":
                return False
            layers = argument(value, 0, "layers")
            if not isinstance(layers, (ast.List, ast.Tuple)) or not layers.elts:
                return False
            if not all(isinstance(e, ast.Call) and self._weightless(module, e) for e in layers.elts):
                return False
        return bool(made)

    def _weightless(self, module: Module, layer: ast.Call) -> bool:
        """Whether a layer holds no variables; for a Lambda, whether what it calls is known to have no state."""
        names = self.inference.names
        name = names.name(module, layer.func)
        called = argument(layer, 0, "function")
        if name != "keras.layers.Lambda" or called is None:
            return name in _WEIGHTLESS
        if isinstance(called, ast.Lambda):
            return not self.of(names.function(module, called))
        things = names.things(module, called)
        return bool(things) and not any(
            isinstance(t, Class | Module) or (_kind_of(t) if isinstance(t, str) else self.of(t)) for t in things
        )

    def vectorisable(self, function: Function) -> bool | None:
        """True: elementwise, so that a batch gives the same. None: unknown. Stateful functions are never
        vectorisable.
        """
        if self.of(function):
            return False
        return True if self.elementwise.of(function) else None


def _kind_of(name: str) -> Kind | None:
    """What makes a function of a library stateful; None if nothing is known to."""
    drawn = name in _RANDOM or name.startswith(("tensorflow.random.Generator.", "keras.random.SeedGenerator."))
    image = name.startswith("tensorflow.image.") and name.rpartition(".")[2].startswith("random_")
    if drawn or image or name.startswith("keras.layers.Random"):
        return "random"
    if name in _PYTHON:
        return "python"
    return "table" if name.startswith(_TABLES) else None


def own_nodes(function: Function) -> Iterable[ast.AST]:
    """Every node of a function's body, without the bodies of inner functions that are not called there."""
    yield from walk(function.body)
