"""Each step looks up some rows of a large table, and works on all of them.

## What it detects
Embeddings of at least 250,000 numbers from which a step gathers rows, if ops on arrays of the whole table's shape
(decay of the optimizer's moments, a regularizer, a gradient that was made dense, an op on the table before the look-up)
take a tenth of the step or more.
Tables that are also multiplied as a whole, such as output weights of a language model, are not included.

## Why it matters
A batch of 256 touches 256 rows of a million. Adam and RMSprop change the moments of all rows in each step, including
rows that were never looked up: a dozen passes over the table, whose cost does not depend on the size of the batch or of
the data. Which other optimizers do the same depends on the version of Keras (see Remedy).

## Evidence
From the graph: `table_elements`, and `looked_up_rows` if its shapes show it. From an op trace: `table_ratio`, share of
the steps in ops on all of the table.

Measured (bench/cases/50-adam-on-large-table): 14x the samples a second with SGD on TensorFlow 2.21 (93 % saved), with
other programs running; predicted 89 %. Keras 2.15 makes the gradient dense with SGD, too. A regularizer on two tables
(batch-2/24-book-recsys-cv of bench/strangers, Keras 2.15): 2.0x faster (50 %), predicted 46 %; on two others
(batch-3/05-two-tower-l2, Keras 2.15): 4.2x faster (76 %), predicted 77 %, of which the ops are 62 %. Tables normalised
as a whole in a session's graph (batch-3/11-session-bpr, TensorFlow 2.15): 2.3x faster (56 %), predicted 53 %, by the
ops alone.

## Known limits
Which optimizer suits the model is not known here: one that leaves unused rows alone trains differently. Tables are
found by shape: two tables of the same shape count as one. Between ops, buffers of the table's size are
allocated and freed: half of that time is part of the cost, and all of it of its upper end.

## Remedy
An optimizer that changes only the rows of the batch; fewer rows (rare values share one, hashing); a regularizer on
the rows that were looked up instead of the table. Measured, ms per step with a table of 500,000 x 32 and batches of
256, on two CPUs with other programs running (least of three fits; ranges are of several such runs):

| optimizer | Keras 3.15, fit | with jit_compile=True | in a loop | Keras 2.15, fit | legacy, fit |
|---|---|---|---|---|---|
| SGD | 48-85 | 1.5 | 0.7 | 152 | 1.1 |
| SGD, momentum | 63-170 | 40 | 106 | 152 | 1.4 |
| Adagrad | 109-170 | 76 | 68 | 1.3 | 1.2 |
| Ftrl | 508 | | 291 | 553 | 1.4 |
| RMSprop | 203 | | 97 | 504 | 149 |
| Adam | 134-355 | 96-170 | 261 | 339 | 703 |

On Keras 3 only SGD without momentum gains much, above all with jit_compile=True; on Keras 2.15 Adagrad does, and all
but Adam and RMSprop of `tf.keras.optimizers.legacy`. tf_keras 2.21 behaves like Keras 2.15. In Keras 3.15 a
`keras.optimizers.MultiOptimizer` gives the table SGD and the rest Adam: 46 ms per step instead of 136, with
jit_compile=True 1.4 instead of 99. The advice for Keras before 2.11, and for tf.compat.v1.train, was not measured.

## References
Keras 3.15, `optimizers/adagrad.py` (the accumulator of all rows is written); TensorFlow, ResourceSparseApplyAdagradV2;
FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import compute_lines
from stepscope.causes.graph import dense_update_of_table, heavy_ops
from stepscope.derive.optrace.node_costs import BY_OTHERS
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.causes.graph.dense_update_of_table import TableUpdate
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


KERAS_3_15, KERAS_3, KERAS_2_11 = (3, 15), (3, 0), (2, 11)
"""Versions in which Keras' optimizers change: 2.11 and 3.0 have new ones, 3.15 has MultiOptimizer."""


MOST = 0.5
"""Share of the time on all rows from which lines of the user's code are named for it."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""
    min_asked: int = 1_000_000
    """Elements of the table, without a trace: 4 MB, and as much for each moment."""
    min_elements: int = 250_000
    """With a trace, which tells its cost: smaller ones have shapes that other tensors may have as well."""
    min_unused: Ratio = Ratio(0.75)
    """Share of the table's rows that a look-up does not touch: a small table is touched as a whole anyway."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of the work on all rows of the tables."""

    share: OpShare
    ratio: float
    """The part of it on rows that are not looked up."""
    found: tuple[TableUpdate, ...]
    """The costliest first."""

    @property
    def unused(self) -> float:
        """Share of the work on rows that are not looked up."""
        return self.ratio / self.share.ratio if self.share.ratio else 0.0


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all such tables of the steps."""
    samples = graph_pattern.samples(view)

    def find(index: GraphIndex) -> list[TableUpdate]:
        every = dense_update_of_table.build(index, params.min_elements, samples)
        return [one for one in every if one.unused >= params.min_unused]

    yield from graph_pattern.price(
        view,
        graph_pattern.whole(find),
        params.min_ratio,
        ask=lambda found: _suspicion(found, params),
        weigh=_cost,
        see=lambda ops, _, cost: _finding(view, ops, cost, params),
    )


def _suspicion(found: Sequence[TableUpdate], params: Params) -> str:
    largest = max(found, key=lambda one: one.table.elements).table
    if largest.elements < params.min_asked:
        return ""
    return f"each step works on all {largest.shape[0]:,} rows of a table from which it looks up some"


def _cost(ops: NodeCosts, found: Sequence[TableUpdate]) -> _Cost:
    each = [ops.of_nodes(one.nodes).ratio for one in found]
    share = ops.of_nodes([row for one in found for row in one.nodes])
    ranked = sorted(zip(each, found, strict=True), key=lambda pair: -pair[0])
    all_rows = sum(each)
    unused = sum(ratio * one.unused for ratio, one in ranked) / all_rows if all_rows else 0.0
    return _Cost(share=share, ratio=share.ratio * unused, found=tuple(one for _, one in ranked))


def optimizers(frameworks: Mapping[str, str]) -> str:
    """Optimizers that leave unused rows alone in the running version of Keras, or in TensorFlow itself."""
    legacy = "SGD (also with momentum), Adagrad or Ftrl of tf_keras.optimizers.legacy"
    if "tf_keras" in frameworks:
        return legacy
    version = _version(frameworks.get("keras", ""))
    if not version:
        return "GradientDescentOptimizer, MomentumOptimizer, AdagradOptimizer or FtrlOptimizer of tf.compat.v1.train"
    if version >= KERAS_3_15:
        return "SGD without momentum, for the table alone with keras.optimizers.MultiOptimizer; with jit_compile=True"
    if version >= KERAS_3:
        return "SGD without momentum, in fit with jit_compile=True (others of Keras 3 work on all rows, Adagrad too)"
    if version >= KERAS_2_11:
        return f"Adagrad, or {legacy.replace('tf_keras', 'tf.keras')} (plain SGD of this Keras works on all rows)"
    return "SGD (also with momentum), Adagrad or Ftrl"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _finding(view: SessionView, ops: NodeCosts, cost: _Cost, params: Params) -> Seen:
    share, found = cost.share, cost.found[0]
    rows, width = found.table.shape
    touched = f"{found.rows:,}" if found.rows else "a few"
    by_hand, around = _by_hand(view, ops, cost), _with_framework(ops)
    penalties = [row for one in cost.found for row in one.penalties]
    before = ops.costliest([row for one in cost.found for row in one.before])
    changed = graph_pattern.places(view, ops.index, before)[:2]
    lookups = graph_pattern.places(view, ops.index, [one.lookup for one in cost.found])
    taken = graph_pattern.places(view, ops.index, penalties)[:1]
    why = f", mostly in {_name(by_hand[0])}" if by_hand else ""
    if changed:
        why = f", because {_name(changed[0])} changes the whole table before rows of it are looked up"
    elif penalties:
        why = f", for a regularizer{f' in {_name(taken[0])}' if taken else ''} that takes the whole table"
    return Seen(
        title=f"each step works on all of {_table(ops, found)}: it looks up {touched} of the {rows:,} rows{why}, "
        f"{format_ratio(share.ratio)} of the step",
        confidence=0.8 if found.rows else 0.7,
        where=tuple(dict.fromkeys([*changed, *taken, *by_hand, *lookups])),
        evidence=(
            trace_evidence.evidence(ops.trace, "table_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="table_elements", value=rows * width, unit="elements"),
            *([Evidence(metric="looked_up_rows", value=found.rows, unit="rows")] if found.rows else []),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(
            view,
            cost.ratio * (1.0 + BY_OTHERS * (around - 1.0)),
            low=share.low * cost.unused,
            high=share.high * around,
        ),
        remedies=(
            *((_FIRST,) if changed else (_PENALTY,) if penalties else (_SPARSE,) if by_hand else ()),
            Remedy(
                id="update-looked-up-rows",
                text=f"use an optimizer that changes only the rows of the batch: {optimizers(view.frameworks)}; no "
                "regularizer on the whole table; or fewer rows (as many as ids occur, or hashing)",
            ),
        ),
        explanation="Ops on the table are those that make or read arrays of its shape: the optimizer's moments, a "
        "regularizer, a gradient that was made dense. Their time does not depend on the batch.",
    )


def _table(ops: NodeCosts, found: TableUpdate) -> str:
    """``the table of Embedding users``: with the layer that looks it up; "a table" without one."""
    _, layer = ops.index.maker_of(found.lookup)
    return f"the table of {layer.cls} {layer.name}" if layer is not None and layer.cls else "a table"


_FIRST = Remedy(
    id="look-up-first",
    text="look the rows of the batch up first, and do this work (normalise, scale, project: what needs one row at a "
    "time) on them alone: the gradient of the table is then sparse (tf.IndexedSlices)",
    safety="review",
)
_PENALTY = Remedy(
    id="penalise-looked-up-rows",
    text="penalise the rows that were looked up instead of the whole table (add_loss or activity_regularizer on the "
    "looked-up vectors, no embeddings_regularizer): the gradient of the table is then sparse",
    safety="review",
)
_SPARSE = Remedy(
    id="keep-gradient-sparse",
    text="leave the sparse gradient of the table (tf.IndexedSlices) sparse: do this work on its values, the looked-up "
    "rows alone; as a tensor it is a dense gradient of all rows",
)


def _with_framework(ops: NodeCosts) -> float:
    """Time of the step's call over that of its ops: between them, buffers of a table's size are allocated and freed."""
    busy = ops.of_nodes(range(len(ops.index.table))).high
    return max(1.0, ops.trace.breakdown.ratio(*heavy_ops.COMPUTE) / busy) if busy else 1.0


def _by_hand(view: SessionView, ops: NodeCosts, cost: _Cost) -> tuple[Place, ...]:
    """Lines of the user's code that work on all rows, if they take most of the time; the optimizer's are not."""
    updaters = compute_lines.optimizers(ops.index)
    nodes = [row for one in cost.found for row in one.nodes]
    makers = {row: ops.index.maker_of(row) for row in ops.costliest(nodes)}
    own = [row for row, (line, layer) in makers.items() if line and not (layer is not None and layer.id in updaters)]
    most = ops.of_nodes(own).ratio >= MOST * cost.share.ratio if own else False
    return graph_pattern.places(view, ops.index, own)[:1] if most else ()


def _name(place: Place) -> str:
    return f"{place.function} (line {place.line})" if place.function else f"line {place.line}"


DETECTOR = Detector(
    code="GRF012",
    name="dense-update-of-table",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
