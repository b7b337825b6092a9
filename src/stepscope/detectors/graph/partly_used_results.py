"""The compiled step computes results of which it uses a small part.

## What it detects
A result of the step's graph from which all consumers only select - a slice, a diagonal, some rows - so that at most
half of its elements are used, with the element-wise ops and the product behind it that serve nothing else, if the
unused part takes a tenth of the step or more. Also a Jacobian of all samples' results by all samples' inputs
(`tape.jacobian`), of which the blocks on the diagonal are used.

## Why it matters
The scores of all positions where only the last one is read, the distances of all pairs where only the diagonal is
needed: the work grows with the whole result, and so do its gradients.

## Evidence
From the graph: the result, its shape, the nodes that select from it; `used_ratio`, the share of its elements that they
take. From an op trace: `result_ratio`, share of the steps in the ops that make it, with their gradients.

## Known limits
The saving is counted in elements. Results that are normalised, sorted or accumulated over the axis that is selected
from (softmax, a recurrent layer) are needed whole and not reported; nor are results with further consumers. An axis
of open size, of which one place is taken, counts as one of eight. That a Jacobian's other blocks are zero is not looked
at: with batch normalisation they are not.

Measured (batch-3 of bench/strangers, on a busy core): one of 40 positions (15-lyrics-model, with a second problem)
2.4x faster (58 %), predicted 37 %; a Jacobian of 32 samples (16-flow-pinn) 3.7x faster (73 %), predicted 58 %.

## Remedy
Select first, compute then: slice the inputs (`hidden[:, -1]` before the last layer), or compute the pairs that are
used directly (`tf.reduce_sum(a * b, -1)` in place of the diagonal of `a @ b`); `tape.batch_jacobian` in place of
`tape.jacobian`.

## References
FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import full_jacobians, partly_used_results
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.detectors.shared.graph_pattern import Saving
from stepscope.model.log.graph import UNKNOWN
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.partly_used_results import PartlyUsed
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.steps_view import StepsView


SMALL = 0.1
"""Share below which a fraction says more than percent."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps in the unused part."""
    max_used: Ratio = Ratio(0.5)
    """Share of the elements: if more is used, selecting first saves less than it complicates."""
    min_elements: int = 1_000
    """Of the result: smaller ones cost what an op costs at least."""
    min_asked: int = 100_000
    """Of the result, without a trace: smaller ones are not worth one."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: the costliest result."""
    samples = graph_pattern.samples(view)

    def find(index: GraphIndex) -> Sequence[PartlyUsed]:
        given = index, samples, params.max_used, params.min_elements
        every = (*partly_used_results.build(*given), *full_jacobians.build(*given))
        return sorted(every, key=lambda one: -one.elements)

    yield from graph_pattern.price_work(
        view,
        find,
        params.min_ratio,
        ask=lambda largest: _suspicion(largest, params),
        weigh=_saving,
        see=lambda ops, found, saving: _finding(view, ops, found, saving, params),
    )


def _suspicion(largest: PartlyUsed, params: Params) -> str:
    if largest.elements < params.min_asked:
        return ""
    return f"only {_part_text(largest)} of a result of {_shape_text(largest)} elements is used"


def _saving(ops: OpCosts, found: PartlyUsed) -> Saving:
    left = 1 - found.used_ratio
    return Saving(share=ops.of_nodes(found.nodes, gradients=True), part=left, least=0.5 * left, most=1.0)


def _finding(view: StepsView, ops: OpCosts, found: PartlyUsed, saving: Saving, params: Params) -> Seen:
    makers = [*ops.costliest(found.nodes), found.made_by]
    shape = _shape_text(found)
    made = graph_pattern.places(view, ops.index, makers)
    selected = graph_pattern.places(view, ops.index, found.selecting)
    who = f" of {made[0].function}" if made and made[0].function not in {"", "<module>"} else ""
    where = f" (line {selected[0].line})" if selected else ""
    what = f"only {_part_text(found)} of a result{who} is used: {shape} elements are computed, then some are selected"
    if found.jacobian_of:
        what = (
            f"a full Jacobian{who} is made, {shape} elements, of which the {found.jacobian_of} diagonal blocks are used"
        )
    return Seen(
        title=f"{what}{where}; making it takes {format_ratio(saving.share.ratio)} of the step",
        confidence=0.85,
        where=tuple(dict.fromkeys([*made, *selected])),
        evidence=(
            trace_evidence.evidence(ops.trace, "result_ratio", saving.share.ratio, "ratio", params.min_ratio),
            Evidence(metric="used_ratio", value=found.used_ratio, unit="ratio", threshold=params.max_used),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, saving.ratio, low=saving.low, high=min(1.0, saving.high), basis="modelled"),
        remedies=(_BATCH_JACOBIAN if found.jacobian_of else _SELECT_FIRST,),
        explanation="In the graph, everything that uses this result only selects from it. "
        f"{trace_evidence.source(ops)} The saving is counted in elements.",
    )


_SELECT_FIRST = Remedy(
    id="select-first",
    text="select first, compute then: take the rows, positions or pairs that are used before this work, so that the "
    "rest is never made",
    safety="review",
)
_BATCH_JACOBIAN = Remedy(
    id="batch-jacobian",
    text="tape.batch_jacobian(results, inputs) in place of tape.jacobian: a sample's results need its own input alone "
    "(not so with batch normalisation), so all other blocks are zero; for few results one tape.gradient each will do",
    safety="review",
)


def _shape_text(found: PartlyUsed) -> str:
    """``128 x ? x 1500``."""
    return " x ".join(str(size) if size != UNKNOWN else "?" for size in found.shape)


def _part_text(found: PartlyUsed) -> str:
    """``1/256``, or percent."""
    if UNKNOWN in found.shape and found.used_ratio * partly_used_results.FEWEST >= 1:
        return "one place"
    return f"1/{round(1 / found.used_ratio)}" if found.used_ratio < SMALL else format_ratio(found.used_ratio)


DETECTOR = Detector(
    code="GRF020",
    name="partly-used-results",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
