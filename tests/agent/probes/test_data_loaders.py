"""Batches of PyTorch's DataLoaders in gaps of the duty cycle; what is recorded of them: ``tests.probes.test_torch``."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from stepscope.agent.probes.torch import data_loaders
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

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
