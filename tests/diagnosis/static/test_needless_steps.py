"""A call that makes more steps than are meant costs these steps, if the run made them, in batches of several."""

from __future__ import annotations

import msgspec
from tests.derive.sessions import MS, SCRIPT
from tests.detectors.jobs import STEPS, keras_fit
from tests.diagnosis.static.static_hits import hit, joined

from stepscope.check.hits import Excess, Span
from stepscope.diagnosis.static.join import JoinedFindings
from stepscope.tables.findings import Cost, Finding
from stepscope.tables.place import Place

FIT = 50
"""Line of the call of fit."""


def of_fit(size: int, *, line: int = FIT, run: tuple[Finding, ...] = ()) -> JoinedFindings:
    """A fit with batches of this size, in which the source counts samples and takes them for batches of 32."""
    job = keras_fit(80 * MS)
    job.batch(0, size=size, samples=size * STEPS, steps=STEPS)
    call = Span(path=SCRIPT, line=line, column=1, end_line=line + 2, end_column=2, function="main")
    found = hit(FIT + 1, code="KER011", related=(), function="main")
    excess = msgspec.structs.replace(found.hit, excess=Excess(call=call, factor=32))
    return joined(job, msgspec.structs.replace(found, hit=excess), run=run)


def test_all_passes_of_an_epoch_but_one_are_the_cost() -> None:
    """The call is timed, its batches are known: nothing of the pattern's cost is guessed."""
    (finding,) = of_fit(32).findings
    assert (finding.code, finding.severity, finding.seen) == ("KER011", "high", True)
    assert 0.9 < finding.cost.low <= finding.cost.ratio <= 31 / 32
    assert "each epoch goes over the data 32 times" in finding.title
    assert finding.where[0].line == FIT + 1
    (fewer,) = of_fit(4).findings
    assert fewer.cost.ratio <= 3 / 4


def test_batches_of_one_make_no_pass_too_many() -> None:
    """The run knows better than the source what a batch is."""
    assert of_fit(1).findings == ()


def test_another_call_makes_the_steps() -> None:
    """Steps of a call elsewhere are not those that the source speaks of."""
    result = of_fit(32, line=FIT + 20)
    assert (result.findings, [f.code for f in result.rest]) == ((), ["KER011"])


def test_what_else_is_found_at_the_call_stays_apart() -> None:
    """A slow input of the same call is another cause: with fewer steps each still waits."""
    other = Finding(
        code="INP003",
        name="slow",
        title="the input is slow",
        severity="medium",
        confidence=0.9,
        symptom="Time: slow execution time",
        cause="unknown",
        introduced_stage="unknown",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=(Place(file="train.py", line=FIT + 1),),
        cost=Cost(ratio=0.2, low=0.2, high=0.2),
    )
    assert [f.code for f in of_fit(32, run=(other,)).findings] == ["KER011", "INP003"]
