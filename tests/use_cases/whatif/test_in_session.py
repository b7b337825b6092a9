"""What an experiment has shown, in the session of the unchanged job."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from tests.report.samples import clean
from tests.report.whatif_samples import CLAIM, IMPOSSIBLE, REPORT
from tests.use_cases.whatif.fake_job import recorded

from stepscope.model.report.report import Report
from stepscope.model.report.whatif import WhatIfValues
from stepscope.report import json_report
from stepscope.store import open_session
from stepscope.tables import layout
from stepscope.use_cases.whatif import in_session, runs
from stepscope.use_cases.whatif.recorded import RecordedRuns
from stepscope.use_cases.whatif.runs import ALONE_JSON

SHOWN = msgspec.structs.replace(
    REPORT, results=(*REPORT.results, IMPOSSIBLE), values=WhatIfValues(claims=(CLAIM,), tensors=1, steps=10)
)


@pytest.fixture
def tried(tmp_path: Path) -> RecordedRuns:
    """An experiment of two runs whose first, the unchanged job, has a session."""
    made, _ = recorded(tmp_path, {})
    made.measured("prefetch", 1)
    made.measured("", 1)
    session = tmp_path / in_session.base(made)
    (session / "workers").mkdir(parents=True)
    (session / layout.MANIFEST).write_text('{"schema_version": 1, "id": "x"}')
    (session / "report.json").write_bytes(json_report.encode(clean()))
    return made


def test_the_session_of_the_unchanged_job_has_it(tried: RecordedRuns) -> None:
    """What was measured and claimed is stored there, and is in its report; what was not possible is not."""
    name = in_session.join(SHOWN, tried)
    assert name == tried.runs[1].session
    session = tried.runner.folder / name
    stored = open_session(session).experiment
    assert stored is not None
    assert (stored.results, stored.claims) == (REPORT.results, (CLAIM,))
    report = msgspec.json.decode((session / "report.json").read_bytes(), type=Report)
    assert {one.detector: one.outcome for one in report.checked}["EXP001"] == "found"
    assert {one.code for one in report.findings} >= {"EXP001", "EXP002"}


def test_a_resumed_experiment_reads_what_the_run_alone_said(tried: RecordedRuns) -> None:
    """Joined twice, the run's own report is kept, and is what trials are chosen by."""
    name = in_session.join(SHOWN, tried)
    assert in_session.join(SHOWN, tried) == name
    session = tried.runner.folder / name
    assert (session / ALONE_JSON).read_bytes() == json_report.encode(clean())
    assert runs._report(session, name) == clean()


def test_nothing_to_store(tried: RecordedRuns) -> None:
    """Without a trial or a claim, and without a run of the unchanged job, no session is touched."""
    assert in_session.join(msgspec.structs.replace(REPORT, results=(IMPOSSIBLE,)), tried) == ""
    tried.runs.pop()
    assert in_session.join(SHOWN, tried) == ""
    assert list(tried.runner.folder.rglob(ALONE_JSON)) == []


def test_a_session_that_is_gone_is_said(tried: RecordedRuns) -> None:
    """The experiment's own result does not depend on it."""
    shutil.rmtree(tried.runner.folder / in_session.base(tried))
    assert in_session.join(SHOWN, tried) == ""
