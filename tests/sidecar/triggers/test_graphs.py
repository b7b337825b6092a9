"""Graphs of a running job are looked at once, when they were read and steps run; what they show asks for a capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.graph_jobs import one_hot_tables

from stepscope.collector.captures import reason
from stepscope.model.log.graph import GraphTable, NodeColumns
from stepscope.model.session.session import Manifest, Worker, WorkerInfo
from stepscope.sidecar.triggers import graphs
from stepscope.sidecar.triggers.graphs import Graphs
from stepscope.sidecar.triggers.trigger import LastAnalysis, Wish
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

S = 1_000_000_000
LAST = LastAnalysis()
ASKED = (Wish(by=reason.of("GRF021"), kind="ops"),)


@dataclass
class Recent:
    """What a process did of late."""

    job: Job
    nodes: list[NodeColumns]
    counts: dict[tuple[int, int], int]
    seen: int = 0

    def worker(self, info: WorkerInfo) -> Worker:
        """As a process of a session, which holds no nodes."""
        self.seen += 1
        return replace(self.job.worker(), info=info, graphs=GraphTable())


@dataclass
class Process:
    """A measured process."""

    recent: Recent
    key: str = "100"
    closed: bool = False
    reading: bool = False
    types: set[str] = field(default_factory=lambda: {"trace", "graphs"})
    info: WorkerInfo = field(default_factory=lambda: WorkerInfo(key="100", pid=100))


@dataclass
class Running:
    """A recording, as far as graphs are looked at."""

    process: Process
    manifest: Manifest = field(default_factory=lambda: Manifest(mode="run"))
    drained: int = 0

    @property
    def drainer(self) -> SimpleNamespace:
        """The measured processes."""
        return SimpleNamespace(workers={self.process.key: self.process})

    def drain(self, _now_ns: int) -> None:
        """Read rings and logs."""
        self.drained += 1


def running(tables: Tables | None = None, *, calls: int = 40, of: int = 1, busy: int = 50) -> Running:
    """A job of 40 steps of a function that multiplies a one-hot matrix; ``of``: whose graph it is; ``busy``: its ms."""
    job = Job()
    job.function().every(100 * MS, 40, dur=busy * MS)
    job.trace(0, MS)
    tables = tables or one_hot_tables(12_000)
    tables.graphs[0] = (tables.graphs[0][0], "function", of, "step")
    job.event(*tables.events())
    counts = {(int(Kind.FUNCTION), 1): calls}
    return Running(Process(Recent(job, [tables.columns()], counts)))


def looking(job: Running) -> Graphs:
    """What looks."""
    return Graphs(cast("Recording", job), 0)


def test_a_suspicious_graph_of_the_step_asks_once_and_is_forgotten() -> None:
    """The detector that needs to know its time asks; nodes are not kept, and not looked at again."""
    job = running()
    looks = looking(job)
    looks.tick(10 * S, LAST)
    assert looks.wanted == ASKED
    assert job.process.recent.nodes == []
    assert looks.take_cpu_ns() >= 0
    seen = job.process.recent.seen
    for second in range(11, 60):
        looks.tick(second * S, LAST)
    assert job.process.recent.seen == seen
    assert looks.wanted == ASKED


@pytest.mark.parametrize("why", ["not one of the step", "nothing suspicious"])
def test_nothing_is_asked_about_other_graphs(why: str) -> None:
    """The same nodes in a graph that no step runs; a small matrix in one that they run."""
    job = running(of=9) if why == "not one of the step" else running(one_hot_tables(10))
    looks = looking(job)
    looks.tick(10 * S, LAST)
    assert looks.wanted == ()
    assert job.process.recent.nodes == []


@pytest.mark.parametrize(
    ("busy", "of", "asked"),
    [(95, 1, (Wish(by=reason.COMPUTE, kind="ops"),)), (50, 1, ()), (95, 9, ())],
    ids=["ops-take-the-time", "they-do-not", "not-the-step"],
)
def test_steps_that_compute_are_captured_in_any_case(busy: int, of: int, asked: tuple[Wish, ...]) -> None:
    """Where no detector asks, which ops take the time is the question that is left."""
    looks = looking(running(one_hot_tables(10), busy=busy, of=of))
    looks.tick(10 * S, LAST)
    assert looks.wanted == asked


def test_a_look_waits_until_all_was_read_and_steps_run() -> None:
    """Neither half of a graph nor a job that still warms up is looked at."""
    job = running(calls=3)
    job.process.reading = True
    looks = looking(job)
    looks.tick(10 * S, LAST)
    job.process.reading = False
    looks.tick(20 * S, LAST)
    assert job.process.recent.seen == 0
    job.process.recent.counts = {(int(Kind.FUNCTION), 1): 40}
    looks.tick(30 * S, LAST)
    assert looks.wanted == ASKED


def test_a_large_graph_is_looked_at_when_its_share_is_earned(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 2 per mille of a core, nodes of so much CPU time need their time, but for what is free."""
    monkeypatch.setattr(graphs, "FREE_NS", 0)
    job = running()
    count = sum(len(part.node) for part in job.process.recent.nodes)
    due_ns = int(count * graphs.NODE_NS / graphs.CPU_RATIO)
    looks = looking(job)
    looks.tick(due_ns - 1, LAST)
    assert job.process.recent.seen == 0
    looks.tick(due_ns + 1, LAST)
    assert looks.wanted == ASKED


def test_what_is_free_is_free_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at graphs that are traced later have to earn what the first one took."""
    clock = iter(range(0, 10**12, 2 * graphs.FREE_NS))
    monkeypatch.setattr("time.thread_time_ns", lambda: next(clock))
    job = running(one_hot_tables(10))
    nodes = list(job.process.recent.nodes)
    looks = looking(job)
    looks.tick(1, LAST)
    assert (job.process.recent.seen, looks.take_cpu_ns()) == (1, 2 * graphs.FREE_NS)
    job.process.recent.nodes.extend(nodes)
    looks.tick(1 + graphs.RETRY_NS, LAST)
    assert job.process.recent.seen == 1
    looks.tick(100 * S, LAST)
    assert job.process.recent.seen == 2


def test_under_enable_nodes_are_not_even_kept() -> None:
    """Nobody has agreed to traces there."""
    job = running()
    job.manifest = Manifest(mode="enable")
    looks = looking(job)
    looks.tick(10 * S, LAST)
    assert (looks.wanted, job.process.recent.nodes) == ((), [])


def test_the_log_is_read_each_second_while_first_graphs_are_read_and_not_for_ever() -> None:
    """A short job ends soon after its graphs were read; one whose graphs never come is not read more for it."""
    job = running(calls=3)
    job.process.types = {"trace"}
    looks = looking(job)
    for second in range(60):
        looks.tick(second * S, LAST)
    assert job.drained == graphs.SOON_NS // S


def test_a_process_whose_steps_are_not_seen_is_given_up() -> None:
    """Calls that are no steps: after some looks its nodes are dropped."""
    job = running()
    job.process.recent.job = Job()
    looks = looking(job)
    for second in range(10, 100):
        looks.tick(second * S, LAST)
    assert job.process.recent.nodes == []
    assert job.process.recent.seen == graphs.MAX_LOOKS
