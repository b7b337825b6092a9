"""Claims of an experiment, and findings of detectors about the same lines."""

from __future__ import annotations

import msgspec
from tests.report.samples import finding

from stepscope.diagnosis import proven
from stepscope.tables.findings import Checked, Cost, Evidence, Finding, Remedy
from stepscope.tables.place import Place

PLACE = Place(file="train.py", line=25, function="call")
MODELLED = msgspec.structs.replace(
    finding(),
    code="GRF021",
    where=(PLACE,),
    severity="medium",
    evidence=(Evidence(metric="one_hot_ratio", value=0.2, unit="ratio"),),
    cost=Cost(ratio=0.2, low=0.1, high=0.3, basis="modelled"),
)
CLAIM = msgspec.structs.replace(
    MODELLED,
    code="EXP001",
    severity="high",
    evidence=(Evidence(metric="saved_ratio", value=0.6, unit="ratio"),),
    cost=Cost(ratio=0.6, low=0.5, high=0.7),
    remedies=(Remedy(id="needless-zeros", text="a lookup"),),
)


def codes(*findings: Finding) -> list[tuple[str, float, str]]:
    """What remains."""
    return [(one.code, one.cost.ratio, one.severity) for one in proven.joined(findings)]


def test_a_detectors_finding_gets_the_measured_time() -> None:
    """The detector's name and remedy, the experiment's cost and evidence: one finding."""
    (found,) = proven.joined((MODELLED, CLAIM))
    assert (found.code, found.cost, found.severity) == ("GRF021", CLAIM.cost, "high")
    assert [one.metric for one in found.evidence] == ["one_hot_ratio", "saved_ratio"]
    assert (found.remedies, found.related_codes) == (MODELLED.remedies, ("EXP001",))


def test_what_is_not_the_same_stays_apart() -> None:
    """Another line, or another kind of waste: two findings, the costliest first."""
    elsewhere = msgspec.structs.replace(MODELLED, where=(msgspec.structs.replace(PLACE, line=9, function="other"),))
    assert codes(elsewhere, CLAIM) == [("EXP001", 0.6, "high"), ("GRF021", 0.2, "medium")]
    inverse = msgspec.structs.replace(CLAIM, remedies=(Remedy(id="needless-constant", text=""),))
    assert len(codes(MODELLED, inverse)) == 2


def test_a_claim_without_a_time_changes_no_cost() -> None:
    """The detector's estimate stands; the claim about the same is not told again."""
    untimed = msgspec.structs.replace(CLAIM, severity="info", cost=Cost(ratio=0.0, low=0.0, high=1.0, basis="unknown"))
    assert codes(MODELLED, untimed) == [("GRF021", 0.2, "medium")]


def test_an_answered_question_is_not_asked() -> None:
    """A suspicion of one-hot products is answered by a timed claim of zeros, by an untimed one it is not."""
    asked = (
        Checked(detector="GRF021", name="", outcome="undecided"),
        Checked(detector="GRF014", name="", outcome="clear"),
    )
    assert [one.detector for one in proven.open_questions(asked, (CLAIM,))] == ["GRF014"]
    untimed = msgspec.structs.replace(CLAIM, cost=Cost(ratio=0.0, low=0.0, high=1.0, basis="unknown"))
    assert proven.open_questions(asked, (untimed,)) == asked
