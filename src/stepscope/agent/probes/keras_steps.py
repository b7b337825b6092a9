"""Calls of Keras' compiled step functions: what ``make_{train,test,predict}_function`` set on the model.

Where that is a tf.function object (Keras 2 throughout, Keras 3's predict) nothing is replaced: the object is noted,
and the wrapper of ``Function.__call__`` (``tf_function``) writes EXECUTION for it. Where it is a plain Python function
(Keras 3, and ``run_eagerly``) it is replaced by a wrapper that carries its attributes.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from stepscope.agent.probes.support import Here, lacking, leaf, report, shared, user_stack
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.state import AgentState

ROLES = ("train", "test", "predict")
MARK = "__stepscope_execution__"


class Execution:
    """A step function of one model. ``begin`` and ``end`` surround each call; they cannot raise."""

    __slots__ = ("_iterators", "batches", "name", "role")

    def __init__(self, iterators: Callable[[Any], Any], name: int, role: str, batches: int) -> None:
        self._iterators = iterators
        self.name = name
        self.role = role
        self.batches = batches
        """steps_per_execution."""

    def begin(self, me: Here, args: tuple[Any, ...]) -> Any:
        """Note that a call starts; returns the ``Consumed`` of its iterator, or None."""
        me.execution += 1
        consumed = self._iterators(args[0]) if args else None
        if consumed is not None:
            consumed.running += 1
            loop = me.loop
            if loop is not None and consumed not in loop.consumed:
                loop.consumed.append(consumed)
        return consumed

    def end(self, me: Here, consumed: Any) -> int:
        """Note that the call has ended; returns the number of batches in it."""
        me.execution -= 1
        if consumed is not None:
            consumed.ended += 1
            consumed.running -= 1
        loop = me.loop
        if self.batches > 1 and loop is not None and loop.steps:
            return max(1, min(self.batches, loop.steps - loop.batch_at))
        return self.batches


def attach(state: AgentState, module: Any) -> None:
    """Patch the trainer class of ``module``."""
    cls = next((found for found in (getattr(module, n, None) for n in ("TensorFlowTrainer", "Model")) if found), None)
    label = "keras_steps:%s" % module.__name__
    if cls is None:
        report(state, label, "no trainer class")
        return
    why = ""
    for role in ROLES:
        why = why or _patch_make(state, cls, role)
    report(state, label, why)


def _patch_make(state: AgentState, cls: Any, role: str) -> str:
    method = "make_%s_function" % role
    original = cls.__dict__.get(method)
    why = lacking(cls, method, ("self",))
    if why or original is None or hasattr(original, MARK):
        return why
    attribute = "%s_function" % role

    @functools.wraps(original)
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        with state.guard("keras_steps.make"):
            before = getattr(self, attribute, None)
            after = _adopt(state, self, before, role)
            if after is not before:
                _set_untracked(self, attribute, after)
                if made is before:
                    made = after
        return made

    setattr(make, MARK, True)
    state.patch(cls, method, make)
    return ""


def _set_untracked(model: Any, attribute: str, value: Any) -> None:
    """Set a plain function on a model. Functions are nothing that Keras tracks, so its ``__setattr__`` may see it."""
    setattr(model, attribute, value)


def _adopt(state: AgentState, model: Any, function: Any, role: str) -> Any:
    """What ``model`` shall call: ``function`` itself when it is a tf.function, else a wrapper of it."""
    common = shared(state)
    if function is None or hasattr(function, MARK) or common.executions.get(function) is not None:
        return function
    name = state.name(("execution", role), role, role=role)
    execution = Execution(_iterator_lookup(state), name, role, _batches(model))
    if isinstance(function, types.FunctionType):
        return _wrap(state, execution, function)
    common.executions.set(function, execution)
    return function


def _iterator_lookup(state: AgentState) -> Callable[[Any], Any]:
    get = shared(state).iterators.get

    def lookup(iterator: Any) -> Any:
        return get(iterator)

    return lookup


def _batches(model: Any) -> int:
    value = getattr(model, "_steps_per_execution", None)
    if value is None:
        value = getattr(model, "steps_per_execution", None)
    if value is None:
        return 1
    return int(value.numpy()) if hasattr(value, "numpy") else int(value)


def _wrap(state: AgentState, execution: Execution, original: Callable[..., Any]) -> Callable[..., Any]:
    local = shared(state).local
    kind = int(Kind.EXECUTION)
    raised = int(Flag.RAISED)
    traced = int(Flag.TRACED)
    name = execution.name
    begin = execution.begin
    end = execution.end
    now = state.now

    @functools.wraps(original)
    def step(*args: Any, **kwargs: Any) -> Any:
        me = local.me
        if me.tracing:
            return original(*args, **kwargs)
        traces = me.traces
        flags = 0
        consumed = begin(me, args)
        start = now()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            flags = _flag(error)
            raise
        finally:
            spent = now() - start
            if me.traces != traces:
                flags |= traced
            state.write(start, spent, end(me, consumed), name, kind, flags, state.thread())

    def _flag(error: BaseException) -> int:
        ended = isinstance(error, StopIteration) or type(error).__name__ == "OutOfRangeError"
        return int(Flag.END) if ended else raised

    setattr(step, MARK, True)
    return step


def attach_compile(state: AgentState, module: Any) -> None:
    """``model`` events, and the ``make_*`` of subclasses that override it."""
    cls = getattr(module, "Trainer", None) or getattr(module, "Model", None)
    label = "keras_steps.compile:%s" % module.__name__
    why = "no trainer class" if cls is None else lacking(cls, "compile", ("self",))
    if not why:
        original = cls.__dict__["compile"]

        @functools.wraps(original)
        def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            with state.guard("keras_steps.compile"):
                _tell(state, self)
                for owner in type(self).__mro__:
                    for role in ROLES:
                        if "make_%s_function" % role in owner.__dict__:
                            _patch_make(state, owner, role)
            return result

        state.patch(cls, "compile", compiled)
    report(state, label, why)


def _tell(state: AgentState, model: Any) -> None:
    file, _, line = leaf(user_stack())
    built = bool(getattr(model, "built", False))
    state.log(
        {
            "t": "model",
            "at": state.now(),
            "name": str(getattr(model, "name", "")),
            "parameters": int(model.count_params()) if built else 0,
            "run_eagerly": bool(getattr(model, "run_eagerly", False)),
            "steps_per_execution": _batches(model),
            "jit_compile": getattr(model, "_jit_compile", getattr(model, "jit_compile", False)) is True,
            "file": file,
            "line": line,
        }
    )


TARGETS = (
    ("keras.src.backend.tensorflow.trainer", attach),
    ("keras.src.engine.training", attach),
    ("tf_keras.src.engine.training", attach),
    ("keras.src.trainers.trainer", attach_compile),
    ("keras.src.engine.training", attach_compile),
    ("tf_keras.src.engine.training", attach_compile),
)
