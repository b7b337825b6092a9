"""Code that runs while a graph is traced rather than in each step: tf.functions, and code that tf.data and Keras
compile.
"""

from __future__ import annotations

import ast

from stepscope.check.inference.infer import Inference
from stepscope.check.inference.memo import Memo
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Tag
from stepscope.check.source.bindings import FUNCTIONS, FunctionNode
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import function_body, last_word

_TRACED_METHODS = frozenset({"call", "train_step", "test_step", "predict_step", "compute_loss", "update_state"})
"""Methods of Keras models, layers, losses and metrics that run inside compiled functions."""
TRACING = frozenset(
    {
        "tensorflow.function", "tensorflow.map_fn", "tensorflow.vectorized_map", "tensorflow.while_loop",
        "tensorflow.cond", "tensorflow.scan", "tensorflow.py_function.inside", "tensorflow.custom_gradient",
        "tensorflow.contrib.eager.defun", "keras.layers.Lambda", "tensorflow.switch_case", "tensorflow.case",
        "jax.jit", "tensorflow.compat.v1.wrap_function",
        *(f"tensorflow.data.Dataset.{m}" for m in ("map", "filter", "interleave", "flat_map", "scan", "reduce",
          "take_while", "group_by_window", "bucket_by_sequence_length", "apply", "map_with_legacy_function")),
        "tensorflow.data.experimental.parallel_interleave", "tensorflow.data.experimental.map_and_batch",
    }
)  # fmt: skip
"""Calls that trace their function arguments."""
_TRACING_WORDS = tuple(sorted({name.rpartition(".")[2] for name in TRACING}))


class Tracing:
    """Analysis of traced code.

    Args:
        inference: values and callers.
    """

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.names = inference.names
        self._traced: Memo[FunctionNode, bool] = Memo(inference.questions, False, self._is_traced)

    def of_graph(self, module: Module, call: ast.Call) -> bool:
        """Whether a call is of a tf.function."""
        value = self.inference.value(module, call.func)
        return value.tag is Tag.FUNCTION and not value.many

    def traced(self, module: Module, node: ast.AST) -> bool:
        """Whether a node runs while a graph is traced: in a tf.function, or in code that tf.data or Keras compiles."""
        function = self.enclosing(module, node)
        return function is not None and self.is_traced(function)

    def enclosing(self, module: Module, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        child, parent = node, module.parent(node)
        while parent is not None:
            if isinstance(parent, FUNCTIONS) and child in function_body(parent):
                return self.names.function(module, parent)
            child, parent = parent, module.parent(parent)
        return None

    def is_traced(self, function: Function) -> bool:
        """Whether a function is a tf.function, is passed to a call that traces it, or is called only by such
        functions (and by tests).
        """
        return self._traced.get(function.node, function)

    def _is_traced(self, function: Function) -> bool:
        if self.inference.is_graph_function(function) or self._keras_method(function) or self._given(function):
            return True
        outer = self.enclosing(function.module, function.node)
        if outer is not None and self.is_traced(outer):
            return True
        project = self.inference.project
        callers = [(m, c) for m, c in self.inference.callers(function) if not project.is_test(m.path)]
        return bool(callers) and all(self._from_traced(m, c) for m, c in callers)

    def _from_traced(self, module: Module, call: ast.Call) -> bool:
        outer = self.enclosing(module, call)
        return outer is not None and self.is_traced(outer)

    def _keras_method(self, function: Function) -> bool:
        if function.cls is None or function.name not in _TRACED_METHODS:
            return False
        tag = self.inference.instance(function.cls).tag
        return tag in (Tag.MODEL, Tag.LAYER) or any(
            name.startswith(("keras.losses.", "keras.metrics.")) for name in self.names.lineage(function.cls)
        )

    def _given(self, function: Function) -> bool:
        """Whether a function is passed by name to a call that traces it, in its own file."""
        node = function.node
        if isinstance(node, ast.Lambda):
            parent = function.module.parent(node)
            call = function.module.parent(parent) if isinstance(parent, ast.keyword) else parent
            return isinstance(call, ast.Call) and node is not call.func and self._traces(function.module, call)
        for word in _TRACING_WORDS:
            for call in function.module.flow.calls.get(word, ()):
                given = [*call.args, *(k.value for k in call.keywords)]
                named = (g for g in given if isinstance(g, (ast.Name, ast.Attribute)) and last_word(g) == function.name)
                if any(self._is(function, g) for g in named) and self._traces(function.module, call):
                    return True
        return False

    def _is(self, function: Function, expr: ast.expr) -> bool:
        things = self.names.things(function.module, expr)
        return any(isinstance(t, Function) and t.node is function.node for t in things)

    def _traces(self, module: Module, call: ast.Call) -> bool:
        names = self.names.names(module, call.func)
        return any(name in TRACING or name.endswith((".Strategy.run", ".experimental_run_v2")) for name in names)
