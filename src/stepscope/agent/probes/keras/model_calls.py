"""Eager calls of Keras models, and optimizers applied from Python: the outermost ones, outside of tracing.

Of Keras on another framework than TensorFlow none are recorded: what is a call there, and what a trace, is not known,
and the rest of such a step is not measured.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import Sites, drop_our_frame, eager_test, lacking, leading, other_backend, report
from stepscope.agent.shapes import LEAST_NS, shape_of, shapes_of
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

SYMBOLIC = "KerasTensor"


def attach_model(state: AgentState, module: Foreign) -> None:
    """Patch ``Model.__call__``; where the class inherits it (Keras 3), the wrapper is set on the class."""
    if other_backend(module):
        return
    cls = getattr(module, "Model", None)
    why = "no Model" if cls is None else lacking(cls, "__call__", ("self",))
    if cls is not None and not why:
        hot = (int(Kind.MODEL_CALL), state.duty_cycle.light(Kind.MODEL_CALL, cls.__call__))
        state.patch(cls, "__call__", _wrap_call(state, cls.__call__), hot)
    report(state, "model_calls:%s" % module.__name__, why)


def _wrap_call(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    local = shared(state).local
    eager = eager_test()
    sites: dict[str, Sites] = {}
    ours = state.guard("model_calls.shape")
    now = state.now
    caller = sys._getframe
    kind = int(Kind.MODEL_CALL)
    shapes = shapes_of(state)

    @functools.wraps(original)
    def call(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        if me.call or me.loop is not None or me.function or me.tracing or not eager():
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        if args and type(args[0]).__name__ == SYMBOLIC:
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        me.call = 1
        flags = 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.call = 0
            text = type(self).__name__
            known = sites.get(text)
            if known is None:
                known = sites[text] = Sites(state, ("model_call", text), text=text)
            if spent >= LEAST_NS and not flags:
                with ours:
                    flags = shapes.flags(shape_of(args))
            state.write(start, spent, leading(args), known.name(caller(1)), kind, flags, state.thread())

    return call


def _attach_optimizer(*classes: str) -> Callable[[AgentState, Foreign], None]:
    def attach(state: AgentState, module: Foreign) -> None:
        if other_backend(module):
            return
        found = [cls for cls in (getattr(module, name, None) for name in classes) if cls is not None]
        why = "" if found else "none of %s" % ", ".join(classes)
        for cls in found:
            why = why or lacking(cls, "apply_gradients", ("self", "grads_and_vars"))
            for method in ("apply_gradients", "apply"):
                if method in cls.__dict__:
                    state.patch(cls, method, _wrap_apply(state, cls.__dict__[method]))
        report(state, "model_calls.apply:%s" % module.__name__, why)

    return attach


def _wrap_apply(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    local = shared(state).local
    eager = eager_test()
    sites = Sites(state, "apply", text="apply_gradients")
    now = state.now
    caller = sys._getframe
    kind = int(Kind.APPLY)

    @functools.wraps(original)
    def apply(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        if me.apply or me.loop is not None or me.tracing or not eager():
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        me.apply = 1
        flags = 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.apply = 0
            state.write(start, spent, 0, sites.name(caller(1)), kind, flags, state.thread())

    return apply


TARGETS = (
    ("keras.src.models.model", attach_model),
    ("keras.src.engine.training", attach_model),
    ("tf_keras.src.engine.training", attach_model),
    ("keras.src.optimizers.base_optimizer", _attach_optimizer("BaseOptimizer")),
    ("keras.src.optimizers.optimizer", _attach_optimizer("_BaseOptimizer", "Optimizer")),
    ("tf_keras.src.optimizers.optimizer", _attach_optimizer("_BaseOptimizer", "Optimizer")),
    ("keras.src.optimizers.legacy.optimizer_v2", _attach_optimizer("OptimizerV2")),
    ("tf_keras.src.optimizers.legacy.optimizer_v2", _attach_optimizer("OptimizerV2")),
)
