"""What only one side of a comparison has: lines, and findings."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS
from tests.use_cases.compared_sessions import named, run

from stepscope.use_cases import compare
from stepscope.use_cases.comparing.numbers import Line, LineNumber


def test_lines_of_one_side_are_new_or_gone() -> None:
    """They have no ratio."""
    lines = {name: {Line("train.py", name, name): LineNumber(value=1e6, place=None, name=name)} for name in ("x", "y")}
    report = compare.of_numbers([replace(run(seed=1), ops=lines["x"])], [replace(run("b", seed=2), ops=lines["y"])])
    assert (named(report, "ops", "x").verdict, named(report, "ops", "y").verdict) == ("gone", "new")
    assert named(report, "ops", "x").ratio is None


def test_findings_that_came_and_went() -> None:
    """A finding of every run of one side and of none of the other is named."""
    waits = [run(f"w{i}", wait_ns=80 * MS, seed=i) for i in range(2)]
    clean = [run(f"c{i}", wait_ns=0, seed=i) for i in range(2)]
    here = {(one.change, one.code) for one in compare.of_numbers(waits, clean).findings}
    there = {(one.change, one.code) for one in compare.of_numbers(clean, waits).findings}
    assert here
    assert {code for _, code in here} == {code for _, code in there}
    assert {change for change, _ in here} == {"gone"}
    assert {change for change, _ in there} == {"new"}
    assert compare.of_numbers([waits[0], clean[0]], clean).findings == ()


@pytest.mark.parametrize(("share", "verdict"), [(0.02, "undecided"), (0.5, "gone")])
def test_a_line_without_samples_has_gone_only_beyond_chance(share: float, verdict: str) -> None:
    """A line of 12 samples of 600 may run in B as before and be missed there; one of half of all samples may not."""
    line = Line("train.py", "load", "log(step)")
    table = {line: LineNumber(value=share, place=None, name="log(step)")}
    before, after = (replace(run(seed=seed), samples=600, python=python) for seed, python in ((1, table), (2, {})))
    after = replace(after, samples=100)
    report = compare.of_numbers([before], [after])
    assert named(report, "python", "log(step)").verdict == verdict


def test_a_finding_that_only_informs_has_not_gone() -> None:
    """It is weaker on the other side."""
    waits, clean = run("w", wait_ns=80 * MS, seed=1), run("c", wait_ns=0, seed=2)
    report = waits.report
    weak = msgspec.structs.replace(
        clean.report, findings=tuple(msgspec.structs.replace(one, severity="info") for one in report.findings)
    )
    assert compare.of_numbers([waits], [replace(clean, report=weak)]).findings == ()


def test_what_a_side_could_not_look_for_has_not_gone() -> None:
    """It is a note."""
    waits, clean = run("w", wait_ns=80 * MS, seed=1), run("c", wait_ns=0, seed=2)
    blind = tuple(msgspec.structs.replace(row, outcome="undecided") for row in clean.report.checked)
    after = replace(clean, report=msgspec.structs.replace(clean.report, checked=blind))
    report = compare.of_numbers([waits], [after])
    codes = [one.code for one in compare.of_numbers([waits], [clean]).findings]
    assert report.findings == ()
    assert f"whether B has {', '.join(codes)} is not known: it could not look for it" in report.notes
