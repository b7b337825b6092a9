"""What Keras on JAX and on PyTorch does between its compiled calls: batches that are taken (NEXT), logs that are read.

On JAX a step function takes the iterator and pulls its batches itself: the iterator that ``JAXEpochIterator`` makes is
replaced by one that times each ``next``. Iterators of tf.data and DataLoaders of PyTorch have probes of their own class;
those are left as they are. On PyTorch every batch comes from a DataLoader.

A step function of JAX may return before its work is done. Where Keras makes numbers of the logs, for callbacks of each
batch, the host waits for it: ``pythonify_logs``, recorded as SYNC with the role ``logs``.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, Sites, drop_our_frame, lacking, leaf, outside, report, user_stack
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

RECORDED = {"TFDatasetAdapter": "tensorflow", "TorchDataLoaderAdapter": "torch"}
"""Adapters whose batches come from iterators that other probes record, and the package of these."""
LOGS = "logs"
"""Role of the names of waits for logs."""
MAX_ITERATORS = 1000
"""Lines for iterators of one process: an evaluation in a loop makes one each time."""


def attach_jax(state: AgentState, module: Foreign) -> None:
    """Patch ``JAXEpochIterator._get_iterator``, and where logs are read."""
    cls = getattr(module, "JAXEpochIterator", None)
    why = "no JAXEpochIterator" if cls is None else lacking(cls, "_get_iterator", ("self",))
    if not why and "_get_iterator" not in vars(cls):
        why = "JAXEpochIterator has no _get_iterator of its class"
    if not why:
        state.patch(cls, "_get_iterator", _wrap_making(state, vars(cls)["_get_iterator"]))
    report(state, "keras_batches", why)
    attach_logs(state, module)


def attach_logs(state: AgentState, _module: Foreign) -> None:
    """Patch ``pythonify_logs`` in the module from which the list of callbacks calls it."""
    module = sys.modules.get("keras.src.utils.python_utils")
    why = lacking(module, "pythonify_logs", ("logs",))
    if not why:
        original = vars(module)["pythonify_logs"]
        hot = (int(Kind.SYNC), state.duty_cycle.light(Kind.SYNC, original))
        state.patch(module, "pythonify_logs", _wrap_logs(state, original), hot)
    report(state, "keras_batches:logs", why)


def _wrap_making(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    known: dict[tuple[Foreign, ...], tuple[int, int]] = {}

    @functools.wraps(original)
    def get(self: Foreign) -> Foreign:
        try:
            iterator = original(self)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("keras_batches.iterator"):
            adapter = self.data_adapter
            if RECORDED.get(type(adapter).__name__, "") not in sys.modules:
                return Batches(state, iterator, *_told(state, adapter, known))
        return iterator

    return get


def _told(state: AgentState, adapter: Foreign, known: dict[tuple[Foreign, ...], tuple[int, int]]) -> tuple[int, int]:
    """(id, name) of an iterator; those that one line makes of data of one kind share both."""
    stack = user_stack()
    file, function, line = leaf(stack)
    loop = shared(state).local.me.loop
    key = (file, line, type(adapter).__name__, loop.role if loop is not None else "")
    found = known.get(key)
    if found is None:
        name = state.name(("next", file, line), "next", call_file=file, call_line=line, call_function=function)
        found = state.new_id("iterator"), name
        if len(known) < MAX_ITERATORS:
            known[key] = found
            batch = int(adapter.batch_size or 0)
            state.log({"t": "iterator", "at": state.now(), "id": found[0], "batch": batch, "stack": stack})
    return found


class Batches:
    """An iterator of Keras on JAX whose ``next`` is timed. In gaps it only passes batches on."""

    __slots__ = ("__weakref__", "_inner", "_take")

    def __init__(self, state: AgentState, inner: Foreign, identity: int, name: int) -> None:
        self._inner = iter(inner)
        self._take = _taking(state, self._inner, identity, name)

    def __iter__(self) -> Iterator[Foreign]:
        return self

    def __next__(self) -> Foreign:
        try:
            return self._take()
        except BaseException as error:
            drop_our_frame(error)
            raise

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._inner, name)


def _taking(state: AgentState, inner: Foreign, identity: int, name: int) -> Callable[[], Foreign]:
    """The timed ``next``."""
    local = shared(state).local
    cycle = state.duty_cycle
    now, write, thread = state.now, state.write, state.thread
    kind = int(Kind.NEXT)
    take = type(inner).__next__

    def taken() -> Foreign:
        if cycle.detached:
            return take(inner)
        flags = 0
        start = now()
        try:
            return take(inner)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me = local.me
            me.thread = number = me.thread or thread()
            write(start, spent, identity, name, kind, flags, number)

    return taken


def _wrap_logs(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    sites = Sites(state, ("sync", LOGS), text=LOGS, role=LOGS)
    short_name = state.name(("sync", LOGS), LOGS, role=LOGS)
    kind = int(Kind.SYNC)
    now = state.now
    caller = sys._getframe

    @functools.wraps(original)
    def pythonify_logs(logs: Foreign) -> Foreign:
        if not logs:
            return original(logs)
        start = now()
        try:
            return original(logs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            if spent >= SHORT_NS:
                write_name = sites.name(outside(caller(1)))
                state.write(start, spent, 0, write_name, kind, 0, state.thread())
            else:
                state.short(short_name, kind, start, spent)

    return pythonify_logs


TARGETS = (
    ("keras.src.backend.jax.trainer", attach_jax),
    ("keras.src.backend.torch.trainer", attach_logs),
)
