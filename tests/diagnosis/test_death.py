"""What a death for lack of memory takes of another finding at its line."""

from __future__ import annotations

from msgspec.structs import replace

from stepscope.diagnosis import death
from stepscope.tables.findings import Cause, Cost, Evidence, Finding, Remedy
from stepscope.tables.place import Place


def finding(code: str, line: int, title: str, remedy: str, *, cause: Cause = "unknown", unit: str = "") -> Finding:
    """A finding at a line of ``answer``."""
    return Finding(
        code=code,
        name="one",
        title=title,
        severity="high",
        confidence=0.5,
        symptom="Memory: out of memory" if code == "MEM004" else "Time: slow execution time",
        cause=cause,
        introduced_stage="unknown",
        exposed_stage="prediction",
        pipeline_stage="none",
        where=(Place(file="desk.py", line=line, function="answer"),),
        evidence=(Evidence(metric="size", value=18, unit=unit),) if unit else (),
        cost=Cost(ratio=1.0 if code == "MEM004" else 0.9, low=0.9, high=1.0, basis="measured"),
        remedies=(Remedy(id=remedy, text=remedy),),
        explanation="",
    )


LOADS = finding(
    "HST007", 46, "the model is loaded again", "build-once", cause="Model: confusion with computation model"
)
DIES = finding("MEM004", 46, "out of memory: ended at 850 MiB", "look-at-line")
KEEPS = finding(
    "MEM004",
    46,
    "out of memory: desk.open holds 400 MiB",
    "bound-what-is-kept",
    cause="API: inefficient API usage",
    unit="models",
)


def test_nobody_held_it_but_the_line_loads_models() -> None:
    """The death comes first, with the cause, the words and the advice of the finding at its line, which stays."""
    first, second = death.joined([LOADS, DIES])
    assert (first.code, first.cause) == ("MEM004", "Model: confusion with computation model")
    assert first.title == "out of memory: ended at 850 MiB; the model is loaded again"
    assert [r.id for r in first.remedies] == ["build-once"]
    assert first.related_codes == ("HST007",)
    assert second == LOADS


def test_a_list_of_models_keeps_its_advice() -> None:
    """Where a list of models held the memory, bounding it is the second advice."""
    first, _ = death.joined([KEEPS, LOADS])
    assert [r.id for r in first.remedies] == ["build-once", "bound-what-is-kept"]
    assert first.cause == LOADS.cause


def test_what_has_another_root_stays() -> None:
    """Another line, a list of arrays, information, and a detector of something else: nothing is taken."""
    elsewhere = replace(LOADS, where=(Place(file="desk.py", line=12, function="answer"),))
    of_arrays = replace(KEEPS, evidence=(Evidence(metric="size", value=18, unit="entries"),))
    for found in (
        [DIES, elsewhere],
        [of_arrays, LOADS],
        [DIES, replace(LOADS, severity="info")],
        [DIES, replace(LOADS, code="HST001")],
    ):
        assert sorted(f.title for f in death.joined(found)) == sorted(f.title for f in found)
