"""Detectors, how they run, and how two findings about one root become one (``yields_to``)."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.cluster import servers, traced_ranks, waits
from stepscope.causes.host import growing_graph, no_progress
from stepscope.causes.job import hidden_wait, purpose
from stepscope.causes.system import contention, gpu, memory_leak, resources, steady_page_faults
from stepscope.derive import job_framework, steps_view, unmeasured
from stepscope.derive.python import stack_samples
from stepscope.detectors import lost_records, one_step, remedies
from stepscope.detectors.costs import compute_ratio, cost_of, in_steps, step_ns
from stepscope.detectors.ranking import meet, rank
from stepscope.detectors.signals import HINTS, IN_FILES, OF_DEVICES, Signal, given, hint, imported_hint
from stepscope.model.frameworks import NOT_FOR, TF_DATA
from stepscope.model.log.events import Traced
from stepscope.tables.errors import DamagedError
from stepscope.tables.findings import Checked, Diagnostic, Finding, severity_of
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.derive.job_framework import JobFramework
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView
    from stepscope.detectors.remedies import Fact
    from stepscope.tables.findings import Cause, Cost, Evidence, PipelineStage, Remedy, Severity, Stage, Symptom
    from stepscope.tables.place import Place

P = TypeVar("P")


class Undecided(Struct, frozen=True, kw_only=True):
    """A detector has a suspicion that it can neither confirm nor clear."""

    missing: Signal
    hint: str


class CaptureRequest(Struct, frozen=True, kw_only=True):
    """A detector has a suspicion that a capture would decide, or a finding whose cause a capture would name. Undecided
    until the session holds one.

    Under ``run`` the sidecar makes the capture as soon as the budget allows; otherwise ``hint`` says how to get one.
    """

    kind: str
    """ops | native"""
    missing: Signal
    hint: str
    suspicion: str = ""
    """What is suspected, in words that can stand alone; "" if there is only a question about a finding."""
    suspected_ratio: float = 0.0
    """Largest share of the steady wall time that it may cost; 0: not known."""
    where: tuple[Place, ...] = ()
    """Places of what is suspected."""


class Seen(Struct, frozen=True, kw_only=True):
    """A finding without the parts that its ``Detector`` states for all of its findings.

    If ``severity`` or a part of the classification is given, it applies to this finding; otherwise ``cost`` decides the
    severity, and the classification is the detector's.
    """

    title: str
    confidence: float
    cost: Cost
    where: tuple[Place, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    """What could be done, the best first; offered are those whose conditions hold (``detectors.remedies``)."""
    about: frozenset[Fact] = frozenset()
    """What is true of what the finding is about, for these conditions."""
    explanation: str = ""
    severity: Severity | None = None
    symptom: Symptom | None = None
    cause: Cause | None = None
    introduced_stage: Stage | None = None
    exposed_stage: Stage | None = None
    pipeline_stage: PipelineStage | None = None


class Detector(Struct, Generic[P], frozen=True, kw_only=True):
    """A detector is a value. ``detect`` is pure; ``since`` is the first version that has it."""

    code: str
    name: str
    symptom: Symptom = "Time: slow execution time"
    cause: Cause = "unknown"
    """Unknown: each finding states its own; the same for the stages."""
    introduced_stage: Stage = "unknown"
    exposed_stage: Stage | None = None
    """None: training, or prediction if the job does not train."""
    pipeline_stage: PipelineStage = "none"
    needs: frozenset[Signal]
    params: P
    instead: frozenset[Signal] = frozenset()
    """Signals that serve in place of ``needs``."""
    detect: Callable[[StepsView, P], Iterator[Seen | Undecided | CaptureRequest]]
    """Given a ``StepsView`` wherever there are steps; a detector that does not need them takes a ``SessionView``."""
    yields_to: frozenset[str] = frozenset()
    """Codes that are more specific about the same root: if one of their findings shares a place with this detector's,
    only that finding is reported."""
    frameworks: frozenset[str] = frozenset()
    """Parts of a job that it can look at: what computes, Keras, tf.data (``derive.job_framework``). Empty: any that
    give its signals."""
    applies: Callable[[SessionView], str] | None = None
    """Why it does not apply to this job at all (there is no GPU); "" if it applies. Nothing is missing then."""
    asks: Callable[[SessionView], str] | None = None
    """If only an op trace is missing: the reason why this job needs one, "" if there is none."""
    of_launches: bool = False
    """Whether it judges how fast the host launches work: not of one step alone (``one_step``)."""
    since: str = "0.1"
    status: str = "preview"

    @property
    def doc(self) -> str:
        """The docstring of its module."""
        return inspect.cleandoc(sys.modules[self.detect.__module__].__doc__ or "")


def present(view: SessionView) -> frozenset[Signal]:
    """Signals that the session holds."""
    trace, manifest = view.traces.main, view.session.manifest
    there = {
        Signal.OP_TRACE: trace is not None,
        Signal.DEVICE_TRACE: trace is not None and trace.device >= 0,
        Signal.PROGRAMS: trace is not None and any(program.ops for program in trace.trace.programs),
        Signal.STACKS: view.get(no_progress.build) is not None,
        Signal.HOST: view.get(contention.build) is not None,
        Signal.FAULTS: view.get(steady_page_faults.build) is not None,
        Signal.NATIVE: any(one.unit != "bytes" for one in view.session.stacks),
        Signal.EXPERIMENT: view.session.experiment is not None,
        Signal.MEMBERS: view.get(waits.build) is not None or bool(view.get(servers.build)),
        Signal.RANKS: view.get(traced_ranks.build) is not None,
        Signal.ENDED: manifest.exit_code is not None or manifest.memory_killed,
        Signal.MEMORY_LOOKS: bool(view.session.memory_looks),
    }
    there |= _of_steps(with_steps) if (with_steps := steps_view.of(view)) is not None else {}
    return frozenset(signal for signal, held in there.items() if held)


def _of_steps(view: StepsView) -> dict[Signal, bool]:
    """Which of the signals a session with steps holds that no other has."""
    worker = view.worker
    return {
        Signal.STEPS: True,
        Signal.SAMPLES: stack_samples.sampled(view.steps),
        Signal.TRACES: bool(worker.all(Traced))
        or (unmeasured.maker(view) != "jax" and bool((worker.records.kind == Kind.FUNCTION).any())),
        Signal.BATCHES: unmeasured.input_seen(view),
        Signal.INPUT_WAIT: not view.get(hidden_wait.build),
        Signal.GRAPHS: view.get(growing_graph.build) is not None,
        Signal.NODES: view.graphs is not None,
        Signal.MEMORY: view.get(memory_leak.build) is not None,
        Signal.RESOURCES: view.get(resources.build) is not None,
        Signal.GPU: bool(view.get(gpu.build)),
        Signal.LIVE_BYTES: any(gpu.live_bytes > 0 for gpu in view.get(gpu.build)),
    }


def run(
    detectors: Sequence[Detector[object]], view: SessionView
) -> tuple[tuple[Finding, ...], tuple[Checked, ...], tuple[Diagnostic, ...]]:
    """Run all detectors; the failure of one never stops the rest.

    Returns:
        Findings as ``rank`` orders them; what became of each detector; what failed.
    """
    have, with_steps = present(view), steps_view.of(view)
    findings: list[Finding] = []
    checked: list[Checked] = []
    failures: list[Diagnostic] = []
    for detector in detectors:
        blind = _blind(detector, view, have)
        if blind is not None:
            checked.append(blind)
            continue
        try:
            results = list(detector.detect(with_steps or cast("StepsView", view), detector.params))
        except DamagedError:
            raise
        except Exception as error:  # noqa: BLE001 - one of the three walls: recorded as DX030
            failures.append(Diagnostic(code="DX030", text=f"{detector.code} failed: {type(error).__name__}: {error}"))
            checked.append(_checked(detector, "failed", [], str(error)))
            continue
        if detector.of_launches and results and one_step.only_one(view):
            results = [Undecided(missing=Signal.DEVICE_TRACE, hint=one_step.HINT)]
        mine = [_finding(detector, r, view) for r in results if isinstance(r, Seen)]
        open_questions = [r for r in results if not isinstance(r, Seen)]
        findings.extend(mine)
        if open_questions:
            question = next((q for q in open_questions if isinstance(q, CaptureRequest)), open_questions[0])
            capture = question.kind if isinstance(question, CaptureRequest) else ""
            outcome = "found" if mine else "undecided"
            asked = _checked(detector, outcome, [question.missing], question.hint, capture)
            checked.append(_asking(asked, question) if isinstance(question, CaptureRequest) else asked)
        else:
            checked.append(_checked(detector, "found" if mine else "clear", [], ""))
    kept = _one_per_root(detectors, findings)
    ranked = tuple(sorted(kept, key=rank))
    outcomes = lost_records.withheld([_told_by(c, findings, kept) for c in checked], view)
    return ranked, outcomes, tuple(failures)


def _blind(detector: Detector[object], view: SessionView, have: frozenset[Signal]) -> Checked | None:
    """Why a detector cannot look, or does not apply; None if it can look."""
    imported = view.session.manifest.mode == "import"
    lacking = frozenset() if detector.instead and detector.instead <= have else detector.needs - have
    missing = sorted(lacking, key=lambda s: (s is not Signal.STEPS, s.name))
    if imported and not IN_FILES.issuperset(missing):
        return _checked(detector, "not-applicable", [Signal.RUN], HINTS[Signal.RUN])
    if not imported and (why := _not_here(detector, view, missing)):
        return _checked(detector, "not-applicable", [], why)
    if not missing:
        return None
    said = imported_hint(missing[0], view) if imported else hint(missing[0], view)
    if missing == [Signal.OP_TRACE] and detector.asks is not None and (what := detector.asks(view)):
        text = f"{what}: {said}"
        ratio = compute_ratio(view)
        ask = CaptureRequest(kind="ops", missing=Signal.OP_TRACE, hint=text, suspicion=what, suspected_ratio=ratio)
        return _asking(_checked(detector, "undecided", missing, text, "ops"), ask)
    return _checked(detector, "not-applicable", missing, said)


def _not_here(detector: Detector[object], view: SessionView, missing: Sequence[Signal]) -> str:
    """Why a detector does not apply to a job, or to the machine that it ran on; "" if it does."""
    if why := _not_for(detector, view.get(job_framework.build), missing):
        return why
    if detector.applies is not None and (why := detector.applies(view)):
        return why
    return gpu.no_gpu(view) if not OF_DEVICES.isdisjoint(missing) else ""


def _not_for(detector: Detector[object], framework: JobFramework | None, missing: Sequence[Signal]) -> str:
    """``not applicable to PyTorch``: what the detector looks at is not there, or nothing that it needs is recorded."""
    if framework is None:
        return ""
    there = not detector.frameworks or not framework.parts.isdisjoint(detector.frameworks)
    pipelines = TF_DATA in detector.frameworks
    if there and all(given(signal, framework, pipelines=pipelines) for signal in missing):
        return ""
    return f"{NOT_FOR}{framework.title}"


def _finding(detector: Detector[object], seen: Seen, view: SessionView) -> Finding:
    return Finding(
        code=detector.code,
        name=detector.name,
        title=seen.title,
        severity=seen.severity or severity_of(seen.cost.ratio),
        confidence=seen.confidence,
        symptom=seen.symptom or detector.symptom,
        cause=seen.cause or detector.cause,
        introduced_stage=seen.introduced_stage or detector.introduced_stage,
        exposed_stage=seen.exposed_stage or detector.exposed_stage or _exposed(view),
        pipeline_stage=(seen.pipeline_stage or detector.pipeline_stage) if _has_steps(view) else "none",
        where=seen.where,
        evidence=seen.evidence,
        cost=seen.cost,
        remedies=remedies.fitting(view, seen.remedies, seen.about),
        explanation=seen.explanation,
    )


def _has_steps(view: SessionView) -> bool:
    """Whether there are steps of which a cost can be a share; without any it is one of the time that was measured."""
    return view.steps is not None or view.traces.main is not None


def _exposed(view: SessionView) -> Stage:
    """The stage whose time is lost. An imported trace does not say whether it trained."""
    if view.steps is None:
        return "unknown"
    return "training" if view.get(purpose.trains) else "prediction"


def _one_per_root(detectors: Sequence[Detector[object]], findings: list[Finding]) -> list[Finding]:
    """The findings without those that yield to another finding about the same place.

    None yields to a piece of information that is less than half as large: a line whose imports or traces are worth a
    word may be what each step spends its time on.
    """
    yields_to = {d.code: d.yields_to for d in detectors}

    def yields(one: Finding, other: Finding) -> bool:
        small = other.severity == "info" and 2 * other.cost.high < one.cost.high
        return other.code in yields_to[one.code] and not small and meet(one, other)

    return [f for f in findings if not any(yields(f, g) for g in findings)]


def _told_by(checked: Checked, findings: list[Finding], kept: list[Finding]) -> Checked:
    """A detector all of whose findings yielded is clear: another detector reports the same root."""
    if checked.outcome != "found" or any(f.code == checked.detector for f in kept):
        return checked
    mine = [f for f in findings if f.code == checked.detector]
    other = sorted({g.code for g in kept for f in mine if meet(f, g)})
    hint = f"same place as {', '.join(other)}, which is more specific"
    return Checked(detector=checked.detector, name=checked.name, outcome="clear", hint=hint)


def _checked(detector: Detector[object], outcome: str, missing: list[Signal], hint: str, capture: str = "") -> Checked:
    return Checked(
        detector=detector.code,
        name=detector.name,
        outcome=outcome,  # type: ignore[arg-type]
        missing=tuple(s.value for s in missing),
        hint=hint,
        capture=capture,
    )


def _asking(checked: Checked, request: CaptureRequest) -> Checked:
    """With the suspicion that a capture would decide."""
    return replace(checked, suspicion=request.suspicion, suspected_ratio=request.suspected_ratio, where=request.where)


__all__ = [
    "HINTS",
    "CaptureRequest",
    "Detector",
    "Seen",
    "Signal",
    "Undecided",
    "compute_ratio",
    "cost_of",
    "in_steps",
    "meet",
    "present",
    "rank",
    "run",
    "severity_of",
    "step_ns",
]
