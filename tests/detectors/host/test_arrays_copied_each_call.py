"""HST013 arrays-copied-each-call: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import read
from tests.detectors.jobs import CALL, copying, unsampled

from stepscope.detectors.host.arrays_copied_each_call import DETECTOR
from stepscope.model.log.events import Traced
from stepscope.model.log.graph import GraphRead
from stepscope.model.log.program import InputSeen

FIXTURES = Fixtures(
    firing=lambda: copying(49),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", CALL),),
        metrics=("copy_ratio", "call_ratio", "samples"),
        title=("each call copies NumPy arrays into tensors", "50 ms a step", "50 %"),
        introduced="data preparation",
        exposed="prediction",
        pipeline_stage="host-to-device",
        remedy="convert-once",
    ),
    silent=lambda: copying(49, own=True),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: copying(14),
    at=lambda: copying(15),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(("used", "remedy"), [("float32", "narrower-arrays"), ("complex128", "convert-once")])
def test_arrays_that_the_step_casts_down(used: str, remedy: str) -> None:
    """Half of the bytes need not be copied: the type is the first remedy, and the least that is saved."""
    job, made = copying(49), Tables()
    step = made.graph()
    wide = step.op("x", "Placeholder", outputs="float64[32,1000]")
    step.op("x/Cast", "Cast", wide, outputs=f"{used}[32,1000]")
    read(job, made)
    (graph,) = made.worker().all(GraphRead)
    job.event(Traced(id=graph.of, function="step", function_key=1, definition_key="train.py:3"))
    job.event(InputSeen(position=0, of="train.py:3", shape=(32, 1000), dtype="float64", rows=32, distinct=32))
    (found,) = look(DETECTOR, job)[0]
    assert found.remedies[0].id == remedy
    assert ("float64, which it casts to float32" in found.title) == (used == "float32")


@pytest.mark.parametrize(("period", "found"), [(4 * MS, []), (10 * MS, ["HST013"])], ids=["small-arrays", "large"])
def test_arrays_that_are_copied(period: int, found: list[str]) -> None:
    """A fifth of a step of 4 ms is what making tensors of a few small arrays takes: there is nothing to make once."""
    assert [code for code in codes(copying(20, period=period)) if code == "HST013"] == found
