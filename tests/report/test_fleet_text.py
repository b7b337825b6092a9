"""Answers about a fleet in a terminal."""

from __future__ import annotations

from msgspec.structs import replace
from rich.cells import cell_len

from stepscope.model.api.fleet import FleetAnswer, FleetCost, FleetGoodput, FleetJob, PartsRead
from stepscope.report import fleet_text

JOB = FleetJob(
    session="s0",
    started="2026-11-30",
    user="ann",
    team="",
    project="nets",
    program="train",
    model="",
    host="a",
    device="",
    commit="",
    end="code",
    restarts="s9",
    exit_code=1,
    steps=100,
    step_ns=1,
    samples_per_s=None,
    overhead_ratio=None,
    wall_hours=2.0,
    cpu_hours=None,
    device_hours=1234.0,
    lost_hours=0.5,
)
COST = FleetCost(
    name="", project="nets", file="train.py", line=41, function="make", jobs=3, wall_hours=0.001, device_hours=0
)
JOBS = FleetAnswer(question="jobs", sort="wall", parts=PartsRead(sessions=1), jobs=(JOB,))
LINES = FleetAnswer(question="top", by="line", sort="wall", parts=PartsRead(sessions=3), costs=(COST,))


def test_jobs() -> None:
    """A row a job; what is not known is a dash, and the next attempt of a job is called so."""
    head, row, rests = fleet_text.render(JOBS).splitlines()
    assert head.split() == ["started", "user", "project", "program", "host", "wall", "CPU", "device", "lost", "end"]
    assert row.split() == [
        "2026-11-30",
        "ann",
        "nets",
        "train",
        "a",
        "2",
        "h",
        "-",
        "1,234",
        "h",
        "25",
        "%",
        "code",
        "1,",
        "again",
    ]
    assert rests == "of 1 session"


def test_money_only_with_prices() -> None:
    """A column of the currency's name."""
    priced = replace(JOBS, currency="EUR", jobs=(replace(JOB, money=1234.5),))
    text = fleet_text.render(priced)
    assert "EUR" in text
    assert "1,234.50" in text
    assert "EUR" not in fleet_text.render(JOBS)


def test_lines() -> None:
    """A line with its project; little time in seconds."""
    _, row, _ = fleet_text.render(LINES).splitlines()
    assert row == "nets: train.py:41 make     3  3.6 s        -       -    -     0 s"


def test_goodput() -> None:
    """Shares of the held time, all jobs together first, and that a loss is not known."""
    whole = FleetGoodput(
        attempts=2,
        failed=1,
        loss_unknown=1,
        held_hours=10.0,
        lost_hours=1.0,
        other_hours=0.0,
        steps_hours=5.0,
        start_hours=1.0,
        restarts_hours=0.0,
        input_hours=2.0,
        saving_hours=0.5,
        evaluation_hours=0.5,
    )
    job = replace(whole, session="s0", user="ann", project="nets", program="train.py", started="2026-11-30")
    answer = FleetAnswer(question="goodput", sort="wall", parts=PartsRead(sessions=2), goodput=(whole, job))
    head, first, second, unknown, _ = fleet_text.render(answer).splitlines()
    assert head.split()[5:] == ["held", "steps", "start", "restarts", "input", "saving", "evaluation", "lost", "other"]
    assert "all jobs" in first
    assert " ".join(first.split()[-18:]) == "10 h 50 % 10 % 0 % 20 % 5.0 % 5.0 % 10 % 0 %"
    assert "ann   nets train.py" in second
    assert unknown == "failed attempts whose saves are not known: 1 (what they lost counts as steps)"


def test_texts_of_sessions_are_untrusted() -> None:
    """No control sequence reaches the terminal, and a wide or long name shifts no column."""
    hostile = replace(COST, function="f\x1b[2J\nx")
    assert "\x1b" not in fleet_text.render(replace(LINES, costs=(hostile,)))
    names = ("表" * 80, "a")
    wide = replace(LINES, costs=tuple(replace(COST, function=name) for name in names))
    _, one, other, _ = fleet_text.render(wide).splitlines()
    assert "…" in one
    assert one.endswith("     3  3.6 s        -       -    -     0 s")
    assert cell_len(one) == cell_len(other)


def test_what_it_rests_on() -> None:
    """Filters, further parts, newer ones, and damaged ones by name."""
    read = PartsRead(sessions=9, others=2, newer=1, damaged=("a", "b", "c", "d"))
    assert list(fleet_text.parts_lines(read, {"user": "ann"})) == [
        "of 9 sessions, user ann; 2 further parts of them not read",
        "1 part by a newer stepscope: what only it knows is not read",
        "left out, because they are not what was sent: a, b, c and 1 more; send them again: stepscope fleet add",
    ]
