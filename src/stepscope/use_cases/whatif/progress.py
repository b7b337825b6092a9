"""How far an experiment is, for who watches it."""

from __future__ import annotations

import os
import sys
from statistics import median
from typing import TYPE_CHECKING

from stepscope.report.whatif.live import Known, LiveTable, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from stepscope.use_cases.whatif.recorded import Recorded

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


def follow(watch: Callable[[Progress], object] | None, most_s: float) -> Callable[[Recorded], object]:
    """Make the function that tells ``watch`` how far an experiment of at most ``most_s`` seconds is."""

    def tell(recorded: Recorded) -> None:
        if watch is not None:
            watch(of(recorded, most_s))

    return tell


def of(recorded: Recorded, most_s: float) -> Progress:
    """What is known now: the runs with the changes that are kept by now, each trial with its median."""
    kept = recorded.runs[-1].kept if recorded.runs else ()
    times: dict[str, list[float]] = {}
    for ran in recorded.runs:
        if ran.kept == kept and ran.ns(recorded.measure) and not ran.note:
            times.setdefault(ran.trial, []).append(ran.ns(recorded.measure))
    unchanged = median(times.get("", [0.0]))
    known = [
        Known(trial=trial, ns=median(found), ratio=median(found) / unchanged if unchanged else 0.0, runs=len(found))
        for trial, found in times.items()
    ]
    return Progress(
        running=recorded.running,
        spent_s=recorded.spent_s,
        most_s=most_s,
        measure=recorded.measure,
        kept=kept,
        known=tuple(known),
    )
