"""A set of detectors is run whole, whatever becomes of one of them, and nothing is left out of what was checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, Job
from tests.detectors.jobs import keras_fit, nothing, pulled, saving, train_loop
from tests.report.samples import finding

from stepscope.derive.view import SessionView
from stepscope.detectors.base import HINTS, Detector, Seen, Signal, cost_of, present, rank, run
from stepscope.detectors.registry import ALL
from stepscope.tables.findings import severity_of


def _breaks(view: SessionView, params: object) -> Iterator[Seen]:
    del view, params
    raise ZeroDivisionError("no wall time")


BROKEN: Detector[object] = Detector(
    code="XXX001", name="broken-detector", needs=frozenset({Signal.STEPS}), params=None, detect=_breaks
)


def test_one_failure_does_not_stop_the_rest() -> None:
    """A detector that raises is reported as failed, with a diagnostic DX030, and all others still say their word."""
    findings, checked, failures = run([BROKEN, *ALL, BROKEN], pulled(60 * MS).view())
    assert [f.code for f in findings] == ["INP001"]
    assert [c.detector for c in checked] == ["XXX001", *(d.code for d in ALL), "XXX001"]
    assert [c.outcome for c in checked if c.detector == "XXX001"] == ["failed", "failed"]
    assert checked[0].hint == "no wall time"
    assert [f.code for f in failures] == ["DX030", "DX030"]
    assert failures[0].text == "XXX001 failed: ZeroDivisionError: no wall time"


ENDED = "MEM004"
"""Needs to know only how the job ended: clear for a job that did not die."""


def test_a_job_without_steps_leaves_all_not_applicable() -> None:
    """Where nothing repeats, every detector says that it cannot look and what would help."""
    findings, checked, failures = run(ALL, nothing().view())
    assert (findings, failures) == ((), ())
    assert {c.outcome for c in checked if c.detector != ENDED} == {"not-applicable"}
    whole = {"CFG001", "MEM002", "EXP001", "EXP002"}  # look at processes without steps, too, where one was attached to
    lacking = {"steps", "op trace of some steps", "op trace with GPU or TPU work"}
    of_gpus = "this host has no NVIDIA GPU"
    elsewhere = {of_gpus, *(c.hint for c in checked if c.detector.startswith("DST"))}
    of_stacks = ("HNG001", "INI002", ENDED)
    missing = {c.detector: c.missing for c in checked if c.detector not in of_stacks and c.hint not in elsewhere}
    assert all(lacking & set(found) or (code in whole and found) for code, found in missing.items())
    assert {c.hint for c in checked if c.detector.startswith("GPU")} == {of_gpus}
    assert any("stepscope.step()" in c.hint for c in checked)


def test_an_empty_session_leaves_all_not_applicable() -> None:
    """A session without any record is no reason to fail."""
    _, checked, failures = run(ALL, Job().view())
    assert failures == ()
    assert {c.outcome for c in checked if c.detector != ENDED} == {"not-applicable"}


def test_signals_are_those_that_the_session_holds() -> None:
    """Each signal is present exactly where its data is."""
    running = nothing()
    running.exit_code = None
    assert present(running.view()) == frozenset()
    assert present(nothing().view()) == {Signal.ENDED}
    held = {Signal.ENDED, Signal.STEPS, Signal.TRACES, Signal.BATCHES, Signal.INPUT_WAIT}
    assert present(train_loop(20 * MS).view()) == held
    assert present(keras_fit(20 * MS).view()) == {Signal.ENDED, Signal.STEPS, Signal.BATCHES}
    job = keras_fit(20 * MS)
    job.machine(10)
    assert present(job.view()) == {Signal.ENDED, Signal.STEPS, Signal.BATCHES, Signal.HOST, Signal.MEMORY}


def test_every_signal_has_a_hint() -> None:
    """No signal can be missing without a word on how to get it."""
    assert set(HINTS) == set(Signal)
    assert all(HINTS.values())


def test_findings_are_ranked_by_cost() -> None:
    """The costliest finding comes first, whatever the order of the detectors."""
    job = saving(30 * MS, calls=98, every=1)
    job.nexts().every(100 * MS, 100, dur=50 * MS, start=50 * MS, arg=job.iterator())
    for order in (ALL, ALL[::-1]):
        findings, _, _ = run(order, job.view())
        assert [f.code for f in findings] == ["INP001", "HST006"]
        assert findings[0].cost.ratio > findings[1].cost.ratio


def test_a_question_comes_after_what_costs_something() -> None:
    """What is known to cost time comes first, the machine's findings too; then a question, then information."""
    machine = finding("CFG001", 0.16, where=(), introduced_stage="environment setting", remedies=())
    ranked = sorted([finding("GEN003", 0.0), finding("INP001", 0.0, severity="ask"), machine], key=rank)
    assert [one.code for one in ranked] == ["CFG001", "INP001", "GEN003"]


@given(ratio=st.floats(-2, 2), low=st.none() | st.floats(-2, 2), high=st.none() | st.floats(-2, 2))
def test_a_cost_is_a_share_within_its_interval(ratio: float, low: float | None, high: float | None) -> None:
    """Costs lie within 0 and 1 and within their interval, whatever a detector computes."""
    cost = cost_of(_VIEW, ratio, low=low, high=high)
    assert 0 <= cost.low <= cost.ratio <= cost.high <= 1
    assert 0 <= cost.ns_per_step <= 100 * MS


_VIEW = train_loop(20 * MS).view()


def test_severity_follows_from_cost() -> None:
    """High from 25 %, medium from 10 %, low from 3 %, else info."""
    edges = {0.25: "high", 0.2499: "medium", 0.10: "medium", 0.0999: "low", 0.03: "low", 0.0299: "info", 0.0: "info"}
    assert {ratio: severity_of(ratio) for ratio in edges} == edges


def test_parameters_are_frozen() -> None:
    """A detector is a value: its thresholds cannot be changed from outside."""
    for detector in ALL:
        name = detector.params.__struct_fields__[0]
        try:
            setattr(detector.params, name, 0)
        except (AttributeError, TypeError):
            continue
        _fail(detector.code)


def _fail(code: str) -> NoReturn:
    raise AssertionError(f"the parameters of {code} can be changed")
