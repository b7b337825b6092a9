"""The head of a report: what is not explained, and when nothing was found."""

from __future__ import annotations

import msgspec
import pytest
from tests.report import samples
from tests.report.verdict_jobs import clean, entry, general

from stepscope.model.report.report import SessionSummary, StepMaker
from stepscope.model.report.step_summary import StepTimes
from stepscope.report import html, json_report, markdown, text, verdict
from stepscope.report.brief import text as brief
from stepscope.tables.findings import Diagnostic, Severity
from stepscope.tables.place import Place

replace = msgspec.structs.replace


STEADY: dict[str, int] = {"count": 9, "mean_ns": 10**8, "p50_ns": 1, "p95_ns": 1, "p99_ns": 1, "warmup_steps": 0}
"""Steady steps that are nine tenths of a second."""
AT = Place(file="train.py", line=41, function="make_step")


def test_unexplained_time_is_said_with_its_places() -> None:
    """The largest part first, each with its line and what runs there; never "nothing significant found" over it."""
    report = clean(
        entry(0.09, phase="not-seen", component=""),
        entry(0.22, where=[msgspec.to_builtins(AT)], text="Conv2D, MatMul; 600 steps"),
        entry(0.6, "finding", component="input-wait"),
    )
    said = "31 % of the time: 22 % compute at train.py:41 make_step (Conv2D, MatMul)"
    assert verdict.unexplained_text(report).startswith(said)
    plain = text.render(report, width=200)
    assert said in plain
    assert "not seen" in plain
    for shown in (plain, markdown.render(report), html.render(report)):
        assert verdict.NOTHING not in shown.lower()
        assert "31 % of the time" in shown
    assert json_report.decode(json_report.encode(report)).unexplained_ratio == pytest.approx(0.31)


def test_a_little_unexplained_time_is_not_said() -> None:
    """Less than a twentieth of the run is nothing significant."""
    assert verdict.nothing_text(clean(entry(0.04), entry(0.96, "limit"))) == verdict.NOTHING
    assert "nothing significant found" in text.render(clean(entry(0.04), entry(0.96, "limit")))


def test_what_findings_explain_of_a_part_is_not_unexplained() -> None:
    """A finding that explains a third of a part leaves two thirds of it."""
    assert verdict.unexplained_text(clean(entry(0.6, explained_ratio=1 / 3))).startswith("40 % of the time: compute")


def test_a_large_general_finding_is_listed() -> None:
    """Information that matters is printed with its remedy, and the verdict does not call the time insignificant."""
    report = replace(clean(entry(1.0, "general")), findings=(general(), general("GEN004", high=0.06)))
    plain = text.render(report)
    assert "1 info    GEN010  garbage collection takes 40 % of the steps" in plain
    assert "\n  info    GEN004" in plain
    assert verdict.NOTHING not in plain


def test_time_that_a_run_pays_for_once_is_listed_if_it_is_a_quarter() -> None:
    """Imports weigh less in a longer run."""
    once = general("GEN013", high=0.2, exposed_stage="initialization")
    assert verdict.listed(replace(clean(), findings=(once,))) == []
    assert len(verdict.listed(replace(clean(), findings=(replace(once, cost=replace(once.cost, high=0.3)),)))) == 1


@pytest.mark.parametrize(("high", "shown"), [(0.67, True), (0.3, False)])
def test_a_place_of_half_of_the_time_is_listed_without_advice(high: float, *, shown: bool) -> None:
    """A program that works for long after its steps: that, and where, is what there is to say, in short as well."""
    found = replace(general("GEN013", high=high), remedies=())
    report = replace(clean(entry(0.08), entry(0.92, "general", phase="end", component="")), findings=(found,))
    assert verdict.listed(report) == ([found] if shown else [])
    plain = brief.render(report, width=100)
    assert ("No finding with a known saving; the largest part" in plain) == shown
    assert "\n\n\n" not in plain


def test_a_report_says_that_steps_are_the_smaller_part() -> None:
    """Shares of the step are not to be read as shares of the run."""
    few = clean(entry(0.1, "finding"), entry(0.9, "general", phase="imports", component=""))
    few = replace(few, session=replace(few.session, step_times=None))
    assert "the steps take 10 % of the run" in text.render(few, width=200)
    assert "the steps take 10 % of the run" in markdown.render(few)
    assert verdict.steps_note(clean(entry(0.6, "finding"))) == ""
    assert verdict.steps_note(clean()) == ""
    times = replace(
        samples.clean().session,
        wall_ns=10**9,
        step_times=msgspec.convert({**STEADY, "warmup_ns": 0, "source": "steps"}, StepTimes),
    )
    assert verdict.steps_note(replace(few, session=times)) == ""  # evaluations within the steps


@pytest.mark.parametrize(("threads", "ratio"), [(1, 0.8), (4, 0.2)])
def test_steps_that_were_only_counted_are_a_part_of_the_run_too(threads: int, ratio: float) -> None:
    """Two of ten steps of a tenth of a second were timed. What several threads made says nothing of the time of one."""
    maker = StepMaker(
        kind="training",
        title="step",
        place=None,
        pid=1,
        threads=threads,
        count=9,
        rate=1.0,
        samples_per_s=None,
        main=True,
    )
    times = msgspec.convert({**STEADY, "count": 2, "warmup_steps": 1, "warmup_ns": 0, "source": "steps"}, StepTimes)
    few = clean(entry(0.1, "finding"), entry(0.9, "general", phase="imports", component=""))
    session = replace(few.session, step_times=times, wall_ns=10**9, step_makers=(maker,))
    assert verdict.steps_ratio(replace(few, session=session)) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("code", "end", "said"),
    [
        (0, "code", ""),
        (3, "code", "exit code 3"),
        (-9, "code", "ended by signal 9"),
        (-9, "memory", "killed for lack of memory (signal 9)"),
        (None, "clean", "ended, exit code not observed"),
        (None, "outside", ""),
        (None, "unknown", "end not recorded"),
    ],
)
def test_how_the_job_ended(code: int | None, end: str, said: str) -> None:
    """A job that ran to its end without a launcher is not said to have been lost sight of."""
    given = {"id": "a", "command": (), "framework": "", "hosts": 1, "steps": 0, "throughput": {}}
    summary = msgspec.convert({**given, "exit_code": code, "end": end}, SessionSummary)
    assert verdict.exit_text(summary) == said


def test_a_crash_takes_three_lines() -> None:
    """A job that failed before its first step has a line on what it was, why there is no more, and the report's."""
    lines = text.render(replace(samples.no_steps(), series={}), html_path="a.html").splitlines()
    assert [line.split()[0] for line in lines] == ["stepscope", "why", "report"]
    assert "exit code 3" in lines[0]
    assert "ended before its first step" in lines[1]
    assert len(text.render(samples.no_steps(), verbose=True).splitlines()) > 5


@pytest.mark.parametrize("severity", ["high", "info"])
def test_the_page_of_a_job_without_steps_begins_with_its_largest_part(severity: Severity) -> None:
    """As its title, or where nothing is above information behind it."""
    largest = replace(samples.input_bound().findings[0], code="GEN015", severity=severity, title="score takes 72 %")
    page = html.render(replace(samples.no_steps(), findings=(largest,)))
    head = page[page.index("<h1>") : page.index("</p>", page.index("<h1>"))]
    assert ("No steps seen" in head) is (severity == "info")
    assert "score takes 72 %" in head


def test_nothing_to_measure_takes_three_lines() -> None:
    """A job without a framework says so once; a failure of the agent comes first."""
    report = replace(samples.no_steps(), series={})
    session = replace(report.session, exit_code=0, end="code")
    none = (Diagnostic(code="DX108", text="no process imported TensorFlow, so only processes were measured"),)
    lines = text.render(replace(report, session=session, diagnostics=none), html_path="a.html").splitlines()
    assert lines[1] == "why         DX108 no process imported TensorFlow \u00b7 more: -v"
    assert len(lines) == 3
    failed = (*none, Diagnostic(code="DX115", text="process 3 was not measured"))
    assert "DX115 process 3" in text.render(replace(report, session=session, diagnostics=failed)).splitlines()[1]
