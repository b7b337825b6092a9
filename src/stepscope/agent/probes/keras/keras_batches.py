"""What Keras on JAX and on PyTorch does between its compiled calls: batches that are taken (NEXT), logs that are read.

On JAX a step function takes the iterator and pulls its batches itself: the iterator that ``JAXEpochIterator`` makes is
replaced by one that times each ``next``. Iterators of tf.data and DataLoaders of PyTorch have probes and are left as
they are. On PyTorch every batch comes from a DataLoader.

A step function of JAX may return before its work is done. Where Keras makes numbers of the logs, for callbacks of each
batch, the host waits for it: ``pythonify_logs``, recorded as SYNC with the role ``logs``. Callbacks that need not be
waited for run on threads of Keras; at the end of an epoch it waits for these: ``CallbackList._flush_futures``.
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
    lists = getattr(sys.modules.get("keras.src.callbacks.callback_list"), "CallbackList", None)
    if "_flush_futures" in vars(lists or object):
        state.patch(lists, "_flush_futures", _wrap_logs(state, vars(lists)["_flush_futures"]))
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

    __slots__ = ("__weakref__", "_about", "_cycle", "_inner", "_local", "_now", "_state", "_take", "_write")

    def __init__(self, state: AgentState, inner: Foreign, identity: int, name: int) -> None:
        self._state = state
        self._inner = iter(inner)
        self._take = type(self._inner).__next__
        self._about = identity, name
        self._cycle, self._local = state.duty_cycle, shared(state).local
        self._now, self._write = state.now, state.write

    def __iter__(self) -> Iterator[Foreign]:
        return self

    def __next__(self) -> Foreign:
        if self._cycle.detached:
            try:
                return self._take(self._inner)
            except BaseException as error:
                drop_our_frame(error)
                raise
        flags = 0
        now = self._now
        start = now()
        try:
            return self._take(self._inner)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me = self._local.me
            me.thread = thread = me.thread or self._state.thread()
            identity, name = self._about
            self._write(start, spent, identity, name, _NEXT, flags, thread)

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._inner, name)


_NEXT = int(Kind.NEXT)


def _wrap_logs(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    sites = Sites(state, ("sync", LOGS), text=LOGS, role=LOGS)
    short_name = state.name(("sync", LOGS), LOGS, role=LOGS)
    kind = int(Kind.SYNC)
    now = state.now
    caller = sys._getframe

    @functools.wraps(original)
    def reads(logs: Foreign) -> Foreign:
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

    return reads


TARGETS = (
    ("keras.src.backend.jax.trainer", attach_jax),
    ("keras.src.backend.torch.trainer", attach_logs),
)
