"""What settles the parts of the ledger: specific findings, general ones, or nothing."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.graph_jobs import one_hot_tables, read
from tests.detectors.jobs import CALL, PERIOD, STEPS, called_back, keras_fit, sampled, train_loop

from stepscope.diagnosis import analyze, asks, settle
from stepscope.model.report.ledger import LedgerEntry
from stepscope.model.report.report import Component, Report
from stepscope.report import verdict
from stepscope.tables.findings import Cause, Checked, Cost, Evidence, Finding, Severity
from stepscope.tables.place import Place
from stepscope.wire.kinds import Kind


def finding(
    ratio: float, *refs: str, code: str = "HST004", severity: Severity = "high", where: tuple[Place, ...] = ()
) -> Finding:
    """A finding that costs a share of the step and refers to components or phases."""
    return Finding(
        code=code,
        name="some-finding",
        title="something is slow",
        severity=severity,
        confidence=0.9,
        symptom="Time: slow execution time",
        cause="API: inefficient API usage",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="none",
        where=where,
        evidence=(Evidence(metric="ratio", value=ratio, unit="ratio", refs=refs),),
        cost=Cost(ratio=ratio, low=ratio, high=ratio),
    )


def parts(**shares: float) -> list[Component]:
    """The mean step."""
    return [
        Component(component=name.replace("_", "-"), pipeline_stage="none", ratio=ratio, ns_per_step=1)
        for name, ratio in shares.items()
    ]


def reported(job: Job) -> Report:
    """The report of a job that ended with its last step."""
    job.framework(at=2, dur=1)
    job.ended_ns = job.ended_ns or STEPS * PERIOD
    return analyze.report_of(job.session())


def steps_of(report: Report, component: str) -> LedgerEntry:
    """The job's entry of a component of the steps."""
    return next(e for e in report.ledger if e.maker is None and e.phase == "steps" and e.component == component)


def test_a_finding_explains_what_it_claims() -> None:
    """A finding about a component explains the part of it that it would save, and nothing of the others."""
    found = settle.of_components([finding(0.3, "component:callbacks")], parts(call=0.6, callbacks=0.4), {})
    assert found["callbacks"].share == pytest.approx(0.75)
    assert found["callbacks"].code == "HST004"
    assert found["call"].share == 0.0


def test_findings_explain_at_most_everything() -> None:
    """Two findings about one component do not explain it twice."""
    every = [finding(0.4, "component:callbacks"), finding(0.4, "component:callbacks", code="HST009")]
    found = settle.of_components(every, parts(call=0.6, callbacks=0.4), {})
    assert found["callbacks"].share == pytest.approx(1.0)


def test_a_question_explains_nothing() -> None:
    """A suspicion is no explanation."""
    found = settle.of_components([finding(0.9, "component:call", severity="ask")], parts(call=1.0), {})
    assert found["call"].share == 0.0


@pytest.mark.parametrize(("cost", "kept"), [(0.05, ["GEN004"]), (0.21, [])])
def test_a_general_finding_yields_to_what_explains_half_of_its_component(cost: float, kept: list[str]) -> None:
    """Half of a component is enough for a specific finding to settle it, a quarter is not."""
    anatomy = parts(call=0.6, callbacks=0.4)
    explained = settle.of_components([finding(cost, "component:callbacks")], anatomy, {})
    general = finding(0.0, "component:callbacks", code="GEN004", severity="info")
    assert [f.code for f in settle.kept([general], explained, anatomy, 1.0)] == kept


@pytest.mark.parametrize(("cost", "severity"), [(0.05, "high"), (0.15, "info")])
def test_a_general_loss_is_information_where_a_specific_finding_says_more(cost: float, severity: Severity) -> None:
    """A quarter of a component explained by a finding with a place."""
    anatomy = parts(call=0.6, input_wait=0.4)
    explained = settle.of_components([finding(cost, "component:input-wait")], anatomy, {})
    general = finding(0.3, "component:input-wait", code="GEN003", severity="high")
    cost_of = msgspec.structs.replace(general.cost, basis="modelled")
    (found,) = settle.kept([msgspec.structs.replace(general, cost=cost_of)], explained, anatomy, 1.0)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("cause", "severity", "kept"),
    [
        ("System: scheduling", "info", []),
        ("System: scheduling", "high", ["GEN014"]),
        ("System: allocator", "high", []),
        ("unknown", "high", []),
    ],
)
def test_a_loss_with_a_place_is_not_explained_by_a_slow_machine(
    cause: Cause, severity: Severity, kept: list[str]
) -> None:
    """Other processes that slow everything explain time without a place; a wait with a place stands all the same.

    Page faults are the job's own: they explain what its ops take, whoever returns the memory. They do not say why a
    line of Python takes long.
    """
    anatomy = parts(call=0.4, other_python=0.6)
    machine = msgspec.structs.replace(finding(0.8, code="CFG001"), cause=cause)
    explained = settle.of_components([machine], anatomy, {})
    assert explained["other-python"].share == pytest.approx(0.8)
    general = finding(0.5, "component:other-python", code="GEN014", severity=severity)
    assert [f.code for f in settle.kept([general], explained, anatomy, 1.0)] == kept
    line = msgspec.structs.replace(general, name="time-in-other-python")
    assert bool(settle.kept([line], explained, anatomy, 1.0)) == (severity != "info")


@pytest.mark.parametrize(("share", "kept"), [(0.19, 0), (0.21, 1)])
def test_a_fifth_of_the_steps_is_told_however_short_they_are(share: float, kept: int) -> None:
    """A fifth of steps that are a tenth of the run is two percent of the run, and is told all the same."""
    anatomy = parts(call=1.0 - share, gc=share)
    general = finding(0.0, "component:gc", code="GEN010", severity="info")
    assert len(settle.kept([general], {}, anatomy, 0.1)) == kept


def test_compute_without_an_explanation_stands_as_unexplained_at_its_line() -> None:
    """Steps that only compute are not called healthy: their share of the run is said, with the line of the call."""
    report = reported(train_loop(99 * MS))
    entry = steps_of(report, "call")
    assert (entry.settled_by, entry.code) == ("unexplained", "")
    assert [(place.file, place.line) for place in entry.where] == [("train.py", CALL)]
    assert report.unexplained_ratio == pytest.approx(entry.ratio, abs=0.05)
    assert entry.text.startswith("ops not known: no op trace; ")
    assert "(ops not known: no op trace)" in verdict.unexplained_text(report)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_compute_of_keras_on_another_backend_has_a_line(framework: str) -> None:
    """No line of Keras' call is known there, so that of most batches is named; whose ops they are cannot be known."""
    job = Job()
    job.execution().every(PERIOD, STEPS, dur=90 * MS, arg=1)
    for line, calls in ((9, STEPS), (6, STEPS // 2)):
        pull = job.call(Kind.NEXT, "next", call_file=SCRIPT, call_line=line, call_function="main")
        pull.every(PERIOD, calls, dur=1 * MS, start=91 * MS + line)
    job.framework("keras", "3.15.1", at=1)
    job.framework(framework, "2.13.0", at=2, dur=1)
    job.ended_ns = STEPS * PERIOD
    entry = steps_of(analyze.report_of(job.session()), "call")
    assert entry.settled_by == "unexplained"
    assert [(place.file, place.line) for place in entry.where] == [("train.py", 9)]
    assert entry.text.startswith("ops not known: stepscope takes no op trace of ")


def test_a_component_is_settled_by_its_finding() -> None:
    """The callback that a detector names settles the part of the callbacks."""
    entry = steps_of(reported(called_back(40 * MS)), "callbacks")
    assert (entry.settled_by, entry.code) == ("finding", "HST004")


def test_a_component_without_a_detector_has_a_general_finding() -> None:
    """Keras' own loop takes half of the steps: no detector knows why, and it is told with the call of fit."""
    report = reported(keras_fit(50 * MS))
    entry = steps_of(report, "framework")
    assert (entry.settled_by, entry.code) == ("general", "GEN011")
    (found,) = [f for f in report.findings if f.code == "GEN011"]
    assert (found.severity, found.where[0].line) == ("info", 50)


def test_small_parts_need_no_explanation() -> None:
    """Less than a twentieth of the run is neither explained nor unexplained."""
    assert steps_of(reported(called_back(2 * MS)), "callbacks").settled_by == "small"


def test_general_detectors_are_listed_only_where_they_found_something() -> None:
    """A report's list of checks is about the specific ones."""
    checked = [c.detector for c in reported(keras_fit(50 * MS)).checked if c.detector.startswith("GEN")]
    assert checked == ["GEN011"]


def test_python_of_a_phase_is_explained_by_the_finding_at_its_function() -> None:
    """What a finding names in the steps is not told again where it runs between two loops."""
    job = sampled(after=40 * MS)
    frames = Frame(SCRIPT, "main", 48), Frame(SCRIPT, "report", 8)
    job.samples(range(STEPS * PERIOD, STEPS * PERIOD + 9_000 * MS, 50 * MS), *frames)
    job.function(call_file=SCRIPT, call_line=CALL, call_function="main").every(
        PERIOD, STEPS, dur=60 * MS, start=STEPS * PERIOD + 9_000 * MS
    )
    job.ended_ns = 2 * STEPS * PERIOD + 9_000 * MS
    report = reported(job)
    (entry,) = [e for e in report.ledger if e.phase == "between-steps" and e.maker is None]
    assert (entry.settled_by, entry.code) == ("finding", "HST001")
    assert "GEN013" not in {f.code for f in report.findings}


def test_the_largest_suspicion_is_asked() -> None:
    """Of several open questions a report asks the one with the most at stake, below all findings with a cost."""
    checked = [
        Checked(
            detector=code,
            name="x",
            outcome="undecided",
            capture="ops",
            suspicion=f"{code} is suspected",
            suspected_ratio=ratio,
        )
        for code, ratio in (("GRF021", 0.3), ("GRF009", 0.6), ("GRF011", 0.02))
    ]
    (asked,) = asks.one(checked, [finding(0.5)])
    assert (asked.code, asked.severity, asked.cost.high) == ("GRF009", "ask", 0.6)
    assert asked.remedies[0].what_if == "stepscope trace JOB"
    assert asks.one(checked, [finding(0.0, severity="ask")]) == ()
    assert asks.one(checked[2:], []) == ()


def test_a_detector_without_its_capture_asks() -> None:
    """A pattern in the graph without an op trace is a question in the report, with what it may cost at most."""
    job = keras_fit(90 * MS)
    read(job, one_hot_tables(12_000))
    (asked,) = [f for f in reported(job).findings if f.severity == "ask"]
    assert asked.code == "GRF021"
    assert asked.cost.basis == "unknown"
    assert asked.cost.high == pytest.approx(0.9, abs=0.02)
