"""EXP002 faster-way-tried: its fixtures, and which trials are told."""

from __future__ import annotations

import pytest
from tests.detectors.experiment_jobs import EXPERIMENT, result, tried
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import nothing

from stepscope.detectors.experiment.faster_way_tried import DETECTOR

SIZES = ("batch:2", "batch:4")
OTHERS = ("prefetch", "xla-on", "cache-input")

FIXTURES = Fixtures(
    firing=lambda: tried(result(0.63)),
    expected=Expected(
        severity="high",
        cost=0.37,
        where=(),
        metrics=("saved_ratio", "rounds"),
        title=("parallel-map", "37 %", "35 % to 39 %"),
        introduced="unknown",
        exposed="prediction",
        pipeline_stage="none",
        remedy="tried-parallel-map",
    ),
    silent=lambda: tried(result(0.63, verdict="undecided")),
    not_applicable=nothing,
    missing=EXPERIMENT,
    below=lambda: tried(result(0.9, width=0.071)),
    at=lambda: tried(result(0.9, width=0.069)),
    edges={
        "most": Edge(
            below=lambda: tried(result(0.5), *(result(0.4, name) for name in OTHERS)),
            at=lambda: tried(result(0.5), *(result(0.4, name) for name in OTHERS[:2])),
            shows="tried-parallel-map",
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_ceiling_is_information() -> None:
    """What leaving a part out saves is no gain: its cost is unknown, at most that."""
    (found,), _ = look(DETECTOR, tried(result(0.63, "without-callback:Slow", kind="ceiling")))
    assert found.severity == "info"
    assert (found.cost.ratio, found.cost.basis) == (0.0, "unknown")
    assert found.cost.high == pytest.approx(0.37)
    assert "leaves something out" in found.title


def test_pairs_of_one_process_are_the_evidence() -> None:
    (found,), _ = look(DETECTOR, tried(result(0.63, "stub:slow", rounds=1, pairs=12)))
    assert [(one.metric, one.value) for one in found.evidence][1:] == [("pairs", 12)]


def test_one_size_of_a_kind_is_told() -> None:
    """Of several sizes of a batch the best one; that results change is said."""
    (found,), _ = look(DETECTOR, tried(*(result(0.5 + 0.1 * i, s, keeps_results=False) for i, s in enumerate(SIZES))))
    assert "batch:2 makes" in found.title
    assert found.title.endswith("; it changes what the job computes")


def test_what_others_tell_is_not_told_again() -> None:
    """Trials of claims are EXP001's; another program is no change of this one; one round has no interval."""
    others = (result(0.5, "without-ops:MatMul", kind="ceiling"), result(0.5, "against"), result(0.5, low=0.0, high=0.0))
    findings, checked = look(DETECTOR, tried(*others))
    assert (findings, checked.outcome) == ((), "clear")
