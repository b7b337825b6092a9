"""TRD001 rising-step-time: its fixtures, and what looks like it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MAIN, MS, SCRIPT, US, Frame, Job, S
from tests.detectors.asking import codes, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, PERIOD, REPORT, STEPS, unsampled
from tests.detectors.trend_jobs import rising

from stepscope.detectors.system.rising_step_time import DETECTOR
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: rising(10 * MS, 150 * MS),
    expected=Expected(
        severity="high",
        cost=0.7,
        where=(("train.py", 8), ("train.py", CALL)),
        metrics=("rising_ratio", "growth", "rest_growth", "ns_per_step_per_step", "samples_on_code"),
        title=("report takes ever more time, 150 ms a step after", "70 %"),
        pipeline_stage="output-processing",
        remedy="keep-running-value",
    ),
    silent=lambda: rising(10 * MS, 40 * MS, call=30 * MS, call_last=120 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: rising(2 * MS, 8 * MS - 4 * US),
    at=lambda: rising(2 * MS, 8 * MS + 4 * US),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_one_root_is_one_finding() -> None:
    """Slow Python that gets slower and slower is told once, as what rises; the other detector says who tells it."""
    findings, checked = look(rising(10 * MS, 150 * MS))
    assert [f.code for f in findings] == ["TRD001"]
    assert checked["HST001"].outcome == "clear"
    assert "TRD001" in checked["HST001"].hint


def test_steady_slow_python_does_not_rise() -> None:
    """Python that takes as long at the end as at the start is slow Python only."""
    assert codes(rising(80 * MS, 80 * MS)) == ["HST001"]


def test_a_compiled_step_that_alone_gets_slower_is_undecided() -> None:
    """Nothing shows whether the input of a compiled step grew by plan: no finding, but not clear."""
    findings, checked = look(rising(MS, MS, call=50 * MS, call_last=150 * MS))
    assert findings == ()
    assert checked["TRD001"].outcome == "undecided"


@pytest.mark.parametrize(("waits", "rises"), [(1.0, False), (0.0, True)])
def test_a_thread_that_waits_ever_longer_for_a_cpu_does_no_more_work(waits: float, rises: bool) -> None:
    """Steps that grow from 20 to 160 ms: all of what they grow by is waiting, or none of it."""
    job = rising(10 * MS, 150 * MS, call=10 * MS)
    seconds = job.records[-1].start_ns // S + 1
    job.thread_cpu(seconds, {MAIN: 50})
    at = np.arange(seconds + 1) * S
    starts = np.array([r.start_ns for r in job.records if r.kind == Kind.FUNCTION])
    length = np.interp(at, starts[:-1], np.diff(starts))
    wait = np.concatenate([[0.0], np.cumsum(1.0 - starts[1] / length[1:])]) * waits * S
    job.threads = msgspec.structs.replace(job.threads, wait_ns=wait.astype(np.int64))
    assert ("TRD001" in codes(job)) is rises


def test_larger_batches_are_no_slower_steps() -> None:
    """Python that takes longer because the batch has grown is the same time per sample."""
    job = rising(10 * MS, 40 * MS, call=30 * MS, call_last=120 * MS)
    job.records = [
        r._replace(arg=10 + (r.start_ns // PERIOD) * 30 // STEPS) if r.kind == Kind.FUNCTION else r for r in job.records
    ]
    assert "TRD001" not in codes(job)


def test_what_rises_is_the_usual_call() -> None:
    """A few calls that a busy machine stretched, early or late, do not decide which callback is named."""
    job = Job()
    job.loop("fit", line=50).at(0, STEPS * PERIOD * 2)
    step, report, log = (
        job.execution(),
        job.callback("Report.on_train_batch_end"),
        job.callback("Log.on_train_batch_end"),
    )
    now = 0
    for i in range(STEPS):
        step.at(now, 50 * MS, arg=1)
        late = 40 * MS if i == STEPS - 3 else MS // 50
        drawn = (10 + i // 2) * MS + (600 * MS if i in {4, 9} else 0)
        report.at(now + 50 * MS, drawn)
        log.at(now + 50 * MS + drawn, late)
        job.samples([now + 20 * MS], Frame(SCRIPT, "main", REPORT))
        now += 50 * MS + drawn + late + MS
    (found,) = (f for f in look(job)[0] if f.code == "TRD001")
    assert "the callback Report.on_train_batch_end" in found.title
