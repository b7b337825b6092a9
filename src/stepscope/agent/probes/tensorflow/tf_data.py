"""Construction of tf.data pipelines with source lines, their iterators, and every Python ``next`` on one.

``DatasetV2.__init__`` is what every transformation passes through, in all versions and in compat.v1.
Writes NEXT records and the log lines ``dataset``, ``iterator``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.inputs import CALLS
from stepscope.agent.probes.common import ConsumedIterator, RunningLoop, inputs_of, padding_of, shared
from stepscope.agent.probes.sources import user_source
from stepscope.agent.probes.support import (
    defined,
    drop_our_frame,
    eager_test,
    element_bytes,
    element_parts,
    lacking,
    leaf,
    name_of,
    report,
    static_leading,
    user_stack,
)
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

FUNCTIONS = ("_map_func", "_predicate", "_scan_func", "_key_func", "_reduce_func", "_finalize_func", "_init_func")
"""Attributes of datasets that hold a ``StructuredFunctionWrapper``, whose ``_func`` is the user's function."""
UNBATCHING = frozenset(("UnbatchDataset", "FlatMapDataset", "InterleaveDataset", "ParallelInterleaveDataset"))
"""Transformations whose output size does not follow from the batch size upstream."""
MAX_DATASETS = 20_000
"""``dataset`` lines of one process; far fewer suffice for a job that builds pipelines in its loop."""
UNKNOWN = -2
INFINITE = -1


class MadeDataset:
    """A dataset that was constructed."""

    __slots__ = ("batch", "cardinality", "identity", "place")

    def __init__(self, identity: int, place: tuple[str, str, int], batch: int, cardinality: int) -> None:
        self.identity = identity
        self.place = place
        self.batch = batch
        self.cardinality = cardinality


def attach_datasets(state: AgentState, module: Foreign) -> None:
    """Patch ``DatasetV2.__init__`` and ``from_generator``."""
    cls = getattr(module, "DatasetV2", None)
    why = "no DatasetV2" if cls is None else lacking(cls, "__init__", ("self", "variant_tensor"))
    if not why:
        state.patch(cls, "__init__", _wrap_init(state, cls.__dict__["__init__"], module))
        why = lacking(cls, "from_generator", ("generator",))
        original = cls.__dict__.get("from_generator")
        if not why and isinstance(original, staticmethod):
            state.patch(cls, "from_generator", staticmethod(_wrap_generator(state, original.__func__)))
    report(state, "tf_data.datasets", why)


def _wrap_init(state: AgentState, original: Callable[..., Foreign], module: Foreign) -> Callable[..., Foreign]:
    common = shared(state)
    local = common.local
    datasets = common.datasets
    eager = eager_test()
    padding = padding_of(state)
    adapter_class = getattr(module, "DatasetV1Adapter", ())
    repeats: dict[tuple[Foreign, ...], MadeDataset] = {}

    def tell(dataset: Foreign) -> None:
        if adapter_class and isinstance(dataset, adapter_class):
            inner = datasets.get(dataset._dataset)
            if inner is not None:
                datasets.set(dataset, inner)
            return
        cls = type(dataset).__name__.lstrip("_")
        inputs = list(filter(None, map(datasets.get, dataset._inputs())))
        key = _construction(local.me.loop, cls, inputs)
        again = repeats.get(key) if key is not None else None
        if again is not None:
            datasets.set(dataset, again)
            return
        stack = user_stack()
        identity = state.new_id("dataset")
        batch = _batch(dataset, cls, inputs)
        cardinality = _cardinality(dataset, cls, inputs, eager=eager())
        made = MadeDataset(identity, leaf(stack), batch, cardinality)
        datasets.set(dataset, made)
        if key is not None and len(repeats) < MAX_DATASETS:
            repeats[key] = made
        if identity > MAX_DATASETS:
            return
        file, function, line = leaf(stack)
        line_of: dict[str, object] = {"t": "dataset", "at": state.now(), "id": identity, "cls": cls}
        line_of.update(inputs=[m.identity for m in inputs], batch=_own_batch(dataset), cardinality=cardinality)
        line_of.update(file=file, line=line, function=function, stack=stack, element_bytes=element_bytes(dataset))
        line_of.update(
            parallel=_number(getattr(dataset, "_num_parallel_calls", None), 0),
            buffer=_number(getattr(dataset, "_buffer_size", None), 0),
            parts=element_parts(dataset),
            **_function(state, dataset, local.me.generator),
        )
        state.log(line_of)
        if cls == "TensorSliceDataset" and eager():
            padding.look([_in_memory(tensor) for tensor in dataset._tensors])
            inputs_of(state).look(list(dataset._tensors), batch=False)

    @functools.wraps(original)
    def init(self: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("tf_data.dataset"):
            tell(self)

    return init


def _in_memory(tensor: Foreign) -> object:
    """The array of an eager integer tensor on the host, without a copy; else the tensor."""
    read = getattr(tensor, "_numpy_internal", None)
    return read() if read is not None and tensor.dtype.is_integer and "CPU" in tensor.device else tensor


def _construction(loop: RunningLoop | None, cls: str, inputs: list[MadeDataset]) -> tuple[Foreign, ...] | None:
    """Key that equates a dataset made inside a loop with one of an earlier call of that loop from the same line.

    A program that calls predict for every row makes thirteen datasets each time: they are logged once.
    """
    if loop is None:
        return None
    loop.made += 1
    return (loop.name, loop.made, cls, tuple(m.identity for m in inputs))


def _wrap_generator(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    local = shared(state).local

    @functools.wraps(original)
    def from_generator(generator: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        outer = me.generator
        me.generator = generator
        try:
            return original(generator, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        finally:
            me.generator = outer

    return from_generator


def _function(state: AgentState, dataset: Foreign, generator: Foreign) -> dict[str, Foreign]:
    """The ``fn_*`` fields: the function that the dataset was given."""
    function = generator
    if function is None:
        for attribute in FUNCTIONS:
            wrapper = getattr(dataset, attribute, None)
            function = getattr(wrapper, "_func", None)
            if function is not None:
                break
    else:
        function = user_source(state, generator)[1]
    if function is None:
        return {}
    where = defined(function)
    return {
        "fn_name": name_of(function),
        "fn_file": where["file"],
        "fn_line": where["line"],
        "fn_end_line": where["end_line"],
    }


def _number(tensor: Foreign, default: int) -> int:
    """Value of an eager scalar or a Python number."""
    if tensor is None:
        return default
    if isinstance(tensor, int):
        return tensor
    read = getattr(tensor, "_numpy_internal", None) or getattr(tensor, "numpy", None)
    if read is None:
        return default
    try:
        return int(read())
    except Exception:  # a symbolic tensor has the method but no value
        return default


def _own_batch(dataset: Foreign) -> int:
    return _number(getattr(dataset, "_batch_size", None), 0)


def _batch(dataset: Foreign, cls: str, inputs: list[MadeDataset]) -> int:
    """Elements per output batch: of the last batch() upstream, else 0."""
    own = _own_batch(dataset)
    if own > 0:
        return own
    if cls in UNBATCHING:
        return 0
    return next((m.batch for m in inputs if m.batch), 0)


def _cardinality(dataset: Foreign, cls: str, inputs: list[MadeDataset], *, eager: bool) -> int:
    """tf.data's cardinality, from what Python already knows: runs no op. -1 infinite, -2 unknown."""
    if eager and cls in SOURCES:
        return SOURCES[cls](dataset)
    if not eager or not inputs:
        return UNKNOWN
    if cls == "ZipDataset":
        finite = [m.cardinality for m in inputs if m.cardinality != INFINITE]
        return (UNKNOWN if UNKNOWN in finite else min(finite)) if finite else INFINITE
    below = inputs[0].cardinality
    if cls in BATCHING:
        return _batched(dataset, below)
    if cls in SAME:
        return below
    return _counted(cls, below, _number(getattr(dataset, "_count", None), UNKNOWN))


def _batched(dataset: Foreign, below: int) -> int:
    size = _own_batch(dataset)
    if below < 0 or size <= 0:
        return below
    return below // size if _number(getattr(dataset, "_drop_remainder", None), 0) else -(-below // size)


def _range(dataset: Foreign) -> int:
    start, stop, step = (_number(getattr(dataset, a, None), 0) for a in ("_start", "_stop", "_step"))
    return max(0, -((start - stop) // step)) if step else UNKNOWN


def _slices(dataset: Foreign) -> int:
    tensors = getattr(dataset, "_tensors", None) or ()
    return static_leading(list(tensors)) if tensors else UNKNOWN


def _counted(cls: str, below: int, count: int) -> int:
    """Cardinality of repeat, take and skip over an input of ``below`` elements; unknown for any other class."""
    if cls == "RepeatDataset" and count != UNKNOWN:
        endless = INFINITE if below else 0
        return endless if count < 0 else below * count if below >= 0 else below
    if cls == "TakeDataset" and count >= 0 and below != UNKNOWN:
        return count if below == INFINITE else min(count, below)
    if cls == "SkipDataset" and count >= 0:
        return max(0, below - count) if below >= 0 else below
    return UNKNOWN


SOURCES: dict[str, Callable[[Foreign], int]] = {
    "TensorDataset": lambda _: 1,
    "TensorSliceDataset": _slices,
    "RangeDataset": _range,
}
BATCHING = frozenset(("BatchDataset", "ParallelBatchDataset", "PaddedBatchDataset"))
SAME = frozenset(
    (
        "MapDataset",
        "ParallelMapDataset",
        "ShuffleDataset",
        "PrefetchDataset",
        "CacheDataset",
        "OptionsDataset",
    )
)
"""Datasets with as many elements as their input."""


def attach_iterators(state: AgentState, module: Foreign) -> None:
    """Patch ``OwnedIterator``: construction, ``__next__``, ``get_next``."""
    cls = getattr(module, "OwnedIterator", None)
    why = "no OwnedIterator" if cls is None else lacking(cls, "__init__", ("self", "dataset"))
    for method in ("__next__", "get_next"):
        why = why or lacking(cls, method, ("self",))
    if not why:
        state.patch(cls, "__init__", _wrap_iterator(state, cls.__dict__["__init__"]))
        for method in ("__next__", "get_next"):
            original = cls.__dict__[method]
            hot = (int(Kind.NEXT), state.duty_cycle.light(Kind.NEXT, original))
            state.patch(cls, method, _wrap_next(state, original, method), hot)
    report(state, "tf_data.iterators", why)


def _wrap_iterator(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    common = shared(state)
    repeats: dict[tuple[int, int], ConsumedIterator] = {}
    eager = eager_test()

    def tell(iterator: Foreign, dataset: Foreign) -> None:
        made = common.datasets.get(dataset)
        loop = common.local.me.loop
        key = (loop.name, made.identity) if loop is not None and made is not None and loop.role != "fit" else None
        again = repeats.get(key) if key is not None else None
        if again is not None:
            consumed = ConsumedIterator(again.identity, again.name)
            consumed.told = True
            common.iterators.set(iterator, consumed)
            return
        stack = user_stack()
        file, function, line = leaf(stack)
        identity = state.new_id("iterator")
        name = state.name(("next", file, line), "next", call_file=file, call_line=line, call_function=function)
        consumed = ConsumedIterator(identity, name)
        common.iterators.set(iterator, consumed)
        if key is not None and len(repeats) < MAX_DATASETS:
            repeats[key] = consumed
        if identity > MAX_DATASETS:
            return
        state.log(
            {
                "t": "iterator",
                "at": state.now(),
                "id": identity,
                "dataset": made.identity if made is not None else 0,
                "batch": (made.batch if made is not None else 0) or static_leading(dataset.element_spec),
                "stack": stack,
            }
        )

    @functools.wraps(original)
    def init(self: Foreign, dataset: Foreign = None, *args: Foreign, **kwargs: Foreign) -> None:
        try:
            original(self, dataset, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        if dataset is not None and eager():
            with state.guard("tf_data.iterator"):
                tell(self, dataset)

    return init


def _wrap_next(state: AgentState, original: Callable[..., Foreign], method: str) -> Callable[..., Foreign]:
    common = shared(state)
    local = common.local
    known = common.iterators.entries
    now = state.now
    write = state.write
    thread = state.thread
    kind = int(Kind.NEXT)
    look = state.guard("tf_data.batch")(inputs_of(state).look)

    @functools.wraps(original)
    def next_(self: Foreign) -> Foreign:
        hit = known.get(id(self))
        me = local.me
        if hit is None or me.tracing:
            try:
                return original(self)
            except BaseException as error:
                drop_our_frame(error)
                raise
        consumed = hit[1]
        consumed.running += 1
        flags = 0
        start = now()
        try:
            batch = original(self)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            consumed.ended = ended = consumed.ended + 1
            consumed.running -= 1
            me.thread = number = me.thread or thread()
            write(start, spent, consumed.identity, consumed.name, kind, flags, number)
        if ended in CALLS:
            look(batch)
        return batch

    next_.__name__ = method
    return next_


TARGETS = (
    ("tensorflow.python.data.ops.dataset_ops", attach_datasets),
    ("tensorflow.python.data.ops.iterator_ops", attach_iterators),
)
