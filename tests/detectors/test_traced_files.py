"""What detectors say of files that other tools recorded: in the words of their framework, no more than they show."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import Job
from tests.detectors.traced_jobs import HEAD, many_kernels, on_gpu

from stepscope.derive.view import SessionView
from stepscope.detectors import registry
from stepscope.detectors.base import Signal, run
from stepscope.detectors.signals import IMPORTED_HINTS
from stepscope.model.session.session import Manifest, Session, StoredOpTrace
from stepscope.tables.findings import Checked, Diagnostic, Finding
from stepscope.tables.optrace import OpTrace, TraceSource


def _run(code: str, view: SessionView) -> tuple[tuple[Finding, ...], tuple[Checked, ...], tuple[Diagnostic, ...]]:
    """Run one detector."""
    return run([detector for detector in registry.ALL if detector.code == code], view)


def _imported(*traces: OpTrace) -> SessionView:
    stored = [StoredOpTrace(name="import-001", worker="", source=t.source, load=partial(_same, t)) for t in traces]
    return SessionView(Session(manifest=Manifest(mode="import"), op_traces=stored))


def _same(trace: OpTrace) -> OpTrace:
    return trace


def _trace_of(job: Job) -> OpTrace:
    (stored,) = job.view().session.op_traces
    return stored.load()


@pytest.mark.parametrize(("form", "said"), [("xplane", "jit_compile=True"), ("kineto", "torch.compile")])
def test_remedies_speak_of_the_framework(form: str, said: str) -> None:
    trace = _trace_of(on_gpu([HEAD], launching=40_000))
    view = _imported(replace(trace, source=replace(trace.source, format=form)))
    (finding,), _, _ = _run("KRN001", view)
    assert said in finding.remedies[0].text


def test_an_imported_session_misses_one_thing() -> None:
    """The run. No hint speaks of samples, hosts or short runs; what a file may hold is looked at."""
    findings, checked, failures = run(registry.ALL, _imported(_trace_of(many_kernels(18))))
    assert failures == ()
    assert [f.code for f in findings] == ["KRN005"]
    said = {c.missing: c.hint for c in checked if c.outcome == "not-applicable"}
    assert said == {("measured run",): "this session was imported; measure the job with stepscope run"}


def test_a_file_without_steps_says_so() -> None:
    made = Maker()
    made.op(made.main, "a/MatMul:MatMul", 0, 10)
    _, checked, _ = run(registry.ALL, _imported(made.trace()))
    (recompilation,) = [c for c in checked if c.detector == "GRF010"]
    assert recompilation.missing == ("op trace of some steps",)
    assert recompilation.hint == IMPORTED_HINTS[Signal.OP_TRACE]


def _launching(*steps: float) -> OpTrace:
    """Steps of PyTorch on a GPU that launch three kernels, one of which takes so long to launch; the last is cut."""
    made = Maker(TraceSource(format="kineto"))
    stream = made.stream(made.device())
    at = 0.0
    for i, slow in enumerate((*steps, 10)):
        made.step(at, slow + 900, i)
        for k, called in enumerate((10, 200, slow + 400)):
            made.launch(made.main, stream, f"kernel_{k}", at + called, at + called + 5, 150)
        made.span(made.main, "aten::add_:add_", at + 380, slow)
        at += slow + 1000
    return made.trace()


@pytest.mark.parametrize(("steps", "outcome"), [([6500], "undecided"), ([6500, 6400, 6600], "found")])
def test_one_cold_step_of_a_file_is_no_launch_bound_training(steps: list[float], outcome: str) -> None:
    """The first use of a kernel takes milliseconds; several such steps are a finding."""
    found, (checked,), failures = _run("KRN001", _imported(_launching(*steps)))
    assert failures == ()
    assert (len(found), checked.outcome) == (int(outcome == "found"), outcome)
    assert ("warm-up" in checked.hint) == (outcome == "undecided")
