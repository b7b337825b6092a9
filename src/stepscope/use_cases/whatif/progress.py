"""How far an experiment is, for who watches it."""

from __future__ import annotations

import os
import sys
from statistics import geometric_mean, median
from typing import TYPE_CHECKING

from stepscope.report.whatif.live import Known, LiveTable, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from stepscope.model.report.whatif import Measure
    from stepscope.use_cases.whatif.recorded import RecordedRuns
    from stepscope.use_cases.whatif.runs import TrialRun

    Report = TypeVar("Report")


def on_terminal(run: Callable[[Callable[[str], object], Callable[[Progress], object]], Report]) -> Report:
    """Call ``run(say, watch)`` with a table on the terminal of standard error, which each run of the job redirects."""
    from rich.console import Console
    from rich.live import Live

    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal:
        table, console = LiveTable(), Console(file=terminal)

        def say(line: str) -> None:
            console.print(f"stepscope: {line}", markup=False, highlight=False)

        with Live(table, console=console, transient=True, redirect_stdout=False, redirect_stderr=False):
            return run(say, table.update)


def follow(watch: Callable[[Progress], object] | None, most_s: float) -> Callable[[RecordedRuns], object]:
    """Make the function that tells ``watch`` how far an experiment of at most ``most_s`` seconds is."""

    def tell(recorded: RecordedRuns) -> None:
        if watch is not None:
            watch(of(recorded, most_s))

    return tell


def of(recorded: RecordedRuns, most_s: float) -> Progress:
    """What is known now: the runs with the changes that are kept by now, each trial with its median.

    A trial that is switched changes the time without it in the same runs, any other that of the unchanged ones.
    """
    kept = recorded.runs[-1].kept if recorded.runs else ()
    times: dict[str, list[tuple[float, float]]] = {}
    for ran in recorded.runs:
        if ran.kept == kept and (ns := ran.ns(recorded.measure)) and not ran.note:
            times.setdefault(ran.trial, []).append((_without(ran, recorded.measure), ns))
    unchanged = median(ns for _, ns in times.get("", [(0.0, 0.0)]))
    known = [_known(trial, found, unchanged) for trial, found in times.items()]
    return Progress(
        running=recorded.running,
        spent_s=recorded.spent_s,
        most_s=most_s,
        measure=recorded.measure,
        kept=kept,
        known=tuple(known),
    )


def _known(trial: str, found: list[tuple[float, float]], unchanged: float) -> Known:
    ns = median(ns for _, ns in found)
    before = median(without or unchanged for without, _ in found)
    return Known(trial=trial, ns=ns, ratio=ns / before if before else 0.0, runs=len(found))


def _without(ran: TrialRun, measure: Measure) -> float:
    """The time without the trial in the same run, if it was switched; else 0."""
    pairs = ran.measured(measure, ran).pairs
    return geometric_mean([before for before, _ in pairs]) if pairs else 0.0
