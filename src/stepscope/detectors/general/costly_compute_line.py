"""One line of the user's code makes the ops that take much of the compiled step, and they are no dense products.

## What it detects
A source line whose ops, with their gradients, take a fifth of the steps or more, by an op trace, while most of that
time is in ops that move, convert, gather, sort or transform data element by element.

## Why it matters
Matrix products and convolutions are what most models have to compute. Ops around them move each value through memory
without computing much with it, and are often needed once instead of in each step, or could be fused.

## Evidence
`line_ratio`: share of the step in the ops of the line: its share of all op time, times the compute's share of the
steady wall time. `part of TYPE`: share of the line's op time in ops of a type. `call_ratio`: share of the steady wall
time in compute.

## Known limits
Reported only where no specific finding explains the time. Op times of threads that run at the same time are summed, so
the share is a share of work. Whether the model needs these ops is not known, and no saving is claimed. Lines of dense
products and the optimizer's updates are not reported: the ledger says whether they are as fast as they can be.

## Remedy
Compute once before the training, or in the input pipeline, what does not depend on the weights; let XLA fuse the rest
(`jit_compile=True`).

## References
TensorFlow guide on XLA; FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.general import compute_lines
from stepscope.detectors import general_loss
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.compute_lines import ComputeLine
    from stepscope.derive.steps_view import StepsView

DENSE = ("matmul", "conv", "einsum", "rnn", "lstm", "gru")
"""Parts of the names of op types that multiply and add, in lower case, those fused or made by oneDNN included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the steady wall time: a line with a fifth of the step is worth a look (docs/decisions/0042)."""
    min_other_ratio: Ratio = Ratio(0.50)
    """Of the line's op time in ops that are neither dense products nor an optimizer's updates."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the line with the most op time."""
    found = view.get(compute_lines.build)
    compute = view.anatomy.ratio("call")
    wanted = [
        line for line in (found.lines if found is not None else ()) if _other_ratio(line) >= params.min_other_ratio
    ]
    if not wanted or wanted[0].ratio * compute < params.min_ratio:
        return
    top = wanted[0]
    ratio = top.ratio * compute
    function = f" of {top.place.function}" if top.place.function not in {"", "<module>"} else ""
    yield Seen(
        title=f"the ops of line {top.place.line}{function} take {format_ratio(ratio)} of the steps, most of it in "
        f"{top.types_text}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        where=(top.place,),
        evidence=(
            Evidence(metric="line_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="call_ratio", value=compute, unit="ratio", refs=("component:call",)),
            *(Evidence(metric=f"part of {name}", value=part, unit="ratio") for name, part in top.types),
        ),
        cost=cost_of(view, 0.0, high=ratio, basis="unknown"),
        remedies=(
            Remedy(
                id="out-of-the-step",
                text="compute what does not depend on the weights once before the training, or in the input pipeline",
            ),
            Remedy(
                id="fuse-ops", text="let XLA fuse the rest: tf.function(jit_compile=True), compile(jit_compile=True)"
            ),
        ),
        explanation="These ops move or transform data rather than multiply and add; the line's gradients count with "
        "it.",
    )


def _other_ratio(line: ComputeLine) -> float:
    """Share of the line's op time that is in neither dense products, by its main types, nor updates."""
    dense = sum(part for name, part in line.types if any(word in name.lower() for word in DENSE))
    return 1.0 - max(dense, line.updates_ratio)


DETECTOR = Detector(
    code="GEN001",
    name="costly-compute-line",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.OP_TRACE, Signal.NODES}),
    params=Params(),
    detect=detect,
)
