"""What an experiment leaves in its folder, next to the sessions: the result as JSON and as a page, and flame graphs.

The flame graphs are those of the unchanged job and of the best trial, and their difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.experiments.climb import FINAL
from stepscope.report.whatif import page as whatif_page
from stepscope.report.whatif.page import Flames
from stepscope.report.whatif.text import PAGE, STACKS, saves_cpu
from stepscope.tables.errors import CaptureError, StepscopeError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.whatif import WhatIfReport, WhatIfResult

JSON, DIFFERENCE = "whatif.json", "flame-diff.html"
"""Names in the folder."""
SWITCHED = "the trial was switched on and off in one process, whose stacks are of both"


def to_json(report: WhatIfReport) -> str:
    """For programs: schema ``stepscope.whatif/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def write(report: WhatIfReport, folder: Path) -> Path:
    """Write all; returns the page.

    Raises:
        CaptureError: the folder cannot be written.
    """
    page = folder / PAGE
    drawn = _flames(report, folder)
    try:
        (folder / JSON).write_text(f"{to_json(report)}\n", encoding="utf-8")
        page.write_text(whatif_page.render(report, drawn), encoding="utf-8")
    except OSError as error:
        raise CaptureError(f"{page} cannot be written: {error.strerror}") from error
    return page


def best(report: WhatIfReport) -> WhatIfResult | None:
    """The trial that is compared with the unchanged job: the best gain, the best ceiling, or one of CPU time alone."""
    faster = next((result for result in report.results if result.verdict == "faster"), None)
    return faster or min(filter(saves_cpu, report.results), key=lambda one: one.cpu_ratio, default=None)


def _flames(report: WhatIfReport, folder: Path) -> Flames | None:
    """Flame graphs of the unchanged job and of the best trial; None if there is no such trial."""
    total = report.way.total if report.way is not None else None
    winner = total or best(report)
    if winner is None:
        return None
    if winner.pairs:
        return Flames(trial=winner.remedy, before="", after="", why=SWITCHED)
    first = _sampled(report) or (_ends(report) if total is not None else _first(report, winner))
    from stepscope.report.flame import svg
    from stepscope.use_cases import flame

    try:
        before, after = (flame.choose(folder / session) for session in first)
        if before.graph.profile.event != after.graph.profile.event:  # one side has no native window
            before, after = (flame.choose(folder / session, event="python") for session in first)
        flame.write(flame.of_pair(before, after), folder / DIFFERENCE)
    except StepscopeError as error:
        return Flames(trial=winner.remedy, before="", after="", why=str(error))
    return Flames(trial=winner.remedy, before=svg.render(before.graph), after=svg.render(after.graph), link=DIFFERENCE)


def _sampled(report: WhatIfReport) -> list[str]:
    """The sessions of both sides that were made for their native stacks; none if there are none."""
    return [run.session for run in report.runs if run.stage == STACKS]


def _first(report: WhatIfReport, winner: WhatIfResult) -> list[str]:
    """First sessions of the unchanged job and of a trial on it."""
    plain = [run for run in report.runs if run.round and not run.kept]
    return [next((run.session for run in plain if run.remedy == wanted), "") for wanted in ("", winner.remedy)]


def _ends(report: WhatIfReport) -> list[str]:
    """First sessions of the comparison at the end of ``--until-done``: the job as it was, and with everything."""
    runs = [run for run in report.runs if run.stage == FINAL]
    return [next((run.session for run in runs if bool(run.kept) == kept), "") for kept in (False, True)]
