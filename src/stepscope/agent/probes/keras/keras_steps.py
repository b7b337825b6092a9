"""Calls of Keras' compiled step functions: those that ``make_{train,test,predict}_function`` set on the model.

A tf.function object (Keras 2 throughout, Keras 3's predict) is not replaced: the object is noted, and the wrapper of
``Function.__call__`` (``tf_function``) writes EXECUTION for it. A plain Python function (Keras 3, and ``run_eagerly``)
is replaced by a wrapper that carries its attributes or, in a gap, by one that only counts its calls
(``agent.duty_cycle``).
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.probes.common import OTHER, RunningLoop, shared
from stepscope.agent.probes.support import drop_our_frame, lacking, leaf, report, trainer_class, user_stack
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

ROLES = ("train", "test", "predict")
MARK = "__stepscope_execution__"
STATEFUL = ("state", "iterator")
"""Parameters of a step function of Keras on JAX."""


class Execution:
    """A step function of one model."""

    __slots__ = ("batches", "name")

    def __init__(self, name: int, batches: int) -> None:
        self.name = name
        self.batches = batches
        """Batches per call: steps_per_execution."""

    def batches_now(self, loop: RunningLoop | None) -> int:
        """Batches in the call that has just ended: fewer at the end of an epoch whose length is known."""
        if self.batches > 1 and loop is not None and loop.steps:
            return max(1, min(self.batches, loop.steps - loop.batch_at))
        return self.batches


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the trainer class of ``module``."""
    cls = trainer_class(module)
    label = "keras_steps:%s" % module.__name__
    if cls is None:
        report(state, label, "no trainer class")
        return
    _count_in_gaps(state)
    why = ""
    for role in ROLES:
        why = why or _patch_make(state, cls, role)
    report(state, label, why)


def _count_in_gaps(state: AgentState) -> None:
    """Have the duty cycle exchange the step functions of all models, whatever computes them."""
    swap = shared(state).wrapped.swap
    if swap not in state.duty_cycle.swaps:
        state.duty_cycle.swaps.append(swap)


def _patch_make(state: AgentState, cls: Foreign, role: str) -> str:
    method = "make_%s_function" % role
    original = cls.__dict__.get(method)
    why = lacking(cls, method, ("self",))
    if why or original is None or hasattr(original, MARK):
        return why
    attribute = "%s_function" % role

    @functools.wraps(original)
    def make(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        try:
            made = original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("keras_steps.make"):
            before = getattr(self, attribute, None)
            after = _adopt(state, self, before, role)
            if after is not before:
                _set_untracked(self, attribute, after)
                if made is before:
                    made = after
                wrapped = shared(state).wrapped
                wrapped.add(self, attribute)
                if state.duty_cycle.detached:
                    wrapped.swap(detached=True)
        return made

    setattr(make, MARK, True)
    state.patch(cls, method, make)
    return ""


def _set_untracked(model: Foreign, attribute: str, value: Foreign) -> None:
    """Set a plain function on a model. Keras does not track functions, so its ``__setattr__`` may see it."""
    setattr(model, attribute, value)


def _adopt(state: AgentState, model: Foreign, function: Foreign, role: str) -> Foreign:
    """The function that ``model`` should call: ``function`` itself if it is a tf.function, else a wrapper of it."""
    common = shared(state)
    if function is None or hasattr(function, MARK) or common.executions.get(function) is not None:
        return function
    name = state.name(("execution", role), role, role=role)
    execution = Execution(name, _batches(model))
    if isinstance(function, types.FunctionType):
        return _wrap(state, execution, function)
    common.executions.set(function, execution)
    state.duty_cycle.steps_are_functions = True
    return function


def _batches(model: Foreign) -> int:
    value = getattr(model, "_steps_per_execution", None)
    if value is None:
        value = getattr(model, "steps_per_execution", None)
    if value is None:
        return 1
    return int(value.numpy()) if hasattr(value, "numpy") else int(value)


def _wrap(  # noqa: C901, PLR0915 - hot: one frame, and no calls but the needed ones
    state: AgentState, execution: Execution, original: Foreign
) -> Callable[..., Foreign]:
    """The EXECUTION branch of ``tf_function``, for a plain function."""
    local = shared(state).local
    iterators = shared(state).iterators.entries
    distributed = shared(state).iterators.entry_of_distributed
    kind = int(Kind.EXECUTION)
    traced = int(Flag.TRACED)
    name = execution.name
    batches_now = execution.batches_now
    now = state.now
    write = state.write
    thread = state.thread

    def step(iterator: Foreign) -> Foreign:
        me = local.me
        if me.tracing:
            try:
                return original(iterator)
            except BaseException as error:
                drop_our_frame(error)
                raise
        traces = me.traces
        loop = me.loop
        flags = 0
        consumed: Foreign = None
        held = iterators.get(id(iterator)) or distributed(iterator)
        if held is not None:
            consumed = held[1]
            consumed.running += 1
            if consumed.loop is not loop:
                consumed.enter(loop)
        me.execution += 1
        start = now()
        try:
            return original(iterator)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.execution -= 1
            if consumed is not None:
                consumed.ended += 1
                consumed.running -= 1
            if me.traces != traces:
                flags |= traced
            me.thread = number = me.thread or thread()
            write(start, spent, batches_now(loop), name, kind, flags, number)

    def general(*args: Foreign, **kwargs: Foreign) -> Foreign:
        try:
            return step(*args) if len(args) == 1 and not kwargs else original(*args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    wrapper = step if _takes(original, "iterator") else general
    if _takes(original, *STATEFUL):
        wrapper = _stateful(state, execution, original)
    functools.update_wrapper(wrapper, original)
    counts = state.duty_cycle.light(Kind.EXECUTION, original)
    for function, other in ((wrapper, counts), (counts, wrapper)):
        setattr(function, MARK, True)
        setattr(function, OTHER, other)
    return wrapper


def _stateful(state: AgentState, execution: Execution, original: Foreign) -> Callable[..., Foreign]:
    """The same for JAX, whose step functions are given the variables, too, and pull their batches from the iterator."""
    local = shared(state).local
    kind = int(Kind.EXECUTION)
    name = execution.name
    batches_now = execution.batches_now
    now = state.now
    write = state.write
    thread = state.thread

    def step(variables: Foreign, iterator: Foreign) -> Foreign:
        me = local.me
        flags = 0
        me.execution += 1
        start = now()
        try:
            return original(variables, iterator)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.execution -= 1
            me.thread = number = me.thread or thread()
            write(start, spent, batches_now(me.loop), name, kind, flags, number)

    return step


def _takes(function: Foreign, *names: str) -> bool:
    """Whether its parameters are these: our wrapper then needs no star and saves 0.1 us."""
    code = function.__code__
    variadic = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return code.co_argcount == len(names) and not variadic and code.co_varnames[: len(names)] == names


def attach_compile(state: AgentState, module: Foreign) -> None:
    """``model`` events, and the ``make_*`` of subclasses that override it."""
    cls = getattr(module, "Trainer", None) or getattr(module, "Model", None)
    label = "keras_steps.compile:%s" % module.__name__
    why = "no trainer class" if cls is None else lacking(cls, "compile", ("self",))
    if not why:
        _count_in_gaps(state)  # the trainer of another backend, which the subclass brings, has no other probe
        original = cls.__dict__["compile"]

        @functools.wraps(original)
        def compiled(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
            with state.guard("keras_steps.compile"):
                _tell(state, self)
                for owner in type(self).__mro__:
                    for role in ROLES:
                        if "make_%s_function" % role in owner.__dict__:
                            _patch_make(state, owner, role)
            return result

        state.patch(cls, "compile", compiled)
    report(state, label, why)


_COMPILES = WeakIds()
"""How many times each model was compiled."""


def _tell(state: AgentState, model: Foreign) -> None:
    file, _, line = leaf(user_stack())
    built = bool(getattr(model, "built", False))
    compiles = (_COMPILES.get(model) or 0) + 1
    _COMPILES.set(model, compiles)
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
            "compiles": compiles,
        }
    )


TARGETS = (
    ("keras.src.backend.tensorflow.trainer", attach),
    ("keras.src.backend.jax.trainer", attach),
    ("keras.src.backend.torch.trainer", attach),
    ("keras.src.engine.training", attach),
    ("tf_keras.src.engine.training", attach),
    ("keras.src.trainers.trainer", attach_compile),
    ("keras.src.engine.training", attach_compile),
    ("tf_keras.src.engine.training", attach_compile),
)
