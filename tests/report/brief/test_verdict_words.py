"""The verdict in plain words."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.report import samples
from tests.report.verdict_jobs import clean, entry, general

from stepscope.model.report.op_summary import TracedSteps
from stepscope.model.report.report import Report
from stepscope.report import html, markdown, text
from stepscope.report.brief import text as brief
from stepscope.report.brief import verdict_words
from stepscope.tables.findings import Cost, Diagnostic
from stepscope.tables.place import Place

replace = msgspec.structs.replace


def with_first(**fields: object) -> str:
    """The verdict of a job whose first finding has these fields."""
    report = samples.input_bound()
    return verdict_words.text(replace(report, findings=(replace(report.findings[0], **fields), *report.findings[1:])))


def test_input_bound() -> None:
    """A job that waits for its input is told how much, for what, and what mending it brings."""
    said = "Input-bound: 61 % of step time waits for make_dataset, train.py:24. If fixed, about 2.4 times as fast."
    assert verdict_words.text(samples.input_bound()) == said


def test_a_job_that_computes_more_than_it_waits_is_partly_input_bound() -> None:
    """What is left without the wait is most of the step."""
    report = samples.input_bound()
    some = replace(report, anatomy=samples.anatomy(10**8, call=0.6, input_wait=0.4))
    assert verdict_words.text(some).startswith(
        "Partly input-bound: 40 % of step time waits for make_dataset, train.py:24."
    )


def test_a_job_that_does_not_wait_is_not_input_bound() -> None:
    """A finding about the input of a job that computes is told by its title."""
    report = samples.input_bound()
    busy = replace(report, anatomy=samples.anatomy(10**8, call=0.95, input_wait=0.05))
    assert verdict_words.text(busy).startswith(
        "The input generator runs in Python; each step waits 48 of 79 ms for it, "
    )
    assert "Input-bound" not in verdict_words.text(busy)


def test_other_causes() -> None:
    """Saving is named as what holds the job up; a cause without a stage of its own by the finding's title."""
    saving = with_first(title="x", pipeline_stage="storage", where=(Place(file="a/t.py", line=7, function="M.save"),))
    assert saving.startswith("Held up by saving: 58 % of step time goes to M.save, t.py:7.")
    assert with_first(title="the GIL is held", pipeline_stage="none", where=()).startswith(
        "The GIL is held. Cost: 58 % of the run."
    )
    assert with_first(title="model.fit is called again", pipeline_stage="output-processing", where=()).startswith(
        "model.fit is called again. Cost: 58 % of step time."
    )


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (0.83, 0.80, 0.86, "about 6 times"),
        (0.5, 0.45, 0.55, "about 2 times"),
        (0.5, 0.3, 0.7, "1.4 to 3 times"),
        (0.11, 0.01, 0.85, "up to 7 times"),
        (0.98, 0.93, 1.0, "at least 14 times"),
        (0.5, 0.0, 1.0, "perhaps 2 times"),
    ],
)
def test_a_speed_is_as_certain_as_its_cost(ratio: float, low: float, high: float, said: str) -> None:
    """A wide interval is told by its ends, and one that reaches nothing or everything by the other end."""
    assert verdict_words.speed(Cost(ratio=ratio, low=low, high=high)) == said


def test_no_speed_without_a_cost() -> None:
    """A suspicion, and what costs next to nothing, promise nothing."""
    unknown = Cost(ratio=0.0, low=0.0, high=0.8, basis="unknown")
    assert "times" not in with_first(cost=unknown, severity="ask")
    assert with_first(cost=unknown, severity="ask", pipeline_stage="none").startswith("Perhaps the input generator")
    assert "times" not in with_first(cost=Cost(ratio=0.04, low=0.03, high=0.05), severity="low")


def test_without_findings() -> None:
    """Nothing significant, no cause, and no known saving are told apart."""
    assert verdict_words.text(clean()) == "Nothing significant found: compute takes 89 % of step time."
    assert verdict_words.text(clean(entry(0.31))) == "No cause found: 31 % of the time is not explained."
    listed = replace(clean(entry(0.9, "general"), entry(0.1)), findings=(general(),))
    assert verdict_words.text(listed).startswith("No finding with a known saving; the largest part: garbage collection")


def test_the_end_comes_first() -> None:
    """A job that failed is told to have failed, whatever else is found."""
    assert verdict_words.text(samples.no_steps()) == "Exit code 3. No findings: it ended before its first step."
    assert verdict_words.text(samples.no_series()).startswith("Ended by signal 15. The callback")


def test_without_steps_it_says_what_marks_them() -> None:
    """A job of a framework whose steps are not seen: what its program can do."""
    report = samples.no_steps()
    session = replace(report.session, framework="jax 0.10.2", exit_code=0, end="clean")
    assert verdict_words.text(replace(report, session=session)).endswith(
        "stepscope.step() marks the steps of any loop."
    )


def test_speeds_are_of_the_steps_where_these_are_the_smaller_part() -> None:
    """Steps that are a tenth of the run do not make the run six times as fast."""
    few = replace(
        samples.input_bound(), ledger=(entry(0.1, "finding"), entry(0.9, "general", phase="imports", component=""))
    )
    few = replace(few, session=replace(few.session, step_times=None))
    assert verdict_words.text(few).endswith("If fixed, its steps are about 2.4 times as fast.")


def test_a_small_thing_of_unknown_cause_is_no_verdict() -> None:
    """Beside much time that nothing explains, it is said that no cause was found."""
    report = samples.input_bound()
    small = replace(report.findings[0], title="something interrupts the steps", cause="unknown", pipeline_stage="none")
    small = replace(small, cost=Cost(ratio=0.03, low=0.02, high=0.04))
    left = replace(report, findings=(small,), unexplained_ratio=0.75)
    assert verdict_words.text(left) == "75 % of the time is not explained; what was found takes less."
    known = replace(left, findings=(small, *report.findings))
    assert verdict_words.text(known) == verdict_words.text(report)
    assert verdict_words.text(replace(left, unexplained_ratio=0.02)).startswith("Something interrupts the steps")


def test_a_damaged_session_is_no_job_without_steps() -> None:
    """Steps that are not there may be in what cannot be read: nobody is told to mark them."""
    lost = (Diagnostic(code="DX106", text="records.parquet cannot be read and is left out"),)
    unread = "Parts of this session cannot be read, and are left out."
    assert verdict_words.text(replace(samples.no_steps(), diagnostics=lost)).endswith(unread)
    said = verdict_words.text(replace(samples.input_bound(), diagnostics=lost))
    assert said.startswith(f"{unread} Input-bound: ")


def test_shares_of_a_damaged_session_are_of_its_traced_steps() -> None:
    """An op trace may be all that shows steps; and a framework that cannot be read is not absent."""
    summary = replace(samples.no_steps().session, framework="")
    lost = (Diagnostic(code="DX106", text="events.parquet cannot be read and is left out"),)
    report = replace(samples.no_steps(), session=summary, diagnostics=lost)
    assert "no steps in what can be read \u00b7 framework not known" in text.render(report, width=200)
    traced = replace(report, traced=TracedSteps(trace="ops-001", count=6, mean_ns=157_000_000))
    assert "only 6 traced steps in what can be read \u00b7 framework not known" in text.render(traced, width=200)
    found = replace(traced, findings=samples.input_bound().findings[:1])
    assert "framework not known · only 6 traced steps" in brief.render(found, width=200)


@pytest.mark.parametrize("form", [text.render, markdown.render, html.render])
@pytest.mark.parametrize("of", [samples.no_steps, samples.clean])
def test_every_form_begins_with_what_cannot_be_read(form: Callable[[Report], str], of: Callable[[], Report]) -> None:
    """And says of no steps that they were not seen, of no findings that nothing is wrong."""
    lost = (Diagnostic(code="DX106", text="records.parquet cannot be read and is left out"),)
    said = form(replace(of(), diagnostics=lost)).lower()
    assert "arts of this session cannot be read, and are left out" in said
    assert "no steps seen" not in said
    assert "no steps were seen" not in said
    assert "nothing significant found\n" not in said
