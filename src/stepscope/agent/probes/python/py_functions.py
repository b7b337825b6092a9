"""The user's Python inside the input pipeline: py_function, numpy_function, generators, PyDataset and Sequence.

Records appear on the thread that runs the function. No function is replaced: py functions are timed where TensorFlow's
registry calls them by token, a PyDataset's ``__getitem__`` in the class that defines it. Where Keras computes with
another framework, its adapter of a Python generator holds an iterator that times each ``next``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.probes.common import inputs_of, shared
from stepscope.agent.probes.sources import generator_function, user_source
from stepscope.agent.probes.support import (
    defined,
    drop_our_frame,
    lacking,
    leading,
    name_of,
    other_backend,
    report,
    user_stack,
)
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

MARK = "__stepscope_item__"
GENERATOR_MODULE = "from_generator_op.py"
MAX_TOLD = 10_000
"""``pyfunction`` lines logged in one process."""


class Making:
    """A Python function that is being put into a graph."""

    __slots__ = ("function", "role")

    def __init__(self, function: Foreign, role: str) -> None:
        self.function = function
        self.role = role


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``script_ops``: where functions enter the registry, and where TensorFlow calls them."""
    registry = getattr(module, "FuncRegistry", None)
    why = lacking(module, "_internal_py_func", ("func", "inp", "Tout"))
    if registry is None:
        why = why or "no FuncRegistry"
    else:
        why = why or lacking(registry, "insert", ("self", "func"))
        why = why or lacking(registry, "__call__", ("self", "token", "device", "args"))
    if not why:
        names: dict[Foreign, int] = {}
        state.patch(module, "_internal_py_func", _wrap_making(state, module._internal_py_func))
        state.patch(registry, "insert", _wrap_insert(state, registry.__dict__["insert"], names))
        state.patch(registry, "__call__", _wrap_call(state, registry.__dict__["__call__"], names))
    report(state, "py_functions", why)


def _wrap_making(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    local = shared(state).local

    @functools.wraps(original)
    def make(func: Foreign, inp: Foreign, Tout: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:  # noqa: N803 - TensorFlow's name
        me = local.me
        outer = me.making
        eager = bool(kwargs.get("use_eager_py_func", args[1] if len(args) > 1 else False))
        gradient = bool(kwargs.get("is_grad_func", args[2] if len(args) > 2 else False))  # noqa: PLR2004 - position
        me.making = None if gradient else Making(func, "py_function" if eager else "numpy_function")
        try:
            return original(func, inp, Tout, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        finally:
            me.making = outer

    return make


def _wrap_insert(
    state: AgentState, original: Callable[..., Foreign], names: dict[Foreign, int]
) -> Callable[..., Foreign]:
    local = shared(state).local

    def tell(token: Foreign, making: Making) -> None:
        role, function = _user_part(state, making)
        if not role:
            return
        where = defined(function)
        text = name_of(function)
        name = state.name(("pyfunc", role, text, where["file"], where["line"]), text, role=role, **where)
        names[token] = name
        if len(names) <= MAX_TOLD:
            state.log({"t": "pyfunction", "at": state.now(), "name": name, "role": role, "stack": user_stack()})

    @functools.wraps(original)
    def insert(self: Foreign, func: Foreign) -> Foreign:
        token = original(self, func)
        making = local.me.making
        if making is not None:
            with state.guard("py_functions.insert"):
                tell(token, making)
        return token

    return insert


def _user_part(state: AgentState, making: Making) -> tuple[str, Foreign]:
    """(role, function) to record; role "" for TensorFlow's own helpers that run no user code."""
    file, _, _ = frames.code_lines(making.function)
    if not file.endswith(GENERATOR_MODULE) and "dataset_ops.py" not in file:
        return making.role, making.function
    name = str(getattr(making.function, "__name__", ""))
    generator = shared(state).local.me.generator
    if "generator_py_func" not in name or generator is None:
        return "", None
    return user_source(state, generator)


def _wrap_call(
    state: AgentState, original: Callable[..., Foreign], names: dict[Foreign, int]
) -> Callable[..., Foreign]:
    now = state.now
    write = state.write
    thread = state.threads.of_pool
    kind = int(Kind.PYFUNC)

    @functools.wraps(original)
    def call(self: Foreign, token: Foreign, device: Foreign, args: Foreign) -> Foreign:
        name = names.get(token)
        if name is None:
            try:
                return original(self, token, device, args)
            except BaseException as error:
                drop_our_frame(error)
                raise
        flags = 0
        start = now()
        try:
            return original(self, token, device, args)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            write(start, now() - start, 0, name, kind, flags, thread())

    return call


def attach_adapter(state: AgentState, module: Foreign) -> None:
    """Patch Keras' adapters of PyDataset, Sequence and Python generators."""
    label = "py_functions:%s" % module.__name__
    why = "no adapter"
    for cls_name, look in (
        ("PyDatasetAdapter", _meet_dataset),
        ("KerasSequenceAdapter", _meet_dataset),
        ("GeneratorDataAdapter", _meet_generator),
    ):
        cls = getattr(module, cls_name, None)
        if cls is None or "__init__" not in cls.__dict__:
            continue
        why = lacking(cls, "__init__", ("self",))
        if not why:
            times = look is _meet_generator and other_backend(module)
            state.patch(cls, "__init__", _wrap_adapter(state, cls.__dict__["__init__"], look, times=times))
    report(state, label, why)


def _wrap_adapter(
    state: AgentState,
    original: Callable[..., Foreign],
    look: Callable[[AgentState, Foreign, Foreign], None],
    *,
    times: bool,
) -> Callable[..., Foreign]:
    @functools.wraps(original)
    def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        with state.guard("py_functions.adapter"):
            data = args[0] if args else kwargs.get("x", kwargs.get("generator"))
            if shared(state).adapters.get(self) is None:
                look(state, self, data)
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        if times:
            with state.guard("py_functions.generator"):
                _time_generator(state, self)

    return init


def _time_generator(state: AgentState, adapter: Foreign) -> None:
    """Have the adapter hand out an iterator that times the user's generator."""
    known, make = shared(state).adapters.get(adapter), adapter.generator
    if known is None or not callable(make):
        return
    function = known[1]
    where = defined(function)
    text = name_of(function)
    name = state.name(("pyfunc", "generator", text, where["file"], where["line"]), text, role="generator", **where)
    state.log({"t": "pyfunction", "at": state.now(), "name": name, "role": "generator", "stack": user_stack()})
    adapter.generator = lambda: TimedGenerator(state, make(), name)


class TimedGenerator:
    """An iterator over a user's generator, each ``next`` of which is a PYFUNC."""

    __slots__ = ("_inner", "_name", "_state")

    def __init__(self, state: AgentState, inner: Foreign, name: int) -> None:
        self._state = state
        self._inner = iter(inner)
        self._name = name

    def __iter__(self) -> TimedGenerator:
        return self

    def __next__(self) -> Foreign:
        state = self._state
        if state.duty_cycle.detached:
            try:
                return next(self._inner)
            except BaseException as error:
                drop_our_frame(error)
                raise
        flags = 0
        start = state.now()
        try:
            return next(self._inner)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            state.write(start, state.now() - start, 0, self._name, int(Kind.PYFUNC), flags, state.thread())


def _meet_generator(state: AgentState, adapter: Foreign, generator: Foreign) -> None:
    function = generator_function(generator)
    if function is not None:
        shared(state).adapters.set(adapter, ("generator", function))


def _meet_dataset(state: AgentState, adapter: Foreign, dataset: Foreign) -> None:
    shared(state).adapters.set(adapter, ("", type(dataset).__getitem__))
    for cls in type(dataset).__mro__:
        method = cls.__dict__.get("__getitem__")
        if callable(method):
            if not hasattr(method, MARK):
                state.patch(cls, "__getitem__", _wrap_item(state, method, cls.__name__))
            return


def _wrap_item(state: AgentState, original: Callable[..., Foreign], cls: str) -> Callable[..., Foreign]:
    text = "%s.__getitem__" % cls
    where = defined(original)
    name = state.name(("pyfunc", "pydataset", text, where["file"], where["line"]), text, role="pydataset", **where)
    sizes = shared(state).sizes
    now = state.now
    kind = int(Kind.PYFUNC)
    inputs = inputs_of(state)
    ours = state.guard("py_functions.batch")
    state.log({"t": "pyfunction", "at": now(), "name": name, "role": "pydataset", "stack": user_stack()})

    @functools.wraps(original)
    def item(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        flags = 0
        batch: Foreign = None
        start = now()
        try:
            batch = original(self, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        else:
            return batch
        finally:
            spent = now() - start
            size = leading(batch)
            state.write(start, spent, size, name, kind, flags, state.thread())
            if size and sizes.get(self) is not None:
                with state.guard("py_functions.size"):
                    _tell_size(state, self, size)
            if size:
                with ours:
                    inputs.call(batch)

    setattr(item, MARK, True)
    return item


def _tell_size(state: AgentState, dataset: Foreign, size: int) -> None:
    """Log the ``batch`` line that waited for the first batch of ``dataset``."""
    sizes = shared(state).sizes
    line, loop = sizes.get(dataset)
    sizes.entries.pop(id(dataset), None)
    line.update(at=state.now(), size=size, samples=size * line["steps"])
    if loop is not None:
        loop.samples = line["samples"]
    state.log(line)


TARGETS = (
    ("tensorflow.python.ops.script_ops", attach),
    ("keras.src.trainers.data_adapters.py_dataset_adapter", attach_adapter),
    ("keras.src.trainers.data_adapters.generator_data_adapter", attach_adapter),
    ("keras.src.engine.data_adapter", attach_adapter),
    ("tf_keras.src.engine.data_adapter", attach_adapter),
)
