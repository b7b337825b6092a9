"""Keras layers and optimizers: the line that built each, and the one that is active while an op is made.

Keras 3 keeps a stack of name scopes with the layer, optimizer or loss that opened each. Keras 2 knows the layer that is
being called. Each is logged once, when it makes its first op. Keras 3 updates metrics outside any scope: their ops have
no owner; metrics are logged when they are made, and their variables have their names. Keras 2 does not know the active
optimizer, nor does a thread in which a distribution strategy applies gradients: there the frames of ``UPDATES``
identify it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.core.other_frames import variable
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import drop_our_frame, lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Keras = Foreign
    """A layer, optimizer, metric or loss; a module or function of Keras."""

MAX_OWNERS = 20_000
UPDATES = (
    "apply_gradients",
    "apply",
    "_distributed_apply_gradients_fn",
    "_distributed_apply",
    "_distributed_tf_update_step",
)
"""Methods of optimizers that make the ops of the update but none of the gradients (``minimize`` does both)."""
OWNERS = "layer_owners"
MAX_METRICS = 200
"""Metrics logged in one process: some programs make new ones for each of many models."""


class Owners:
    """Layers and optimizers by id, and the lines that built them."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._known = WeakIds()
        self._entries = self._known.entries
        self.built = shared(state).built
        """Layer -> (file, function, line)."""
        self.places: dict[int, tuple[str, str, int]] = {}
        """The same by id, of those that have made an op."""

    def of(self, owner: Keras, outer: Keras = None) -> int:
        """Id of the object that makes ops; ``outer`` encloses it. 0 for None."""
        if owner is None:
            return 0
        entry = self._entries.get(id(owner))
        return entry[1] if entry is not None else self._meet(owner, outer)

    def _meet(self, owner: Keras, outer: Keras) -> int:
        if len(self._entries) >= MAX_OWNERS:
            return 0
        identity = self._state.new_id("layer")
        self._known.set(owner, identity)
        file, function, line = self.places[identity] = self.built.get(owner) or ("", "", 0)
        above = self._entries.get(id(outer)) if outer is not None else None
        told: dict[str, object] = {"t": "layer", "at": self._state.now(), "id": identity}
        told.update(name=str(getattr(owner, "name", "")), cls=type(owner).__name__, outer=above[1] if above else 0)
        told.update(file=file, function=function, line=line)
        self._state.log(told)
        return identity


def owners_of(state: AgentState) -> Owners:
    """The ``Owners`` of this process."""
    attributes = vars(state)
    if OWNERS not in attributes:
        attributes[OWNERS] = Owners(state)
    found: Owners = attributes[OWNERS]
    return found


def attach3(state: AgentState, module: Keras) -> None:
    """For Keras 3: patch ``Layer.__init__``, read its stack of name scopes."""
    tracker: Keras = sys.modules.get("keras.src.backend.common.global_state")
    why = lacking(getattr(module, "Layer", None), "__init__", ("self",))
    why = why or ("" if hasattr(tracker, "GLOBAL_STATE_TRACKER") else "no GLOBAL_STATE_TRACKER")

    def current() -> tuple[Keras, Keras]:
        scopes = getattr(tracker.GLOBAL_STATE_TRACKER, "name_scope_stack", None)
        owner = None
        for scope in reversed(scopes or ()):
            caller = getattr(scope, "caller", None)
            if caller is None:
                continue
            if owner is not None:
                return owner, caller
            owner = caller
        return owner, None

    _attach(state, module, current, why)


def attach2(state: AgentState, module: Keras) -> None:
    """For Keras 2: patch ``Layer.__init__``, ask for the layer that is being called."""
    utils: Keras = sys.modules.get(module.__name__.rpartition(".")[0] + ".base_layer_utils")
    why = lacking(getattr(module, "Layer", None), "__init__", ("self",)) or lacking(utils, "call_context")

    def current() -> tuple[Keras, Keras]:
        return utils.call_context().layer, None

    _attach(state, module, current, why)


def attach_metrics(state: AgentState, module: Keras) -> None:
    """For Keras 3: patch ``Metric.__init__``."""
    why = lacking(getattr(module, "Metric", None), "__init__", ("self",))
    if not why:
        cls = module.Metric
        told = functools.partial(_tell_metric, state, [])
        state.patch(cls, "__init__", _wrap(state, cls.__dict__["__init__"], told))
    report(state, "layers.metrics", why)


def _tell_metric(state: AgentState, ids: list[int], metric: Keras, place: tuple[str, str, int]) -> None:
    if len(ids) < MAX_METRICS:
        ids.append(state.new_id("layer"))
        told: dict[str, object] = {"t": "layer", "at": state.now(), "id": ids[-1]}
        told.update(name=str(metric.name), cls=type(metric).__name__)
        told.update(file=place[0], function=place[1], line=place[2])
        state.log(told)


def _attach(state: AgentState, module: Keras, current: Callable[[], tuple[Keras, Keras]], why: str) -> None:
    if not why:
        owners = owners_of(state)
        lines = shared(state).lines

        def now() -> int:
            return owners.of(*current())

        lines.owner = now if lines.owner is None else _either(lines.owner, now)
        cls = module.Layer
        state.patch(cls, "__init__", _wrap(state, cls.__dict__["__init__"], owners.built.set))
    report(state, "layers:%s" % module.__name__, why)


def _attach_optimizer(*classes: str, built: bool = True) -> Callable[[AgentState, Keras], None]:
    """An ``attach`` that notes the updates of some classes; ``built``: patch ``__init__`` of the first one present."""

    def attach(state: AgentState, module: Keras) -> None:
        found = [cls for cls in (getattr(module, name, None) for name in classes) if cls is not None]
        why = "" if found else "none of %s" % ", ".join(classes)
        for cls in found:
            why = why or lacking(cls, "apply_gradients", ("self", "grads_and_vars"))
        if not why:
            owners = owners_of(state)
            lines = shared(state).lines
            for update in [cls.__dict__[name] for cls in found for name in UPDATES if name in cls.__dict__]:
                lines.updates(inspect.unwrap(update).__code__)
            lines.updater = functools.partial(_updating, owners)
            if built and "__init__" in found[0].__dict__:
                state.patch(found[0], "__init__", _wrap(state, found[0].__dict__["__init__"], owners.built.set))
        report(state, "layers.optimizers:%s" % module.__name__, why)

    return attach


def _updating(owners: Owners, frame: FrameType) -> int:
    return owners.of(variable(frame, frame.f_code.co_varnames[0]))


def _either(first: Callable[[], int], second: Callable[[], int]) -> Callable[[], int]:
    """Combine two sources: a process may have Keras 3 and Keras 2 at once."""
    return lambda: first() or second()


def _wrap(state: AgentState, original: Callable[..., Foreign], built: Callable[..., object]) -> Callable[..., Foreign]:
    caller = sys._getframe

    @functools.wraps(original)
    def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("layers.built"):
            built(self, _built(self, caller(1)))

    # For a layer without its own __init__ Keras makes the config by getfullargspec, which ignores __wrapped__.
    vars(init)["__signature__"] = inspect.signature(original)
    return init


def _built(layer: Keras, frame: FrameType | None) -> tuple[str, str, int]:
    """Innermost user line outside the layer's own ``__init__`` methods."""
    while frame is not None:
        code = frame.f_code
        if frames.is_own(code.co_filename) and not _is_its_own(frame, layer):
            return (frames.absolute(code.co_filename), frames.function_name(code), frame.f_lineno or 0)
        frame = frame.f_back
    return ("", "", 0)


def _is_its_own(frame: FrameType, layer: Keras) -> bool:
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return False
    if not any(frames.code_of(vars(cls).get("__init__")) is code for cls in type(layer).__mro__):
        return False
    found = variable(frame, code.co_varnames[0])  # a layer may be built in the __init__ of another one of its class
    return found is None or found is layer


TARGETS = (
    ("keras.src.layers.layer", attach3),
    ("keras.src.metrics.metric", attach_metrics),
    ("keras.src.engine.base_layer", attach2),
    ("tf_keras.src.engine.base_layer", attach2),
    ("keras.src.optimizers.base_optimizer", _attach_optimizer("BaseOptimizer")),
    ("keras.src.backend.tensorflow.optimizer", _attach_optimizer("TFOptimizer", built=False)),
    ("keras.src.optimizers.optimizer", _attach_optimizer("_BaseOptimizer", "Optimizer")),
    ("tf_keras.src.optimizers.optimizer", _attach_optimizer("_BaseOptimizer", "Optimizer")),
    ("keras.src.optimizers.legacy.optimizer_v2", _attach_optimizer("OptimizerV2")),
    ("tf_keras.src.optimizers.legacy.optimizer_v2", _attach_optimizer("OptimizerV2")),
)
