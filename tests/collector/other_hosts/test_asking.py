"""Collectors in one process ask each other over real sockets of the loopback interface."""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.clocks.ports import free_ports

from stepscope.clocks import settings
from stepscope.clocks.prober import Prober
from stepscope.collector.other_hosts.asking import Asking, FarTask
from stepscope.collector.other_hosts.desk import Desk
from stepscope.collector.other_hosts.message import JointRequest, TaskState
from stepscope.collector.samplers.clocks import ClockSampler
from stepscope.collector.samplers.names import NameNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

KEY, OTHER_KEY = b"k" * 32, b"x" * 32
MINE = b"m" * 8
S = 1_000_000_000
AHEAD_NS = 300_000_000
ENDS = 100


@dataclass(slots=True)
class Tasks:
    """A task of a host; it is traced at once."""

    name: str
    outcome: str = "done"
    led: list[JointRequest] = field(default_factory=list)

    def lead(self, wanted: JointRequest) -> str:
        """Whether it is its job."""
        self.led.append(wanted)
        return "" if wanted.job == "job" else "no task of the job is measured there"

    def look(self, job: str, joint: str) -> Sequence[TaskState]:
        """Its steps end every millisecond from the moment on."""
        del job, joint
        begin = self.led[0].begin_ns
        ends = tuple(begin + n * 1_000_000 for n in range(ENDS + 1)) if self.outcome == "done" else ()
        return [TaskState(name=self.name, outcome=self.outcome, text="", steps=ENDS, ends=ends)]


@dataclass(slots=True)
class Host:
    """A collector that compares clocks and takes requests."""

    tasks: Tasks
    prober: Prober
    desk: Desk
    place: tuple[str, int]
    deaf: Callable[[], bool] = lambda: False
    """Whether the next datagram is lost."""

    def answer(self, data: bytes, arrived_ns: int) -> bytes | None:
        """The answer, unless it is lost."""
        answer = None if self.deaf() else self.desk.answer(data, arrived_ns)
        return None if self.deaf() else answer


@contextmanager
def hosts(*names: str, key: bytes = KEY, reach: bytes = b"") -> Iterator[list[Host]]:
    """Hosts with a task each."""
    found = []
    for number, (name, port) in enumerate(zip(names, free_ports(len(names)), strict=True)):
        mine = bytes([number + 1]) * 8
        prober = Prober([("127.0.0.1", port)], key, mine.hex())
        tasks = Tasks(name)
        host = Host(tasks, prober, Desk(key, mine, reach or mine, tasks), ("127.0.0.1", port))
        prober.others = host.answer
        prober.start()
        found.append(host)
    try:
        yield found
    finally:
        for host in found:
            host.prober.close()
            host.desk.close()


@contextmanager
def asking(places: Sequence[tuple[str, int]], job: str = "job", ahead_ns: int = AHEAD_NS) -> Iterator[Asking]:
    """Who asks them, with a moment ahead."""
    begin_ns = time.monotonic_ns() + ahead_ns
    wanted = JointRequest(joint="j", job=job, begin_ns=begin_ns, mark_ns=begin_ns + 1, steps=10)
    one = Asking(places, KEY, MINE, MINE, wanted)
    one.start()
    try:
        yield one
    finally:
        one.close()


def asked(*there: Host) -> Asking:
    """They are asked, until it is known what became of all."""
    with asking([one.place for one in there]) as one:
        until(one.settled)
    return one


def until(what: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Wait for something that comes."""
    end = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < end
        threading.Event().wait(0.005)


def all_of(one: Asking) -> dict[str, FarTask]:
    """The tasks, once all is known."""
    until(one.settled)
    return {task.name: task for task in one.tasks()}


def test_tasks_of_all_hosts_are_asked_once_and_say_when_their_steps_ended() -> None:
    """Each gets the moment by its clock, which is ours here; all ends arrive, in the order in which they were."""
    with hosts("worker 1", "worker 2") as there, asking([one.place for one in there]) as one:
        found = all_of(one)
        assert found.keys() == {"worker 1", "worker 2"}
        assert one.silent() == {}
        for host in there:
            (led,) = host.tasks.led
            task = found[host.tasks.name]
            assert (task.outcome, task.steps, task.host) == ("done", ENDS, f"127.0.0.1:{host.place[1]}")
            assert len(task.ends) == ENDS + 1
            assert {b - a for a, b in zip(task.ends, task.ends[1:], strict=False)} == {1_000_000}
            assert abs(led.begin_ns - led.mark_ns) == 1
            assert 0 < task.unsure_ns < S
            assert (host.desk.stale, host.desk.wrong, host.prober.dropped) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_lost_datagrams_are_repeated_and_lead_nothing_twice(seed: int) -> None:
    """A third of all that comes or goes is lost."""
    chance = random.Random(seed)
    with hosts("worker 1") as (host,), asking([host.place], ahead_ns=3 * S) as one:
        host.deaf = lambda: chance.random() < 1 / 6
        found = all_of(one)
        assert found["worker 1"].outcome == "done"
        assert len(found["worker 1"].ends) == ENDS + 1
        assert len(host.tasks.led) == 1


def test_who_does_not_answer_delays_nobody_and_is_named() -> None:
    """A host that is silent, one with another key, one without the job, and a name that is none."""
    (nothing,) = free_ports(1)
    with hosts("worker 1") as (good,), hosts("worker 2", key=OTHER_KEY) as (stranger,):
        names = [("127.0.0.1", nothing), ("no.such.host.invalid", 1), stranger.place, good.place]
        with asking(names, ahead_ns=S) as one:
            until(lambda: bool(one.tasks() and one.tasks()[0].outcome))
            assert not one.settled()
            assert all_of(one).keys() == {"worker 1"}
            silent = one.silent()
            assert silent[f"127.0.0.1:{nothing}"] == silent[f"127.0.0.1:{stranger.place[1]}"] == "no answer"
            assert silent["no.such.host.invalid:1"] == "its name is not known, or no route leads to it"
            assert stranger.tasks.led == []
            assert stranger.desk.wrong > 0
    with hosts("worker 1") as (host,), asking([host.place], job="other") as one:
        assert all_of(one) == {}
        assert list(one.silent().values()) == ["no task of the job is measured there"]


def test_our_own_tasks_and_other_names_of_a_host_are_not_asked() -> None:
    """Who reaches the same tasks is the same host, whatever its address."""
    with hosts("worker 0", reach=MINE) as (mine,), hosts("worker 1", "worker 1", reach=b"o" * 8) as (first, second):
        one = asked(mine, first, second)
        assert all_of(one).keys() == {"worker 1"}
        assert mine.tasks.led == []
        assert len(first.tasks.led) + len(second.tasks.led) == 1
        assert one.silent() == {}


def test_what_was_dropped_is_said_at_the_end(tmp_path: Path) -> None:
    """A collector that takes requests counts those of strangers, and goes on."""
    (tmp_path / "key").write_bytes(OTHER_KEY)
    (tmp_path / "key").chmod(0o600)
    places = [("127.0.0.1", port) for port in free_ports(2)]
    settings.ClockSettings(hosts=tuple(places), key_file=str(tmp_path / "key")).write(tmp_path)
    sampler, tasks = ClockSampler(0, NameNumbers()), Tasks("worker 1")
    sampler.start(tmp_path)
    sampler.lead(tasks, b"r" * 8)
    with asking(places[:1]) as one:
        assert all_of(one) == {}
    sampler.close()
    assert "had not the key" in sampler.dropped
    assert tasks.led == []


def test_a_host_that_is_cut_off_after_it_has_taken_the_request_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for for good."""
    monkeypatch.setattr("stepscope.collector.other_hosts.far_host.SILENT_NS", S // 2)
    with hosts("worker 1") as (host,), asking([host.place]) as one:
        host.tasks.outcome = ""
        until(lambda: bool(one.tasks() and one.tasks()[0].name))
        host.deaf = lambda: True
        task = all_of(one)["worker 1"]
        assert (task.outcome, task.text) == ("missed", f"127.0.0.1:{host.place[1]} answers no more")
