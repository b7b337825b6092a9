"""Native stacks of the unchanged job and of the job with what was best, for flame graphs of both from one experiment.

Runs that are compared have only the samples of Python, which cost next to nothing. What an allocator or a page does
is in the kernel, where these do not see it, and windows of native stacks slow steps. So the winner among changes of
memory has two more runs, whose times do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stepscope.model.report.remedies import OF_MEMORY
from stepscope.native.kernel import perf
from stepscope.report.whatif.text import STACKS
from stepscope.tables.errors import StepscopeError
from stepscope.use_cases.whatif import outputs, result

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.use_cases.whatif.recorded import RecordedRuns

STACKS_S = 20.0
"""Seconds of steady steps: the window has five, and begins when they are known to be steady."""


def sampled(report: WhatIfReport, recorded: RecordedRuns, left_s: float) -> WhatIfReport:
    """The report with a run of both sides more, if a change of memory has won; ``left_s``: time for them."""
    kept = _winner(report)
    if OF_MEMORY.isdisjoint(kept) or report.interrupted or left_s <= 2 * STACKS_S or not perf.abilities().perf:
        return report
    recorded.say("sampling the native stacks of both sides, for their flame graphs")
    recorded.runner = replace(recorded.runner, stacks=True)
    try:
        made = [recorded.look(STACKS_S, stage=STACKS, kept=side) for side in ((), kept)]
    except StepscopeError as error:
        recorded.say(f"native stacks were not sampled: {error}")
        return report
    runs = tuple(result.as_run(ran, report.measure) for ran in made)
    return msgspec.structs.replace(report, runs=(*report.runs, *runs))


def _winner(report: WhatIfReport) -> tuple[str, ...]:
    if report.way is not None:
        return report.way.kept
    best = outputs.best(report)
    return (best.remedy,) if best is not None and not best.pairs else ()
