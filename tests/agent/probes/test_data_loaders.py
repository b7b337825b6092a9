"""Batches of PyTorch's DataLoaders in gaps, and which worker made them; what else is recorded: ``tests.probes``."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.core import compiling
from stepscope.agent.probes.torch import data_loaders
from stepscope.wire.kinds import SHAPE_SHIFT, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


class _BaseDataLoaderIter:
    """As much of PyTorch's as the probe touches."""

    def __init__(self, loader: Loader) -> None:
        self.rows = iter(loader.rows)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self.rows)


class Loader:
    """Of batches that are there."""

    def __init__(self, rows: list[int]) -> None:
        self.rows, self.num_workers, self.batch_size, self.dataset = rows, 0, 8, rows

    def __iter__(self) -> Iterator[int]:
        return _BaseDataLoaderIter(self)


def test_in_gaps_batches_are_only_counted(opened: AgentState) -> None:
    """The loaders' own ``next``, or a counter in C around it, in place of the wrapper."""
    module = types.SimpleNamespace(_BaseDataLoaderIter=_BaseDataLoaderIter)
    wrapped = _BaseDataLoaderIter.__next__
    opened.attach("torch.data_loaders", data_loaders.attach, module)
    for counted, calls in ((frozenset({Kind.NEXT}), 4), (frozenset(), 0)):
        before = opened.duty_cycle._count(Kind.NEXT)
        opened.patches.detach(counted)
        assert list(Loader([3, 1, 2])) == [3, 1, 2]
        assert opened.duty_cycle._count(Kind.NEXT) - before == calls
        opened.patches.reattach()
    opened.patches.detach(frozenset())
    assert _BaseDataLoaderIter.__next__ is wrapped
    opened.patches.reattach()
    assert opened.records.written() == 0
    assert list(Loader([3])) == [3]
    assert opened.records.written() == 2


def test_the_compiler_reads_no_call_of_ours(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take it for the job's; the batch is the job's as ever."""
    module = types.SimpleNamespace(_BaseDataLoaderIter=type("_BaseDataLoaderIter", (), dict(vars(_BaseDataLoaderIter))))
    opened.attach("torch.data_loaders", data_loaders.attach, module)
    iterator = module._BaseDataLoaderIter(Loader([3, 4]))
    monkeypatch.setattr(compiling, "is_compiling", lambda: True)
    assert next(iterator) == 3
    assert opened.records.written() == 0
    monkeypatch.undo()
    assert next(iterator) == 4
    assert opened.records.written() == 1


class Several(_BaseDataLoaderIter):
    """As PyTorch's with workers: batches by number, and who makes each."""

    def __init__(self, loader: Loader, makers: list[int]) -> None:
        super().__init__(loader)
        self._task_info: Foreign = {number: (maker,) for number, maker in enumerate(makers)}
        self._rcvd_idx = 0
        self._workers_status = [True, True, True]
        self.ends: list[int] = []

    def next_data(self) -> int:
        """Of the awaited worker, or of the next one if that has ended while it is waited for."""
        while self._rcvd_idx in self.ends:
            self._workers_status[self._task_info.pop(self._rcvd_idx)[0]] = False
            self._rcvd_idx += 1
        row = next(self.rows)
        self._task_info.pop(self._rcvd_idx, None)
        self._rcvd_idx += 1
        return row


def workers(opened: AgentState, loader: Loader, iterator: Several) -> list[int]:
    """Of the worker of each batch, and of the end."""
    written: list[int] = []
    module = types.SimpleNamespace(_BaseDataLoaderIter=type("_BaseDataLoaderIter", (), dict(vars(_BaseDataLoaderIter))))
    module._BaseDataLoaderIter.__next__ = Several.next_data
    opened.write = lambda *record: written.append(record[5] >> SHAPE_SHIFT)
    opened.attach("torch.data_loaders", data_loaders.attach, module)
    module._BaseDataLoaderIter.__init__(iterator, loader)
    list(iter(lambda: next_of(module, iterator), None))
    return written


def next_of(module: Foreign, iterator: Several) -> int | None:
    """A batch; None at the end."""
    try:
        batch: int = module._BaseDataLoaderIter.__next__(iterator)
    except StopIteration:
        return None
    return batch


def test_batches_say_which_worker_made_them(opened: AgentState) -> None:
    """By the iterator's own table; the end is of none."""
    loader = Loader([5, 6, 7, 8])
    loader.num_workers = 2
    assert workers(opened, loader, Several(loader, [0, 1, 0, 1, 0])) == [1, 2, 1, 2, 0]


def test_a_worker_that_has_ended_made_no_batch(opened: AgentState) -> None:
    """Its share of the data is at its end: PyTorch takes the next one's."""
    loader = Loader([5, 6, 7])
    loader.num_workers = 3
    several = Several(loader, [2, 1, 2, 2])
    several.ends.append(1)
    assert workers(opened, loader, several) == [3, 0, 3, 0]


@pytest.mark.parametrize("in_order", [False, True])
def test_out_of_order_a_batch_may_be_of_any_worker(opened: AgentState, in_order: bool) -> None:
    """PyTorch 2.6 and later: while the first worker is slow, batches of the others are taken."""
    loader: Foreign = Loader([5, 6, 7])
    loader.num_workers, loader.in_order = 2, in_order
    assert workers(opened, loader, Several(loader, [0, 1, 0])) == ([1, 2, 1, 0] if in_order else [0] * 4)


@pytest.mark.parametrize("tasks", [None, [], {0: ()}, {0: ("first",)}, {0: (300,)}])
def test_of_another_table_nothing_is_known(opened: AgentState, tasks: Foreign) -> None:
    """Batches are recorded all the same, and the job's iterator is left as it is."""
    loader = Loader([5])
    loader.num_workers = 2
    several = Several(loader, [0])
    several._task_info = types.MappingProxyType(tasks) if tasks else tasks
    module = types.SimpleNamespace(_BaseDataLoaderIter=type("_BaseDataLoaderIter", (), dict(vars(_BaseDataLoaderIter))))
    opened.attach("torch.data_loaders", data_loaders.attach, module)
    module._BaseDataLoaderIter.__init__(several, loader)
    assert next_of(module, several) == 5
    assert opened.records.written() == 1
    assert opened.failures.of("data_loaders") == 0
