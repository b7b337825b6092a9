"""What a death for lack of memory takes of the source."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT
from tests.detectors.jobs import MAKE, train_loop
from tests.diagnosis.static.static_hits import SLOW, hit, joined

from stepscope.diagnosis.static.static_check import StaticHit
from stepscope.model.log.memory import MemoryHeld
from stepscope.tables.findings import Cause, Cost, Finding, Remedy
from stepscope.tables.place import Place


def death(line: int, cause: Cause = "unknown") -> Finding:
    """A death for lack of memory at a line of ``make_batch``."""
    return Finding(
        code="MEM004",
        name="out-of-memory",
        title="out of memory: ended at 2 GiB",
        severity="high",
        confidence=0.5,
        symptom="Memory: out of memory",
        cause=cause,
        introduced_stage="unknown",
        exposed_stage="training",
        pipeline_stage="none",
        where=(Place(file="train.py", line=line, function="make_batch"),),
        cost=Cost(ratio=1.0, low=1.0, high=1.0),
        remedies=(Remedy(id="look-at-line", text="look at the line"),),
        explanation="The kernel killed it.",
    )


def memory_hit(line: int = SLOW, code: str = "KER009", function: str = "make_batch") -> StaticHit:
    """A hit of a rule about memory."""
    return hit(
        line,
        code=code,
        function=function,
        symptom="Memory: out of memory",
        related=("MEM004",),
        cause="Model: inefficient model structure",
    )


def test_a_death_without_a_cause_takes_that_of_the_source_at_its_line() -> None:
    """The symptom is measured, so the pattern at the line is told first, with its advice."""
    (finding,) = joined(train_loop(20 * MS), memory_hit(), run=(death(SLOW),)).findings
    assert finding.title == "out of memory: ended at 2 GiB: rows are read one by one"
    assert finding.cause == "Model: inefficient model structure"
    assert [r.text for r in finding.remedies] == ["work on all rows at once"]


def test_a_death_elsewhere_takes_the_only_pattern_that_ran() -> None:
    """A look at the memory shows what ran where the run was too short for samples; of two patterns none is it."""
    short = train_loop(20 * MS)
    short.event(MemoryHeld(at=MS, stack=((SCRIPT, "main", MAKE), (SCRIPT, "make_batch", SLOW))))
    (finding,) = joined(short, memory_hit(), run=(death(MAKE),)).findings
    assert finding.related_codes == ("KER009",)
    for static in ((memory_hit(), memory_hit(SLOW + 1, "KER012")), (memory_hit(99, function="other"),)):
        (finding,) = joined(short, *static, run=(death(MAKE),)).findings
        assert finding.related_codes == ()


def test_a_death_with_a_cause_keeps_it() -> None:
    """What was seen to hold the memory stays first; the pattern at its line adds its advice."""
    cause: Cause = "Model: improper model parameter"
    (finding,) = joined(train_loop(20 * MS), memory_hit(), run=(death(SLOW, cause=cause),)).findings
    assert finding.title == "out of memory: ended at 2 GiB"
    assert (finding.cause, len(finding.remedies)) == (cause, 2)
