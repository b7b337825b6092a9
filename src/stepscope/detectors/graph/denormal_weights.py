"""Numbers next to zero make the multiplications of a model many times as slow.

## What it detects
Models that ONNX Runtime runs on a CPU whose weights are denormal in part: below 1.2e-38 in single precision, as weight
decay leaves them in filters that died. In a profile of ONNX Runtime: a product or convolution that takes at least
twenty times as long for each multiplication as another one of its type and of similar size.

## Why it matters
Most CPUs compute with such numbers in microcode, a hundred times as slowly. The layers are the same as in a checkpoint
that is fast, so no list of ops says why.

## Evidence
`denormal_weights`, `denormal_ratio`: number and share in the file. `run_ratio`: share of the steps in runs of the
model. In a profile `times`: time for a multiplication over that of the fastest node; `slow_ratio`: share of the steps.

Measured (public case 01, an Intel CPU, ONNX Runtime 1.32.0): a tenth of the filters of two of five convolutions at
1e-39 made each of the two 1,600 times as slow, and a frame 143 times.

## Known limits
The file is looked for in the job's working directory and with the source that loads it, as the job ends; one that was
written later, has more than 512 MB or keeps its weights in other files is not read. What the numbers of a run cost is
not known from the file: how much depends on the CPU. Results that become denormal between layers, NaN and infinity are
not seen there; in a profile whatever is slow by its values is. Nodes that use each weight for fewer than eight rows are
compared among themselves: reading the weights takes their time. A program that names the setting is taken to use it.

## Remedy
`SessionOptions.add_session_config_entry("session.set_denormal_as_zero", "1")`, or round weights below 1e-30 to zero
before the export.

## References
ONNX Runtime issues 15630, 13968, 7448; Intel 64 and IA-32 Architectures Optimization Reference Manual, denormals and
flush-to-zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import slow_values
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import trace_evidence
from stepscope.detectors.signals import HINTS
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.slow_values import LoadedModel, SlowNode
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_denormal_ratio: Ratio = Ratio(0.001)
    """Of the weights of one node: a CPU that takes 150 cycles for one then takes a tenth longer, or more."""
    min_run_ratio: Ratio = Ratio(0.1)
    """Of the steady wall time in runs of the model."""
    min_times: float = 20.0
    """Time for a multiplication over that of another node of the type: small and strided ones take up to ten times."""
    min_slow_ratio: Ratio = Ratio(0.1)
    """Of the traced steps in such nodes."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding for each model, or one for a profile."""
    if view.steps is None:
        yield from _in_profile(view, params)
        return
    if slow_values.flushes(view):
        return
    for loaded in slow_values.files(view):
        worst = max((one.denormal / one.floats for one in loaded.weights.nodes), default=0.0)
        if worst >= params.min_denormal_ratio and loaded.ratio >= params.min_run_ratio:
            yield _of_file(view, loaded, params)


def _of_file(view: StepsView, loaded: LoadedModel, params: Params) -> Seen:
    weights, made = loaded.weights, loaded.made
    ratio = weights.denormal / weights.floats
    names = ", ".join(one.node for one in weights.nodes[:3])
    return Seen(
        title=f"{format_ratio(ratio)} of the weights of {weights.model} are denormal, which makes their products many "
        f"times as slow on most CPUs: {names}",
        severity="medium",
        confidence=0.8,
        where=(view.place(made.file, made.line, function=made.function),) if made.file else (),
        evidence=(
            Evidence(metric="denormal_ratio", value=ratio, unit="ratio", threshold=params.min_denormal_ratio),
            Evidence(metric="denormal_weights", value=weights.denormal, unit="weights"),
            Evidence(metric="run_ratio", value=loaded.ratio, unit="ratio", threshold=params.min_run_ratio),
        ),
        cost=cost_of(view, 0.0, high=loaded.ratio, basis="unknown"),
        remedies=(_FLUSH, _ROUND),
        explanation="The model's file was read; what its numbers cost depends on the CPU, and one run with the setting "
        "shows it.",
    )


def _in_profile(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    trace = view.traces.main
    found = slow_values.nodes(trace, params.min_times) if trace is not None else None
    if trace is None or found is None:
        yield Undecided(missing=Signal.RUN, hint=HINTS[Signal.RUN])
        return
    ratio = sum(one.ratio for one in found)
    if ratio >= params.min_slow_ratio:
        yield _of_nodes(view, trace, found, min(1.0, ratio))


def _of_nodes(view: SessionView, trace: OpView, found: tuple[SlowNode, ...], ratio: float) -> Seen:
    times = max(one.times for one in found)
    saved = sum(one.ratio * (1 - 1 / one.times) for one in found)
    names = ", ".join(f"{one.name} ({one.op})" for one in found[:3])
    return Seen(
        title=f"denormal numbers slow down {names}: {format_ratio(ratio)} of the step, up to {times:,.0f} times as "
        "long for each multiplication as another one of the type",
        confidence=0.7,
        evidence=(
            trace_evidence.evidence(trace, "slow_ratio", ratio, "ratio"),
            trace_evidence.evidence(trace, "times", times, "times"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, saved, low=0.0, high=ratio, basis="modelled"),
        remedies=(_FLUSH, _ROUND),
        explanation="Sizes are those of the profile. The other nodes ran meanwhile, on the same CPUs.",
    )


def _unseen(view: SessionView) -> str:
    """Why nothing is known of the weights; "" if a model's file was read."""
    if view.steps is None:
        return ""
    runs = {row.name.text for row in view.named_times(Kind.INFERENCE)}
    if runs & {one.model for one in view.session.manifest.models}:
        return ""
    return "no file of the model was read near the job"


_FLUSH = Remedy(
    id="denormal-as-zero",
    text='treat denormal numbers as zero: SessionOptions.add_session_config_entry("session.set_denormal_as_zero", "1")',
)
_ROUND = Remedy(id="round-tiny-weights", text="or round weights below 1e-30 to zero before the model is exported")


DETECTOR = Detector(
    code="GRF023",
    name="denormal-weights",
    cause="Hardware: hardware and code mismatch",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    instead=frozenset({Signal.OP_TRACE}),
    frameworks=frozenset({"onnxruntime"}),
    applies=_unseen,
    params=Params(),
    detect=detect,
)
