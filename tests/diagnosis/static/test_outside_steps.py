"""Static findings on lines that run outside of the steps get the cost of the run there."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import PERIOD, STEPS, train_loop
from tests.diagnosis.static.static_hits import MAIN, SLOW, hit, joined


def prepared(share: float) -> Job:
    """A loop that is clean, after ``make_batch`` has prepared its data for this part of the run."""
    job = train_loop(90 * MS)
    whole = STEPS * PERIOD
    before = round(share * whole / (1 - share))
    job.framework(at=MS, dur=MS // 2)
    job.records = [record._replace(start_ns=record.start_ns + before) for record in job.records]
    job.samples(range(0, before, 50 * MS), MAIN, Frame(SCRIPT, "make_batch", SLOW))
    job.samples(range(before + 50 * MS, before + whole, PERIOD), MAIN)
    job.ended_ns = before + whole
    return job


def test_lines_outside_of_the_steps_cost_their_share_of_the_run() -> None:
    """What a loop before the training takes is on no step's account, but on the run's."""
    (finding,) = joined(prepared(0.3), hit(related=())).findings
    assert "takes 30 % of the run, outside of the steps" in finding.title
    assert finding.severity == "high"
    assert finding.exposed_stage == "initialization"
    assert finding.cost.low == 0.0
    assert joined(prepared(0.05), hit(related=())).findings == ()
