"""Calls of fit, evaluate, predict and *_on_batch of a Keras trainer, and what they know about their batches.

Covers Keras 3 on its three backends, Keras 2.15 and tf_keras. The methods of the trainer class are wrapped; if a
subclass overrides one, its call is seen when it calls its super class.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import RunningLoop, inputs_of, padding_of, shared
from stepscope.agent.probes.support import (
    Sites,
    drop_our_frame,
    lacking,
    leading,
    report,
    static_leading,
    trainer_class,
)
from stepscope.agent.shapes import shape_of, shapes_of
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

ON_BATCH = frozenset(("train_on_batch", "test_on_batch", "predict_on_batch"))
METHODS = {
    "fit": ("self", "x", "y"),
    "evaluate": ("self", "x", "y"),
    "predict": ("self", "x", "batch_size"),
    "train_on_batch": ("self", "x", "y"),
    "test_on_batch": ("self", "x", "y"),
    "predict_on_batch": ("self", "x"),
}
DOING = {"fit": int(Doing.TRAINING), "evaluate": int(Doing.EVALUATING), "predict": int(Doing.PREDICTING)}
EPOCHS_AT = 3
"""Place of fit's ``epochs`` among its arguments, without self."""
ROLES = {"fit": "train", "evaluate": "test", "predict": "predict"}
MAX_KINDS = 1_000
"""Distinct ``batch`` lines of one process."""
MAX_REPEATS = 64
"""Identical ``batch`` lines of one role: a program that calls predict a million times logs only this many."""


def attach_trainer(state: AgentState, module: Foreign) -> None:
    """Patch the trainer class of ``module``."""
    cls = trainer_class(module)
    if cls is None:
        report(state, "keras_loops", "%s has no trainer class" % module.__name__)
        return
    why = ""
    for method, parameters in METHODS.items():
        missing = lacking(cls, method, parameters)
        why = why or missing
        if not missing:
            state.patch(cls, method, _wrap(state, cls.__dict__[method], method))
    report(state, "keras_loops:%s" % module.__name__, why)


def _wrap(state: AgentState, original: Callable[..., Foreign], role: str) -> Callable[..., Foreign]:
    local = shared(state).local
    common = shared(state)
    sites = Sites(state, ("loop", role), text=role, role=role)
    note = state.guard("keras_loops.note")(state.duty_cycle.note)
    kind = int(Kind.LOOP)
    now = state.now
    caller = sys._getframe
    shapes = shapes_of(state) if role.startswith("predict") else None
    ours = state.guard("keras_loops.shape")
    looked = state.guard("keras_loops.batch")
    inputs = inputs_of(state)
    on_batch = role in ON_BATCH
    doing, what = state.records.doing, DOING.get(role, 0)

    @functools.wraps(original)
    def loop(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        name = sites.name(caller(1))
        me = local.me
        outer = me.loop
        flags = 0 if outer is None else int(Flag.NESTED)
        me.loop = this = RunningLoop(role, now(), outer, name)
        before = doing.begin(what) if what else 0
        if role == "fit":
            with looked:
                this.planned = _epochs(args, kwargs)
        elif on_batch:
            with looked:
                inputs.call((args[0] if args else kwargs.get("x"),))
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags |= drop_our_frame(error)
            raise
        finally:
            end = now()
            me.loop = outer
            if what:
                doing.end(before)
            samples = _samples(this, args, kwargs)
            if shapes is not None and not flags:
                with ours:
                    flags = shapes.flags(shape_of(args[0] if args else kwargs.get("x")))
            state.write(this.start, end - this.start, samples, name, kind, flags, state.thread())
            if this.consumed and common.read_models is not None:
                common.read_models(this)
            if state.duty_cycle.detached:  # the model, which holds its counts, may be released now
                note()

    return loop


def _epochs(args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> int:
    """Epochs that a fit is asked for; 0: unknown."""
    epochs = args[EPOCHS_AT] if len(args) > EPOCHS_AT else kwargs.get("epochs", 1)
    first = kwargs.get("initial_epoch", 0)
    return max(0, epochs - first) if isinstance(epochs, int) and isinstance(first, int) else 0


def _samples(loop: RunningLoop, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> int:
    if loop.role in ON_BATCH:
        return leading(args[0] if args else kwargs.get("x"))
    return loop.samples * (loop.epochs if loop.role == "fit" else 1)


def attach_inputs3(state: AgentState, module: Foreign) -> None:
    """Patch ``EpochIterator.__init__`` of Keras 3, which knows the data adapter."""
    cls = getattr(module, "EpochIterator", None)
    why = "no EpochIterator" if cls is None else lacking(cls, "__init__", ("self", "x", "y"))
    if not why:
        _after_init(state, cls, _look3)
    report(state, "keras_loops:%s" % module.__name__, why)


def attach_inputs2(state: AgentState, module: Foreign) -> None:
    """Patch ``DataHandler.__init__`` of Keras 2, which knows the data adapter."""
    cls = getattr(module, "DataHandler", None)
    why = "no DataHandler" if cls is None else lacking(cls, "__init__", ("self", "x", "y"))
    if not why:
        _after_init(state, cls, _look2)
    report(state, "keras_loops:%s" % module.__name__, why)


def _after_init(state: AgentState, cls: Foreign, look: Callable[[AgentState, Foreign], dict[str, Foreign]]) -> None:
    common = shared(state)
    local = common.local
    original = cls.__dict__["__init__"]
    padding = padding_of(state)
    inputs = inputs_of(state)
    seen: dict[tuple[Foreign, ...], int] = {}

    def tell(handler: Foreign) -> None:
        loop = local.me.loop
        if loop is None or loop.role in ON_BATCH:
            return
        found = look(state, handler)
        role = ROLES[loop.role] if loop.inputs == 0 else "test"
        loop.inputs += 1
        if loop.inputs == 1:
            _own_input(loop, found)
        if not found["size"]:
            dataset = getattr(getattr(handler, "data_adapter", None), "py_dataset", None)
            if dataset is not None:
                line = {"t": "batch", "loop": loop.start, "role": role, **found}
                common.sizes.set(dataset, (line, loop if loop.inputs == 1 else None))
                return
        key = (loop.role, role, found["size"], found["samples"], found["steps"])
        if len(seen) > MAX_KINDS:
            return
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= MAX_REPEATS:
            state.log({"t": "batch", "at": state.now(), "loop": loop.start, "role": role, **found})

    @functools.wraps(original)
    def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("keras_loops.inputs"):
            tell(self)
        with state.guard("keras_loops.padding"):
            padding.look(args[0] if args else kwargs.get("x"))
            inputs.look((args[0] if args else kwargs.get("x"),), batch=False)

    state.patch(cls, "__init__", init)


def _own_input(loop: RunningLoop, found: dict[str, Foreign]) -> None:
    """Note what a loop's own data are, and how often it goes through them."""
    loop.samples, loop.steps = found["samples"], found["steps"]
    if loop.planned:
        found["epochs"] = loop.planned


def _look3(state: AgentState, handler: Foreign) -> dict[str, Foreign]:
    adapter = handler.data_adapter
    first = getattr(adapter, "_first_batches", None)
    size = adapter.batch_size or _upstream(state, getattr(adapter, "_dataset", None)) or leading(first)
    steps = handler.steps_per_epoch or handler.num_batches or 0
    whole = not handler.steps_per_epoch or handler.steps_per_epoch == adapter.num_batches
    # Only arrays have it: others raise NotImplementedError.
    partial = getattr(adapter, "_partial_batch_size", 0) if whole else 0
    return _batch(adapter, int(size or 0), int(steps), int(partial))


def _look2(state: AgentState, handler: Foreign) -> dict[str, Foreign]:
    adapter = handler._adapter
    size = adapter.batch_size() or _upstream(state, getattr(adapter, "_dataset", None))
    if not size and hasattr(adapter, "representative_batch_size"):
        size = adapter.representative_batch_size()
    size = _of_this_process(int(size or 0), getattr(handler, "_dataset", None))
    steps = handler.inferred_steps or 0
    whole = steps == (adapter.get_size() or 0)
    partial = (adapter.partial_batch_size() or 0) if whole and adapter.has_partial_batch() else 0
    return _batch(adapter, int(size or 0), int(steps), int(partial))


def _of_this_process(size: int, dataset: Foreign) -> int:
    """Part of a global batch that this process takes, where a strategy of several workers splits what Keras gave it."""
    if type(dataset).__name__ != "DistributedDataset":
        return size
    strategy = dataset._strategy
    return size * len(strategy.extended.worker_devices) // max(1, int(strategy.num_replicas_in_sync))


def _batch(adapter: Foreign, size: int, steps: int, partial: int) -> dict[str, Foreign]:
    samples = size * steps
    if samples and 0 < partial < size:
        samples += partial - size
    return {"size": size, "samples": samples, "steps": steps, "source": type(adapter).__name__}


def _upstream(state: AgentState, dataset: Foreign) -> int:
    """Batch size of a dataset: of the last batch() upstream, else the static leading dimension."""
    if dataset is None:
        return 0
    made = shared(state).datasets.get(dataset)
    return (made.batch if made is not None else 0) or static_leading(getattr(dataset, "element_spec", None))


TARGETS = (
    ("keras.src.backend.tensorflow.trainer", attach_trainer),
    ("keras.src.backend.jax.trainer", attach_trainer),
    ("keras.src.backend.torch.trainer", attach_trainer),
    ("keras.src.engine.training", attach_trainer),
    ("tf_keras.src.engine.training", attach_trainer),
    ("keras.src.trainers.epoch_iterator", attach_inputs3),
    ("keras.src.engine.data_adapter", attach_inputs2),
    ("tf_keras.src.engine.data_adapter", attach_inputs2),
)
