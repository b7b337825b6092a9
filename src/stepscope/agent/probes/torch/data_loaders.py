"""PyTorch's DataLoaders: each ``next`` of their iterators (NEXT), and how each loader is set up.

``_BaseDataLoaderIter.__next__`` serves loaders that make batches in the process and those with workers; a loader's
iterators of all passes share an id. Writes NEXT records and the log lines ``iterator``, ``data-loader``.

Which of several workers made a batch is read from the iterator's own table of tasks (``_task_info``: the workers of the
batches that are asked for, by number); nothing is changed in it. A worker that ends while it is waited for is not it,
and where ``in_order`` is off it may be any other.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.core import compiling
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.probes.support import defined, drop_our_frame, lacking, leaf, report, user_stack
from stepscope.wire.kinds import SHAPE_SHIFT, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

MAX_WORKER = 254
"""Workers from this number on have none: a record has eight bits for it."""
MAX_LOADERS = 1000
"""Loaders that are logged: a program may make one for each pass."""


def attach(state: AgentState, module: Foreign) -> None:
    """Patch the iterators' construction and ``__next__``."""
    cls = getattr(module, "_BaseDataLoaderIter", None)
    why = "no _BaseDataLoaderIter" if cls is None else lacking(cls, "__init__", ("self", "loader"))
    why = why or lacking(cls, "__next__", ("self",))
    if not why:
        known = WeakIds()
        state.patch(cls, "__init__", _wrap_init(state, cls.__dict__["__init__"], known))
        original = cls.__dict__["__next__"]
        hot = (int(Kind.NEXT), state.duty_cycle.light(Kind.NEXT, original))
        state.patch(cls, "__next__", _wrap_next(state, original, known), hot)
    report(state, "data_loaders", why)


def _wrap_init(state: AgentState, original: Callable[..., None], known: WeakIds) -> Callable[..., None]:
    loaders = WeakIds()
    alike: dict[tuple[Foreign, ...], tuple[int, int]] = {}

    def tell(iterator: Foreign, loader: Foreign) -> None:
        found = loaders.get(loader)
        if found is None:
            found = _told(state, loader, alike)
            loaders.set(loader, found)
        known.set(iterator, (*found, _in_turn(loader)))

    @functools.wraps(original)
    def init(self: Foreign, loader: Foreign, *args: Foreign, **kwargs: Foreign) -> None:
        try:
            original(self, loader, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        with state.guard("data_loaders.iterator"):
            tell(self, loader)

    return init


def _told(state: AgentState, loader: Foreign, alike: dict[tuple[Foreign, ...], tuple[int, int]]) -> tuple[int, int]:
    """(id, name) of a loader; loaders of one line with one set-up, as a pass may make each, are one."""
    stack = user_stack()
    file, function, line = leaf(stack)
    dataset = getattr(loader, "dataset", None)
    fields = {
        "workers": int(getattr(loader, "num_workers", 0) or 0),
        "batch": int(getattr(loader, "batch_size", 0) or 0),
        "prefetch": int(getattr(loader, "prefetch_factor", 0) or 0),
        "pinned": bool(getattr(loader, "pin_memory", False)),
        "persistent": bool(getattr(loader, "persistent_workers", False)),
        "dataset": type(dataset).__name__,
    }
    key = (file, line, *fields.values())
    again = alike.get(key)
    if again is not None:
        return again
    identity = state.new_id("iterator")
    name = state.name(("data-loader", file, line), "next", call_file=file, call_line=line, call_function=function)
    if len(alike) < MAX_LOADERS:
        alike[key] = (identity, name)
        at = state.now()
        made = _maker(dataset)
        state.log({"t": "iterator", "at": at, "id": identity, "batch": fields["batch"], "stack": stack})
        line_of = {"t": "data-loader", "at": at, "id": identity, "file": file, "line": line, "function": function}
        state.log({**line_of, **fields, **made})
    return identity, name


def _maker(dataset: Foreign) -> dict[str, Foreign]:
    """The user's function that makes a sample: ``__getitem__``, or ``__iter__`` of an iterable dataset."""
    for _ in range(4):  # a Subset holds the dataset that it is a part of
        for method in ("__getitem__", "__iter__"):
            where = defined(getattr(type(dataset), method, None))
            if where["own"]:
                name = "%s.%s" % (type(dataset).__name__, method)
                return {"fn_name": name, "fn_file": where["file"], "fn_line": where["line"]}
        dataset = getattr(dataset, "dataset", None)
    return {}


def _wrap_next(state: AgentState, original: Callable[..., Foreign], known: WeakIds) -> Callable[..., Foreign]:
    entries = known.entries
    now = state.now
    write = state.write
    thread = state.thread
    kind = int(Kind.NEXT)

    @functools.wraps(original)
    def next_(self: Foreign) -> Foreign:
        hit = entries.get(id(self))
        if hit is None or compiling.is_compiling():
            try:
                return original(self)
            except BaseException as error:
                drop_our_frame(error)
                raise
        identity, name, in_turn = hit[1]
        flags = worker = 0
        if in_turn:
            worker = _awaited(self)
        start = now()
        try:
            return original(self)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            if worker and not flags and _works(self, worker):
                flags = worker << SHAPE_SHIFT
            write(start, spent, identity, name, kind, flags, thread())

    return next_


def _in_turn(loader: Foreign) -> bool:
    """Whether several workers make the batches, in the order of the data: else the next may be of any of them."""
    return int(getattr(loader, "num_workers", 0) or 0) > 1 and bool(getattr(loader, "in_order", True))


def _awaited(iterator: Foreign) -> int:
    """1 + number of the worker that makes the next batch; 0: not known."""
    try:
        number = iterator._task_info[iterator._rcvd_idx][0]
        return number + 1 if 0 <= number < MAX_WORKER else 0
    except (AttributeError, LookupError, TypeError):  # another PyTorch, or a worker that had nothing more
        return 0


def _works(iterator: Foreign, worker: int) -> bool:
    """Whether that worker has not ended since."""
    try:
        return iterator._workers_status[worker - 1] is True
    except (AttributeError, LookupError, TypeError):
        return False


TARGETS = (("torch.utils.data.dataloader", attach),)
