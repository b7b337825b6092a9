"""Changes of a fleet in a terminal."""

from __future__ import annotations

from msgspec.structs import replace

from stepscope.model.api.fleet import FleetAnswer, FleetChange, FleetFollowed, FleetSlowHost, PartsRead
from stepscope.report import fleet_text

ROSE = FleetChange(
    kind="rose",
    of="function",
    project="nets",
    program="train.py",
    file="train.py",
    function="augment",
    measure="cpu",
    started_unix_s=1_780_000_000,
    day="2026-05-28",
    session="s60",
    commit_before="a" * 40,
    commit_after="b" * 40,
    sessions_before=60,
    sessions_after=40,
    before_ns=5e6,
    after_ns=6e6,
    ratio=1.2,
    low=1.15,
    high=1.25,
    before_ratio=0.05,
    after_ratio=0.06,
    hours=0.5,
    chance=1e-9,
    smallest_ratio=0.03,
)
JOB = FleetFollowed(
    project="nets",
    program="train.py",
    sessions=100,
    new=7,
    tests=12,
    step_smallest=0.01,
    large_smallest=0.02,
    of_runs=1,
)
ANSWER = FleetAnswer(
    question="changes", sort="wall", parts=PartsRead(sessions=100), changes=(ROSE,), followed=(JOB,), since="2026-11-30"
)


def test_a_change() -> None:
    """By how much with its interval, what a step costs before and after, since which session and commit."""
    lines = fleet_text.render(ANSWER).splitlines()
    assert lines == [
        "costs more  +20.0 % (15.0 to 25.0)    nets train.py: train.py augment",
        "    5 ms -> 6 ms CPU time a step, 5.0 % -> 6.0 % of it · 1800 s more in all",
        "    from 2026-05-28 20:26 (session s60, commit aaaaaaaaaa -> bbbbbbbbbb) · 60 sessions before, 40 after",
        (
            "nets train.py: 100 sessions, 7 since 2026-11-30, 12 compared; 1 not claimed: other numbers of steps, and "
            "as much a run; would have been seen in nine of ten cases: the step 1.0 %, places of 10 % or more 2.0 %"
        ),
        "of 100 sessions",
    ]


def test_what_moved_and_what_went_away() -> None:
    """Where it is now, until when it lasted, and other places that changed with it."""
    moved = replace(ROSE, kind="moved", to="train.py decode", also=("a", "b", "c", "d"))
    text = fleet_text.render(replace(ANSWER, changes=(moved,)))
    assert "train.py augment -> train.py decode" in text
    assert "by as much, then: a; b; c and 1 more" in text
    assert "in all" not in text
    ended = replace(ROSE, kind="went-away", ended_unix_s=1_780_086_400, other_hosts=True)
    text = fleet_text.render(replace(ANSWER, changes=(ended,)))
    assert "until 2026-05-29 20:26, on other hosts than before" in text


def test_nothing() -> None:
    """No change is said; a job that could not be compared says what is missing."""
    text = fleet_text.render(replace(ANSWER, changes=()))
    assert text.startswith("no change since 2026-11-30\n")
    text = fleet_text.render(replace(ANSWER, changes=(), followed=(replace(JOB, tests=0),)))
    assert "cannot tell; expected 5 or more before and after a change" in text
    assert "no change" not in text


def test_texts_of_sessions_are_untrusted() -> None:
    """No control sequence reaches the terminal."""
    hostile = replace(ROSE, function="f\x1b[2J", to="g\x1b[2J", kind="moved", also=("h\x1b",), session="s\x1b")
    assert "\x1b" not in fleet_text.render(replace(ANSWER, changes=(hostile,)))


def test_hosts() -> None:
    """The slower ones, with what makes them so; that none is; that nothing could be compared."""
    slow = FleetSlowHost(
        host="h0",
        project="nets",
        program="train.py",
        sessions=20,
        other_sessions=80,
        step_ns=13e6,
        other_step_ns=10e6,
        ratio=1.3,
        low=1.25,
        high=1.35,
        cpu_ratio=1.01,
        resource="wait",
        chance=1e-9,
    )
    answer = replace(ANSWER, by="host", changes=(), followed=(), since="")
    assert fleet_text.render(replace(answer, slow_hosts=(slow,), compared_hosts=4)).splitlines() == [
        "slower      +30.0 % (+25.0 % to +35.0 %)  host h0, nets train.py: it waits, for a CPU, input or a network",
        "    a step 13 ms, elsewhere 10 ms, CPU time +1.0 % · 20 sessions there, 80 elsewhere",
        "of 100 sessions",
    ]
    assert fleet_text.render(replace(answer, compared_hosts=4)).startswith("no host is slower, of 4 compared\n")
    assert fleet_text.render(answer).startswith("cannot tell; expected a job with steps in 5 sessions or more")
