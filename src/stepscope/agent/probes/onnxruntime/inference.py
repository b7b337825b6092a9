"""Sessions of ONNX Runtime: their settings, the time to make them (BUILD), and their runs (INFERENCE).

A run of ``run_async`` lasts until its callback begins, on a thread that ONNX Runtime made; it belongs to the thread
that asked for it. Runs of one thread that overlap follow each other: each begins when the one before it has ended.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.probes.support import Sites, drop_our_frame, lacking, leaf, report, user_stack
from stepscope.agent.shapes import shape_of, shapes_of
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Method = Callable[..., Foreign]

RUNS = {
    "run": (("self", "output_names", "input_feed"), 1),
    "run_with_ort_values": (("self", "output_names", "input_dict_ort_values"), 1),
    "run_with_iobinding": (("self", "iobinding"), 0),
    "run_with_ortvaluevector": (("self", "run_options", "feed_names", "feeds"), 2),
}
"""Methods that run a session: first parameters, and position of the argument with the model's inputs."""
ASYNC = "run_async"
ASKED = ("self", "output_names", "input_feed", "callback")
"""Its first parameters; before 1.16 it does not exist."""
_CALLBACK = 2
"""Its position."""
_ERROR = 2
"""Position of the error among what the callback is given; "" if there is none."""
BINDS = {
    "bind_cpu_input": (("self", "name", "arr_on_cpu"), 1),
    "bind_ortvalue_input": (("self", "name", "ortvalue"), 1),
    "bind_input": (("self", "name", "device_type", "device_id", "element_type", "shape"), 4),
}
"""Methods of an IOBinding that bind an input: first parameters, and position of the argument with its shape."""
MAX_MODELS = 200
"""Models named separately; later ones are "other models"."""
MAX_SETTINGS = 64
"""Distinct settings logged: a program that makes a session for each request makes them all alike."""
OTHER = "other models"
_SPINNING = "session.intra_op.allow_spinning"


class Models:
    """Names of runs: by the session's model and the calling line."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._sites: dict[str, Sites] = {}
        self._known = WeakIds()
        """Sessions -> ``Sites`` of their model."""
        self._told: set[tuple[object, ...]] = set()
        self.bound = WeakIds()
        """IOBindings -> (name, shape) of the input that was bound first."""

    def sites(self, session: Foreign) -> Sites:
        """Call sites of runs of a session."""
        found: Sites | None = self._known.get(session)
        if found is None:
            text = model_of(session)
            if text not in self._sites and len(self._sites) >= MAX_MODELS:
                text = OTHER
            found = self._sites.get(text)
            if found is None:
                found = self._sites[text] = Sites(self._state, ("inference", text), text=text)
            with contextlib.suppress(TypeError):
                self._known.set(session, found)
        return found

    def tell(self, session: Foreign) -> None:
        """Log the settings of a session, unless equal ones have been logged."""
        options = session.get_session_options()
        file, function, line = leaf(user_stack())
        fields = {
            "model": model_of(session),
            "providers": [str(provider) for provider in session.get_providers()],
            "intra_op_threads": int(options.intra_op_num_threads),
            "inter_op_threads": int(options.inter_op_num_threads),
            "parallel": str(options.execution_mode).endswith("PARALLEL"),
            "spins": _entry(options, _SPINNING) != "0",
            "arena": bool(options.enable_cpu_mem_arena),
            "open_batch": _open_batch(session),
            "replaceable": _replaceable(session),
            "file": file,
            "line": line,
            "function": function,
        }
        key = tuple(map(str, fields.values()))
        if key not in self._told and len(self._told) < MAX_SETTINGS:
            self._told.add(key)
            self._state.log({"t": "inference-session", "at": self._state.now(), **fields})


def model_of(session: Foreign) -> str:
    """Name of a session's model: its file, or its graph's name if it was loaded from bytes."""
    path = getattr(session, "_model_path", None)
    if path:
        return os.path.basename(str(path))
    return str(getattr(getattr(session, "_model_meta", None), "graph_name", "") or "model")


def _open_batch(session: Foreign) -> bool:
    """Whether the first size of the first input that is no scalar is left open."""
    shapes = (list(one.shape or ()) for one in session.get_inputs())
    first = next((shape[0] for shape in shapes if shape), 0)
    return not isinstance(first, int)


def _replaceable(session: Foreign) -> int:
    """Number of weights that runs may replace; 0 where a session does not say it."""
    weights = getattr(session, "get_overridable_initializers", None)
    return len(weights()) if weights is not None else 0


def _entry(options: Foreign, key: str) -> str:
    """An entry of the options' configuration, "" if it is not set: reading it then raises."""
    with contextlib.suppress(RuntimeError):
        return str(options.get_session_config_entry(key))
    return ""


def shape_fed(fed: Foreign, bound: WeakIds) -> tuple[int, ...]:
    """Shape of the first input that is no scalar: of a feed, an IOBinding or a vector of OrtValues."""
    known = bound.get(fed) if type(fed) is not dict else None
    if known is not None:
        shape: tuple[int, ...] = known[1]
        return shape
    values = fed.values() if hasattr(fed, "values") else fed if hasattr(fed, "__getitem__") else ()
    for value in itertools.islice(values, 4):
        found = shape_of(value)
        if found:
            return found
    return ()


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the functions that make sessions, run them and bind inputs."""
    models = Models(state)
    base, cls = getattr(module, "Session", None), getattr(module, "InferenceSession", None)
    why = "no Session, or no InferenceSession" if base is None or cls is None else ""
    lacks = why
    for name, (parameters, place) in RUNS.items():
        missing = why or lacking(base, name, parameters)
        if not missing and name in vars(base):
            state.patch(base, name, _wrap_run(state, vars(base)[name], models, parameters[place + 1], place))
        lacks = lacks or missing
    report(state, "inference", lacks)
    if not why and ASYNC in vars(base) and not lacking(base, ASYNC, ASKED):
        state.patch(base, ASYNC, _wrap_async(state, vars(base)[ASYNC], models))
    why = why or lacking(cls, "__init__", ("self", "path_or_bytes", "sess_options"))
    if not why:
        state.patch(cls, "__init__", _wrap_making(state, vars(cls)["__init__"], models))
    report(state, "inference:making", why)
    _attach_binding(state, getattr(module, "IOBinding", None), models.bound)


def _attach_binding(state: AgentState, binding: Foreign, bound: WeakIds) -> None:
    why = "no IOBinding" if binding is None else ""
    for name, (parameters, place) in BINDS.items():
        lacks = why or lacking(binding, name, parameters)
        if not lacks and name in vars(binding):
            state.patch(binding, name, _wrap_bind(state, vars(binding)[name], bound, parameters[place + 1], place))
        why = why or lacks
    report(state, "inference:binding", why)


def _wrap_run(state: AgentState, original: Method, models: Models, parameter: str, place: int) -> Method:
    """Record the run; the inputs are the argument ``parameter``, at position ``place`` if given without a name."""
    now = state.now
    caller = sys._getframe
    kind = int(Kind.INFERENCE)
    bound = models.bound
    ours = state.guard("inference.run")
    shapes = shapes_of(state)

    @functools.wraps(original)
    def run(self: object, *args: Foreign, **kwargs: Foreign) -> object:
        flags = 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            name = samples = 0
            with ours:
                name = models.sites(self).name(caller(1))
                shape = shape_fed(args[place] if len(args) > place else kwargs.get(parameter), bound)
                if shape:
                    samples = int(shape[0])
                    flags |= 0 if flags else shapes.flags(shape)
            state.write(start, spent, samples, name, kind, flags, state.thread())

    return run


def _wrap_async(state: AgentState, original: Method, models: Models) -> Method:
    """Give ONNX Runtime a callback that records the run and calls the job's; what is no function stays as it is."""
    caller = sys._getframe
    ours = state.guard("inference.run_async")
    shapes = shapes_of(state)

    @functools.wraps(original)
    def run_async(self: object, *args: Foreign, **kwargs: Foreign) -> object:
        callback = args[_CALLBACK] if len(args) > _CALLBACK else kwargs.get("callback")
        if callable(callback):
            with ours:
                name = models.sites(self).name(caller(1))
                shape = shape_fed(args[1] if len(args) > 1 else kwargs.get("input_feed"), models.bound)
                flags = shapes.flags(shape) if shape else 0
                answered = _answered(state, callback, (int(shape[0]) if shape else 0, name, flags))
                if len(args) > _CALLBACK:
                    args = (*args[:_CALLBACK], answered, *args[_CALLBACK + 1 :])
                else:
                    kwargs["callback"] = answered
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return run_async


def _answered(state: AgentState, callback: Method, run: tuple[int, int, int]) -> Method:
    """The callback of a run that begins now; ``run``: its samples, name and flags."""
    samples, name, flags = run
    newest = _newest_end(state)
    start, thread = state.now(), state.thread()

    def answered(*given: Foreign, **named: Foreign) -> object:
        end = state.now()
        begin = max(start, newest[0])
        newest[0] = end
        failed = len(given) > _ERROR and isinstance(given[_ERROR], str) and given[_ERROR]
        how = int(Flag.RAISED) if failed else flags
        state.write(begin, end - begin, samples, name, int(Kind.INFERENCE), how, thread)
        try:
            return callback(*given, **named)
        except BaseException as raised:
            drop_our_frame(raised)
            raise

    return answered


def _newest_end(state: AgentState) -> list[int]:
    """When the newest run that the calling thread asked for has ended; it goes with the thread and its runs."""
    local = state.threads.local
    found: list[int] | None = getattr(local, "newest_end", None)
    if found is None:
        found = local.newest_end = [0]
    return found


def _wrap_making(state: AgentState, original: Method, models: Models) -> Method:
    """Record the making of a session: its model is read, optimised, and given its memory."""
    sites = Sites(state, ("build", "InferenceSession"), text="InferenceSession", role="session")
    now = state.now
    caller = sys._getframe
    kind = int(Kind.BUILD)

    @functools.wraps(original)
    def make(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        flags = 0
        start = now()
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            state.write(start, now() - start, 0, sites.name(caller(1)), kind, flags, state.thread())
        with state.guard("inference.tell"):
            models.tell(self)

    return make


def _wrap_bind(state: AgentState, original: Method, bound: WeakIds, parameter: str, place: int) -> Method:
    """Note the shape of the first input that is bound."""

    @functools.wraps(original)
    def bind(self: Foreign, name: Foreign, *args: Foreign, **kwargs: Foreign) -> object:
        try:
            result = original(self, name, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("inference.bind"):
            value = args[place - 1] if len(args) >= place else kwargs.get(parameter)
            first = bound.get(self)
            if first is None or first[0] == name or not first[1]:
                given = value if isinstance(value, (list, tuple)) else ()
                bound.set(self, (name, tuple(map(int, given)) if given else shape_of(value)))
        return result

    return bind


TARGETS = (("onnxruntime.capi.onnxruntime_inference_collection", attach),)
