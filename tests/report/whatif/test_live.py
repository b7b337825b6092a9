"""The table of an experiment that runs."""

import math

from rich.console import Console

from stepscope.report.whatif.live import Known, LiveTable, Progress

PROGRESS = Progress(
    running="round 2: parallel-map",
    spent_s=61.4,
    most_s=180.0,
    measure="sample",
    known=(
        Known(trial="parallel-map", ns=590_000.0, ratio=0.983, runs=1),
        Known(trial="", ns=600_000.0, ratio=1.0, runs=3),
        Known(trial="compute-only", ns=60_000.0, ratio=0.1, runs=1),
    ),
)


def _drawn(table: LiveTable) -> list[str]:
    console = Console(width=80, record=True, quiet=True)
    with console.capture() as captured:
        console.quiet = False
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_unchanged_job_then_the_fastest_trial() -> None:
    """Each trial has its median, its change and its runs; the last line says what runs, and how long already."""
    now = [100.0]
    table = LiveTable(clock=lambda: now[0])
    table.update(PROGRESS)
    now[0] = 104.0
    lines = _drawn(table)
    assert [line.split() for line in lines[1:4]] == [
        ["unchanged", "600", "us", "3"],
        ["compute-only", "60", "us", "-90", "%", "1"],
        ["parallel-map", "590", "us", "-2", "%", "1"],
    ]
    assert lines[4] == "round 2: parallel-map (4 s)  65 s of 180 s; Ctrl-C keeps what is known"


def test_before_anything_is_known() -> None:
    """Before the first run there is a word, in the look only its line; without a limit none is said."""
    table = LiveTable(clock=lambda: 0.0)
    assert _drawn(table) == ["starting"]
    table.update(Progress(running="a look at what takes the time", spent_s=0.0, most_s=math.inf, measure="run"))
    assert _drawn(table) == ["a look at what takes the time (0 s)  0 s; Ctrl-C keeps what is known"]
