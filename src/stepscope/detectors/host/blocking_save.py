"""The training thread writes checkpoints, weights or summaries too often.

## What it detects
Saving (checkpoint, weights, SavedModel) or summary writing that the training thread does itself and that takes a
noticeable part of the steady wall time.

## Why it matters
While the thread serialises and writes, no step runs. The cost grows with the size of the model and with a slower disk,
and appears in other tools as "all others".

## Evidence
`saving_ratio`: share of the steady wall time, each call timed. `save_ns`: one call. `steps_between`: steady steps
per call.

`epochs`: passes over the data that ended in these steps; one checkpoint per epoch is what most jobs want, and is
reported only if it takes a quarter of the time.

## Known limits
Files written in other ways (np.save, pickle) count as other Python, not as saving.

## Remedy
Save less often (once an epoch, or by time), weights only, to a local disk, or in the background
(`tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)`, BackupAndRestore); write summaries every N
steps and flush rarely.

## References
tf.train.Checkpoint and CheckpointOptions documentation; training-pipeline analysis (Rand 2020), stage storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps import epochs, rare
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio, format_times
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import Bool


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of steady wall time: some saving is always wanted."""
    min_epoch_ratio: Ratio = Ratio(0.25)
    """If there is at most one save an epoch: epochs are then short, and the save is wanted."""
    min_calls: int = 2
    """Within the steady steps: one call does not give a rate."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding for saving and one for summaries."""
    for kind in kinds_with(Trait.WRITES):
        rows = view.named_times(kind)
        steps = view.steps
        if not rows:
            continue
        total = sum(r.total_ns for r in rows)
        calls = sum(r.calls for r in rows)
        ratio = min(total / steps.steady_ns, view.anatomy.ratio("saving"))
        passes = epochs.ended(steps) if kind is Kind.SAVE else 0
        each_epoch = 0 < calls <= passes + 1
        if ratio >= (params.min_epoch_ratio if each_epoch else params.min_ratio) and calls >= params.min_calls:
            yield _finding(view, rows, kind, ratio, passes, params)


def _finding(
    view: StepsView, rows: tuple[NamedTime, ...], kind: Kind, ratio: float, passes: int, params: Params
) -> Seen:
    steps = view.steps
    count = steps.steady_count
    calls = sum(r.calls for r in rows)
    total = sum(r.total_ns for r in rows)
    top = rows[0].name
    often = rare.of(steps, _chosen(steps, rows, kind))
    between = often.every if often is not None else count / calls
    when = often.often("step", "steps") if often is not None else f"about every {between:.2g} steps"
    each = format_ns(total / calls)
    if kind is Kind.SAVE:
        what = top.role or "checkpoint"
        title = f"a blocking {what} save {when} takes {each}: {format_ratio(ratio)} of the time"
    else:
        title = (
            f"TensorBoard summaries are written {format_times(calls / count, 'step')} on the training thread, "
            f"{each} each: {format_ratio(ratio)} of the time"
        )
    return Seen(
        title=title,
        confidence=0.95,
        where=_places(view, rows),
        evidence=(
            Evidence(
                metric="saving_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:saving",),
            ),
            Evidence(metric="save_ns", value=total / calls, unit="ns", refs=tuple(f"name:{r.name.id}" for r in rows)),
            Evidence(metric="steps_between", value=between, unit="steps"),
            Evidence(metric="calls", value=calls, unit="calls", threshold=params.min_calls),
            *((Evidence(metric="epochs", value=passes, unit="epochs"),) if passes else ()),
        ),
        cost=cost_of(view, ratio, low=0.95 * ratio, high=1.02 * ratio, each=view.anatomy.per_step_of("saving")),
        remedies=_save_remedies(each_epoch=calls <= passes + 1) if kind is Kind.SAVE else _summary_remedies(),
        explanation="The training thread serialises and writes; the next step starts only when it is done.",
    )


def _chosen(steps: Steps, rows: tuple[NamedTime, ...], kind: Kind) -> Bool:
    """The records of these rows on the steps' thread."""
    records = steps.worker.records
    named = np.isin(records.name, [row.name.id for row in rows])
    found: Bool = (records.kind == kind) & (records.thread == steps.thread) & named
    return found


def _save_remedies(*, each_epoch: bool) -> tuple[Remedy, ...]:
    rarer = "every N epochs, or every N minutes" if each_epoch else "once an epoch, or every N minutes"
    return (
        Remedy(id="save-less-often", text=f"save the checkpoint less often: {rarer}"),
        Remedy(
            id="async-checkpoint",
            text="or in the background: tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)",
        ),
        Remedy(id="save-weights-only", text="or weights only, to a fast local disk"),
    )


def _summary_remedies() -> tuple[Remedy, ...]:
    return (
        Remedy(
            id="summaries-less-often", text="write summaries every N steps (update_freq=N), histograms once an epoch"
        ),
        Remedy(
            id="flush-rarely", text="and do not flush the writer after each: it flushes every two minutes by itself"
        ),
    )


def _places(view: StepsView, rows: tuple[NamedTime, ...]) -> tuple[Place, ...]:
    places = []
    for row in rows:
        name = row.name
        if name.call_file:
            places.append(view.place(name.call_file, name.call_line, function=name.call_function))
    fit = view.fit_place()
    if fit is not None and not places:
        places.append(fit)
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="HST006",
    name="blocking-save",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="storage",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"keras", "tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"TRD001"}),
)
