"""HST015 same-ops-again: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN, MS, POOL, SCRIPT, US
from tests.detectors.asking import find
from tests.detectors.eager_jobs import again
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import PERIOD, TIDY, asking, nothing

from stepscope.detectors.host.same_ops_again import DETECTOR
from stepscope.model.log.eager import EagerOp, EagerOps

FIXTURES = Fixtures(
    firing=lambda: again(350 * MS),
    expected=Expected(
        severity="high",
        cost=0.7,
        where=(("train.py", TIDY),),
        metrics=("again_ratio", "again", "runs", "looks"),
        title=("computed again from the same inputs", "encoder (Conv2D, Relu); 36 of 40", "70 %"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="keep-the-result",
    ),
    silent=lambda: again(0),
    not_applicable=nothing,
    missing="steps",
    below=lambda: again(50 * MS - US),
    at=lambda: again(50 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("fresh", "severity"), [(1, "info"), (2, "high")])
def test_a_loop_that_does_nothing_new_is_information(fresh: int, severity: str) -> None:
    """A benchmark gives a model the same batch in each turn: nothing of it could be kept."""
    (found,) = (f for f in find(again(350 * MS, fresh=fresh)) if f.code == "HST015")
    assert found.severity == severity


@pytest.mark.parametrize(("thread", "at"), [(POOL, 20 * PERIOD), (1, 200 * PERIOD)], ids=["thread", "time"])
def test_looks_elsewhere_do_not_count(thread: int, at: int) -> None:
    """A look at another thread, or after the steps, says nothing of the steps."""
    assert "HST015" not in [f.code for f in find(again(350 * MS, thread=thread, at=at))]


def test_a_known_part_of_a_layer_that_draws_is_none() -> None:
    """Dropout scales its input, which is known, before it draws: nothing of the layer could be kept."""
    assert "HST015" not in [f.code for f in find(again(350 * MS, drawn=True))]


@pytest.mark.parametrize(("each", "found"), [("v", ["HST014"]), ("variables", ["HST015"])])
def test_passes_that_are_run_again_for_each_variable_have_a_finding_of_their_own(each: str, found: list[str]) -> None:
    """Their results are known, too; the remedy is one call for all variables."""
    job = asking(90, each=each)
    row = EagerOp(op="MatMul", file=SCRIPT, line=2, count=200, ns=900 * MS, again=180, again_ns=800 * MS)
    times = {"ns": 900 * MS, "again_ns": 800 * MS}
    late = {"late": 100, "fresh": 10, "late_ns": 500 * MS, "late_again_ns": 400 * MS}
    job.event(EagerOps(at=20 * PERIOD, dur=1_000 * MS, own=MS, thread=MAIN, ops=200, rows=(row,), **times, **late))
    assert [f.code for f in find(job) if f.code in {"HST014", "HST015"}] == found
