"""What an experiment has shown, in the session of the unchanged job: its report then has it as findings."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from stepscope.model.session.experiment import Experiment
from stepscope.report.whatif.text import STACKS
from stepscope.store import experiments
from stepscope.tables.errors import StepscopeError
from stepscope.use_cases.record import REPORT_JSON
from stepscope.use_cases.whatif.runs import ALONE_JSON

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.use_cases.whatif.recorded import RecordedRuns


def of_report(report: WhatIfReport) -> Experiment:
    """The part of a report that a session keeps: what was measured on the unchanged job, and what was claimed."""
    return Experiment(
        measure=report.measure,
        rounds=report.rounds,
        results=tuple(result for result in report.results if result.ns),
        claims=report.values.claims if report.values is not None else (),
    )


def join(report: WhatIfReport, recorded: RecordedRuns) -> str:
    """Store it and make the session's report again. Returns the session; "" if there is nothing to store, or no run."""
    found, name = of_report(report), base(recorded)
    if not name or not (found.results or found.claims):
        return ""
    session = recorded.runner.folder / name
    from stepscope.diagnosis import analyze  # heavy, and needed once, at the end

    try:
        _keep_own_report(session)
        experiments.write(session, found)
        analyze.write_reports(session)
    except (OSError, StepscopeError) as error:
        recorded.say(f"the report of {name} is without this result: {error}")
        return ""
    return name


def base(recorded: RecordedRuns) -> str:
    """The session of the unchanged job: that of the run with captures, else the first that was compared; "": none."""
    known = (ran for ran in (*recorded.looks, *recorded.runs) if ran.stage != STACKS)
    plain = [ran for ran in known if not ran.trial and not ran.kept]
    return plain[0].session if plain else ""


def _keep_own_report(session: Path) -> None:
    """Keep what the run alone has said: an experiment that is resumed decides by that."""
    if not (session / ALONE_JSON).exists():
        shutil.copyfile(session / REPORT_JSON, session / ALONE_JSON)
