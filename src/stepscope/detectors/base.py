"""What a detector is, the signals it may need, and how a set of detectors is run."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from stepscope.model.events import Traced
from stepscope.model.finding import Checked, Cost, Diagnostic, Finding, severity_of
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.derive.view import SessionView

P = TypeVar("P")


class Signal(Enum):
    """A kind of data that a session may hold. The value is what a report calls it."""

    STEPS = "steps"
    SAMPLES = "stack samples"
    INPUT_WAIT = "input wait inside of the compiled step"
    TRACES = "traces of tf.functions"
    HOST = "CPU samples of the host"


HINTS = {
    Signal.STEPS: "nothing repeats at least four times; stepscope.step() marks steps of any loop",
    Signal.SAMPLES: "the run was too short for samples (20 a second)",
    Signal.INPUT_WAIT: "needs TensorFlow 2.17 or newer with tf.data's autotune on",
    Signal.TRACES: "no tf.function was seen",
    Signal.HOST: "the steady part must last at least 2 s (samples once a second)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A detector has a suspicion that it can neither confirm nor clear."""

    missing: Signal
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector(Generic[P]):
    """A detector is a value. ``detect`` is pure; ``since`` is the version that brought it."""

    code: str
    name: str
    needs: frozenset[Signal]
    params: P
    detect: Callable[[SessionView, P], Iterator[Finding | Undecided]]
    since: str = "0.1"
    status: str = "preview"

    @property
    def doc(self) -> str:
        """Documentation: the docstring of its module."""
        return inspect.cleandoc(sys.modules[self.detect.__module__].__doc__ or "")


def present(view: SessionView) -> frozenset[Signal]:
    """The signals that the session holds."""
    found = set()
    if view.steps is not None:
        found.add(Signal.STEPS)
        if view.sampled:
            found.add(Signal.SAMPLES)
        if view.steps.worker.all(Traced) or (view.steps.worker.records.kind == Kind.FUNCTION).any():
            found.add(Signal.TRACES)
        if not view.hidden_wait:
            found.add(Signal.INPUT_WAIT)
        if view.contention is not None:
            found.add(Signal.HOST)
    return frozenset(found)


def run(
    detectors: Sequence[Detector[object]], view: SessionView
) -> tuple[tuple[Finding, ...], tuple[Checked, ...], tuple[Diagnostic, ...]]:
    """Run all detectors; the failure of one never stops the rest.

    Returns:
        Findings ranked by cost; what became of each detector; what failed.
    """
    have = present(view)
    findings: list[Finding] = []
    checked: list[Checked] = []
    failures: list[Diagnostic] = []
    for detector in detectors:
        missing = sorted(detector.needs - have, key=lambda s: s.name)
        if missing:
            checked.append(_checked(detector, "not-applicable", missing, HINTS[missing[0]]))
            continue
        try:
            results = list(detector.detect(view, detector.params))
        except Exception as error:  # noqa: BLE001 - one of the three walls (STYLE 4.4): recorded as DX030
            failures.append(Diagnostic(code="DX030", text=f"{detector.code} failed: {type(error).__name__}: {error}"))
            checked.append(_checked(detector, "failed", [], str(error)))
            continue
        mine = [r for r in results if isinstance(r, Finding)]
        open_questions = [r for r in results if isinstance(r, Undecided)]
        findings.extend(mine)
        if mine:
            checked.append(_checked(detector, "found", [], ""))
        elif open_questions:
            checked.append(_checked(detector, "undecided", [open_questions[0].missing], open_questions[0].hint))
        else:
            checked.append(_checked(detector, "clear", [], ""))
    ranked = tuple(sorted(findings, key=lambda f: (-f.cost.ratio, f.code)))
    return ranked, tuple(checked), tuple(failures)


def _checked(detector: Detector[object], outcome: str, missing: list[Signal], hint: str) -> Checked:
    return Checked(
        detector=detector.code,
        name=detector.name,
        outcome=outcome,  # type: ignore[arg-type]
        missing=tuple(s.value for s in missing),
        hint=hint,
    )


def _clip(value: float) -> float:
    return float(min(1.0, max(0.0, value)))


def cost_of(
    view: SessionView, ratio: float, *, low: float | None = None, high: float | None = None, basis: str = "measured"
) -> Cost:
    """Cost of a share of the steady wall time, within 0-1, with nanoseconds of the mean step."""
    steps = view.steps
    mean = steps.steady_ns / steps.steady_count if steps and steps.steady_count else 0.0
    return Cost(
        ratio=_clip(ratio),
        low=_clip(ratio if low is None else min(low, ratio)),
        high=_clip(ratio if high is None else max(high, ratio)),
        ns_per_step=int(_clip(ratio) * mean),
        basis=basis,  # type: ignore[arg-type]
    )


__all__ = ["HINTS", "Detector", "Signal", "Undecided", "cost_of", "present", "run", "severity_of"]
