"""Goodput of jobs whose parts are known, over their attempts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.fleet.made_parts import HOUR_NS, put

from stepscope.fleet import goodput
from stepscope.fleet.engine import Engine
from stepscope.fleet.questions import Asked
from stepscope.fleet.rows import Row
from stepscope.model.api.fleet import FleetGoodput

LEDGER = {
    ("imports", ""): 0.5,
    ("first-steps", ""): 0.25,
    ("steps", "tracing"): 0.25,
    ("steps", "call"): 5.0,
    ("steps", "input-wait"): 1.5,
    ("steps", "saving"): 0.25,
    ("saving", ""): 0.25,
    ("evaluation", ""): 1.0,
    ("not-seen", ""): 1.0,
}
"""Hours of an attempt: 10 in all, of which 1 until the steps."""
HOURS = 10.0


def attempt(
    folder: Path,
    session: str,
    *,
    restarts: str = "",
    exit_code: int = 0,
    saved_h: float | None = 0.0,
    devices: int = 0,
    version: int = 2,
) -> str:
    """Write the part of one attempt."""
    words = {"user": "ann", "project": "nets", "program": "train", "started": "2026-11-30", "restarts": restarts}
    amounts = {"wall_ns": round(HOURS * HOUR_NS), "devices": devices, "exit_code": exit_code, "steps": 100}
    amounts |= {"started_unix_s": 1_780_000_000 + int(session[1:])}
    if saved_h is not None and version > 1:
        amounts["saved_ns"] = round(saved_h * HOUR_NS)
    rows = [Row(kind="about", name=name, text=text) for name, text in words.items()]
    rows += [Row(kind="amount", name=name, number=number) for name, number in amounts.items()]
    rows += [
        Row(kind="ledger", name=phase, text=component, time_ns=round(hours * HOUR_NS))
        for (phase, component), hours in LEDGER.items()
    ]
    return str(put(folder, session, rows, version=version))


def asked(*paths: str, version: int = 2, older: tuple[str, ...] = ()) -> tuple[FleetGoodput, ...]:
    """The answer: all together, then the jobs."""
    with closing(Engine()) as engine:
        engine.load({1: list(older), version: list(paths)}, goodput.READ.kinds, goodput.READ.columns)
        return goodput.goodput(engine, Asked())


def parts_of(job: FleetGoodput) -> dict[str, float]:
    """Hours by what they went into, without those that are 0."""
    names = ("steps", "start", "restarts", "input", "saving", "evaluation", "lost", "other")
    return {name: value for name in names if (value := getattr(job, f"{name}_hours"))}


def test_one_attempt(tmp_path: Path) -> None:
    """Its ledger by what it was; devices are held for all of it."""
    whole, job = asked(attempt(tmp_path, "s1", devices=4))
    assert parts_of(job) == pytest.approx(
        {"steps": 20.0, "start": 4.0, "input": 6.0, "saving": 2.0, "evaluation": 4.0, "other": 4.0}
    )
    assert job.held_hours == pytest.approx(40.0)
    assert (job.devices, job.attempts, job.failed) == (4, 1, 0)
    assert parts_of(whole) == parts_of(job)


def test_attempts_of_one_job(tmp_path: Path) -> None:
    """A crash loses what was done since the last save, of what comes after the start; later starts are restarts."""
    crashed = attempt(tmp_path, "s1", exit_code=1, saved_h=5.5)
    again = attempt(tmp_path, "s2", restarts="s1", exit_code=-9, saved_h=0.0)
    last = attempt(tmp_path, "s3", restarts="s2")
    whole, job = asked(last, crashed, again)
    assert (job.session, job.attempts, job.failed) == ("s1", 3, 2)
    assert job.held_hours == pytest.approx(30.0)
    done = 5.0 + 1.5 + 0.5 + 1.0
    assert job.lost_hours == pytest.approx(done / 2 + done)
    assert job.steps_hours == pytest.approx(2.5 + 0.0 + 5.0)
    assert (job.start_hours, job.restarts_hours) == pytest.approx((1.0, 2.0))
    assert sum(parts_of(job).values()) == pytest.approx(job.held_hours)
    assert sum(parts_of(whole).values()) == pytest.approx(whole.held_hours)


def test_jobs_with_most_other_time_come_first(tmp_path: Path) -> None:
    """And an attempt of a session that is not there is a job by itself."""
    paths = [attempt(tmp_path, "s1"), attempt(tmp_path, "s2", restarts="s0", devices=2)]
    whole, *jobs = asked(*paths)
    assert [job.session for job in jobs] == ["s2", "s1"]
    assert (whole.attempts, whole.session) == (2, "")


def test_a_loss_that_is_not_known(tmp_path: Path) -> None:
    """Where saves are not recorded, or by version 1 of the format, whose parts count with those of version 2."""
    old = attempt(tmp_path, "s1", exit_code=1, version=1)
    new = attempt(tmp_path, "s2", exit_code=1, saved_h=None)
    other = attempt(tmp_path, "s3", restarts="s1")
    whole, first, second = asked(new, other, older=(old,))
    assert (whole.loss_unknown, whole.lost_hours, whole.failed) == (2, 0.0, 2)
    assert {(job.session, job.attempts, job.loss_unknown) for job in (first, second)} == {("s1", 2, 1), ("s2", 1, 1)}
    assert first.session == "s1"
    assert first.steps_hours == pytest.approx(10.0)


def test_nothing(tmp_path: Path) -> None:
    """No jobs, no row."""
    with closing(Engine()) as engine:
        engine.load({2: [attempt(tmp_path, "s1")]}, goodput.READ.kinds, goodput.READ.columns)
        assert goodput.goodput(engine, Asked(filters={"user": "bob"})) == ()
