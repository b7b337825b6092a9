"""A change of memory that has won is sampled once more on both sides, so that their stacks can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.use_cases.whatif.fake_job import recorded

from stepscope.experiments import plan, schedule
from stepscope.experiments.schedule import TimeLimits
from stepscope.native.kernel import perf
from stepscope.report.whatif.text import STACKS
from stepscope.use_cases.whatif import result, stacks
from stepscope.use_cases.whatif.result import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.use_cases.whatif.recorded import RecordedRuns

FACTORS = {"jemalloc-keep": 1.5, "graph": 2.0}
ENOUGH_S = 1000.0


def _report(folder: Path, *trials: str) -> tuple[WhatIfReport, RecordedRuns]:
    folder.mkdir()
    runs, _ = recorded(folder, FACTORS)
    limits = TimeLimits(seconds=ENOUGH_S, rounds=3)
    found = schedule.explore(plan.named(trials), runs.measured, runs.clock, limits)
    return result.build(runs, [Stage(found=found)]), runs


@pytest.mark.skipif(not perf.abilities().perf, reason="no perf")
def test_both_sides_are_run_once_more_for_their_stacks(tmp_path: Path) -> None:
    """The unchanged job and the job with the winner, beside what was measured; their time counts nowhere."""
    report, runs = _report(tmp_path / "a", "jemalloc-keep")
    made = stacks.sampled(report, runs, ENOUGH_S)
    assert made.results == report.results
    assert [(run.stage, run.kept) for run in made.runs[len(report.runs) :]] == [
        (STACKS, ()),
        (STACKS, ("jemalloc-keep",)),
    ]


def test_not_without_time_or_a_change_of_memory(tmp_path: Path) -> None:
    """Nor where the user ended it."""
    report, runs = _report(tmp_path / "a", "jemalloc-keep")
    assert stacks.sampled(report, runs, 1.0) is report
    ended = msgspec.structs.replace(report, interrupted=True)
    assert stacks.sampled(ended, runs, ENOUGH_S) is ended
    other, of_other = _report(tmp_path / "b", "graph")
    assert stacks.sampled(other, of_other, ENOUGH_S) is other
