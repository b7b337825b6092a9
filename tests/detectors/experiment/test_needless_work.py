"""EXP001 needless-work: its fixtures, and what is information only."""

from __future__ import annotations

import msgspec
import pytest
from tests.detectors.experiment_jobs import EXPERIMENT, claim, tried
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import CALL, nothing

from stepscope.detectors.experiment.needless_work import DETECTOR

FIXTURES = Fixtures(
    firing=lambda: tried(claims=(claim(0.4),)),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", CALL),),
        metrics=("needless_ratio", "saved_ratio", "rounds"),
        title=("line 44", "99.99 %", "60 %", "58 % to 62 %"),
        introduced="model building",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="needless-zeros",
    ),
    silent=lambda: tried(claims=(claim(0.99),)),
    not_applicable=nothing,
    missing=EXPERIMENT,
    below=lambda: tried(claims=(claim(0.9, width=0.101),)),
    at=lambda: tried(claims=(claim(0.9, width=0.099),)),
    edges={
        "min_saved": Edge(
            below=lambda: tried(claims=(claim(0.94, width=0.031),)),
            at=lambda: tried(claims=(claim(0.94, width=0.029),)),
            shows="low",
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_what_was_not_timed_is_information() -> None:
    """Without a trial, and without an interval, nothing is claimed to be saved, and the title says so."""
    few = msgspec.structs.replace(claim(0.4), time_low=0.0, time_high=0.0)
    (untimed, once), _ = look(DETECTOR, tried(claims=(claim(0.0), few)))
    assert {untimed.severity, once.severity} == {"info"}
    assert (untimed.cost.ratio, untimed.cost.basis, once.cost.ratio, once.cost.basis) == (0, "unknown", 0, "unknown")
    assert {round(untimed.cost.high, 2), round(once.cost.high, 2)} == {0.9, 0.6}
    assert "what it costs is not measured" in untimed.title + once.title
    assert "too few rounds" in untimed.title + once.title


def test_ops_of_a_library_have_no_place() -> None:
    """Without a line of the program the title names the op."""
    nowhere = msgspec.structs.replace(claim(0.4), places=())
    (found,), _ = look(DETECTOR, tried(claims=(nowhere,)))
    assert found.where == ()
    assert found.title.startswith("op MatMul computes with zeros")
