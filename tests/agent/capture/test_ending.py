"""Captures while their job ends, and a request during the first look."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.agent.capture.made import GOOD

from stepscope.agent.capture import controller, leaving
from stepscope.agent.capture.controller import Captures
from stepscope.agent.capture.orders import PROFILER, CaptureCommand
from stepscope.agent.capture.watch import StepWatch
from stepscope.wire.env import SIGNALLED_NAME

if TYPE_CHECKING:
    from stepscope.agent.capture.host import CaptureHost


class Tracer:
    """Traces until it is told that there is enough, or stopped."""

    def __init__(self, marked: int = 0) -> None:
        self.marked = marked
        self.orders: list[str] = []
        self.begun = threading.Event()
        self.writes = threading.Event()
        self.writes.set()

    def trace(self, order: CaptureCommand, watch: StepWatch, _folder: str) -> dict[str, object]:
        """Begin, and wait."""
        self.orders.append(order.identity)
        watch.marked = self.marked
        self.begun.set()
        watch.until(lambda: watch.enough, 60.0)
        self.writes.wait(60.0)
        return {"outcome": "done" if watch.enough else "gave-way", "text": watch.stopped}

    def give_way(self) -> None:
        """Never asked."""

    def reset(self) -> None:
        """Never asked."""


class Job:
    """A process with captures, whose lines are kept."""

    def __init__(self, run: Path, tracer: Tracer) -> None:
        session = run / "a.stepscope"
        session.mkdir()
        (run / "config.json").write_text(json.dumps({"session": str(session)}))
        self.said: list[dict[str, object]] = []
        duty_cycle = SimpleNamespace(hold=lambda _now: None, release=lambda: None)
        state = SimpleNamespace(
            now=time.monotonic_ns,
            duty_cycle=duty_cycle,
            records=SimpleNamespace(tap=lambda _tap: None),
            failures=SimpleNamespace(add=self._failed),
            lines=SimpleNamespace(run=str(run), log=self.said.append),
        )
        self.captures = Captures(cast("CaptureHost", state))
        self.captures.tracers = {PROFILER: tracer}

    def _failed(self, where: str, error: Exception) -> None:
        raise AssertionError(where) from error

    def outcomes(self) -> list[tuple[object, object]]:
        """(id, outcome) of what has ended."""
        return [(line["id"], line["outcome"]) for line in self.said]


BLIND: dict[str, object] = {**GOOD, "anchors": [], "margin": 0}


@pytest.mark.parametrize(("marked", "outcome"), [(3, "done"), (0, "gave-way")])
def test_an_ending_job_keeps_the_steps_that_it_has(tmp_path: Path, marked: int, outcome: str) -> None:
    """They are written while the job waits; without any there is nothing to wait for."""
    tracer = Tracer(marked)
    job = Job(tmp_path, tracer)
    job.captures.order(BLIND)
    assert tracer.begun.wait(60)
    job.captures.finish()
    assert job.outcomes() == [("a", outcome)]
    assert job.captures.leave_ns > time.monotonic_ns() - controller.EXIT_S * 1e9


@pytest.mark.parametrize("signalled", [False, True])
def test_an_ending_job_does_not_wait_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signalled: bool) -> None:
    """What is still being written is given up, and told of once; after a signal nothing is waited for."""
    released: list[bool] = []
    monkeypatch.setattr(controller, "EXIT_S", 600.0 if signalled else 0.01)

    def let_go() -> bool:
        released.append(True)
        return True

    monkeypatch.setattr(leaving, "let_go", let_go)
    tracer = Tracer(3)
    tracer.writes.clear()
    job = Job(tmp_path, tracer)
    job.captures.order(BLIND)
    assert tracer.begun.wait(60)
    if signalled:
        (tmp_path / SIGNALLED_NAME).touch()
    job.captures.finish()
    assert (job.outcomes(), released) == ([("a", "failed")], [True])
    assert str(job.said[0]["text"]).startswith("the job ended first: ")
    assert (job.captures.leave_ns == 0) is signalled
    tracer.writes.set()
    assert job.captures._busy.acquire(timeout=60)
    assert job.outcomes() == [("a", "failed")]


def test_a_job_without_captures_waits_for_nothing(tmp_path: Path) -> None:
    """It has no time left for them either."""
    job = Job(tmp_path, Tracer())
    job.captures.finish()
    assert (job.captures.leave_ns, job.said) == (0, [])


def test_a_request_waits_for_the_first_look(tmp_path: Path) -> None:
    """The look ends with the steps that it has; a request during any other capture is refused."""
    tracer = Tracer(3)
    job = Job(tmp_path, tracer)
    job.captures.order({**BLIND, "asked_by": "first-look"})
    assert tracer.begun.wait(60)
    tracer.begun.clear()
    job.captures.order({**BLIND, "id": "b", "asked_by": "user"})
    assert tracer.begun.wait(60)
    job.captures.order({**BLIND, "id": "c", "asked_by": "user"})
    job.captures.enough({"capture": "b"})
    assert job.captures._busy.acquire(timeout=60)
    assert tracer.orders == ["a", "b"]
    assert sorted(job.outcomes()) == [("a", "done"), ("b", "done"), ("c", "refused")]
