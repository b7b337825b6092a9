"""When models of iterators are read, whatever the first read of a process costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.probes.common import ConsumedIterator, RunningLoop, shared
from stepscope.agent.probes.tensorflow import tf_data_model
from stepscope.agent.probes.tensorflow.tf_data_model import FEW, FREE_NS, ModelReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.state import AgentState

MS = 1_000_000


class Iterator:
    """An iterator of tf.data, as far as reads need one."""

    _iterator_resource = "resource"


class Job:
    """Short fits, one after another, each with an iterator of its own; a read takes the CPU time that is due."""

    def __init__(self, state: AgentState, monkeypatch: pytest.MonkeyPatch, costs: Callable[[int], int]) -> None:
        self.state = state
        self.reads = 0
        self.cpu_ns = self.now_ns = 0
        self._costs = costs
        self._kept: list[Iterator] = []
        clock = SimpleNamespace(thread_time_ns=lambda: self.cpu_ns, process_time_ns=lambda: self.cpu_ns)
        monkeypatch.setattr(tf_data_model, "time", clock)
        monkeypatch.setattr(state, "now", lambda: self.now_ns)
        self.reader = ModelReader(state, self._read)

    def _read(self, resource: object) -> bytes:
        assert resource == Iterator._iterator_resource
        self.cpu_ns += self._costs(self.reads)
        self.reads += 1
        return b"model"

    def consume(self) -> ConsumedIterator:
        """An iterator from which enough was taken for a read."""
        iterator, consumed = Iterator(), ConsumedIterator(len(self._kept), 1)
        self._kept.append(iterator)
        shared(self.state).iterators.set(iterator, consumed)
        consumed.ended = FEW
        return consumed

    def fit(self) -> bool:
        """One that lasts a tenth of a second; returns whether its input was read at its end."""
        before = self.reads
        loop = RunningLoop("fit", self.now_ns, None)
        loop.consumed.append(self.consume())
        self.now_ns += 100 * MS
        self.reader.loop_ends(loop)
        return self.reads > before


def test_what_the_first_read_sets_up_is_no_price_of_the_next(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow processor it takes twice what reads may take at the start, and every later one a twelfth of that."""
    job = Job(opened, monkeypatch, lambda number: 2 * FREE_NS if number == 0 else FREE_NS // 6)
    assert [job.fit() for _ in range(4)] == [True] * 4


def test_reads_that_are_dear_each_time_become_rare(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one shows it; then they keep to their share of the time."""
    job = Job(opened, monkeypatch, lambda _: 2 * FREE_NS)
    assert [job.fit() for _ in range(4)] == [True, True, False, False]
    job.now_ns += round((4 * FREE_NS - FREE_NS) / tf_data_model.MAX_COST)
    assert [job.fit() for _ in range(2)] == [True, False]


def test_what_the_first_read_sets_up_is_not_what_the_thread_takes(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what it takes of a core, gaps of the duty cycle and the rate of samples are chosen."""
    job = Job(opened, monkeypatch, lambda number: 2 * FREE_NS if number == 0 else FREE_NS // 6)
    job.consume()
    job.reader.window_ends(1)
    assert opened.hooks.apart_ns == 2 * FREE_NS
    job.consume()
    job.reader.window_ends(2)
    assert (job.reads, opened.hooks.apart_ns) == (2, 2 * FREE_NS)


def test_a_first_read_on_the_threads_of_the_job_is_none_of_ours(
    opened: AgentState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its CPU time is not in that of the agent's thread."""
    job = Job(opened, monkeypatch, lambda _: FREE_NS)
    assert job.fit()
    assert opened.hooks.apart_ns == 0
