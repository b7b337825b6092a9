"""A PyTorch DataLoader starts its workers again for each pass over the data.

## What it detects
A DataLoader with workers and without `persistent_workers`, of which a second pass began: the time in which the process
that trains waits for the workers of one pass to end and for those of the next to start.

## Why it matters
Workers that are started by `spawn` are new interpreters: each imports PyTorch and the program's modules and reads the
pickled dataset, for seconds, while nothing else runs. Where passes are short (small data, a validation in each epoch)
that is most of the time. More workers make it longer.

## Evidence
`restart_ratio`: share of the steady steps in which the process waits so, by the `next` that ends a pass, the stack
samples in the loader's `__iter__`, the lines that say when a worker was started and began to run, and the first `next`
until the first worker had imported its framework. `between_steps_ratio`: the part of what lies between the steps that
this is. `restart_ns`: mean time of one restart; `pass_ns`: of a pass without it; `restarts`;
`workers`: in a pass, of the loader that has most.

## Known limits
The first start of each loader is not counted: it stays. What the first `next` waits after the first worker's imports
may be the making of a batch, and is only in the upper end of the cost; the other ends are those of the samples. Workers
that are stopped because the loop was left early are waited for outside of `next`: only their start is counted.
Batches that another thread takes are not seen.

## Remedy
`DataLoader(..., persistent_workers=True)`, in `TrainingArguments` `dataloader_persistent_workers=True`, on a loader
that is made once: one that is made in each pass has new workers all the same. Where a pass is shorter than the start of
its workers, fewer of them or none (`num_workers=0`). Where they are spawned, `fork`, if the process has no threads or
CUDA context that its children need, or `forkserver`, which has imported PyTorch before.

## References
PyTorch documentation, torch.utils.data, "Multi-process data loading"; Python documentation, multiprocessing, "Contexts
and start methods".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import restarted_loader_workers
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.remedies import Fact
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.restarted_loader_workers import Restarts
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Of the steady time; the same as for the first batches of passes (INP010)."""
    min_of_pass: Ratio = Ratio(1.0)
    """A restart's time to that of the pass, from which a pass may be shorter without workers."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(restarted_loader_workers.build)
    if found is not None and found.ratio >= params.min_ratio:
        yield _seen(view, found, params)


def _seen(view: StepsView, found: Restarts, params: Params) -> Seen:
    facts = {
        Fact.KEPT_IN_VAIN: all(made.persistent for made in found.loaders),
        Fact.SHORT_PASSES: found.each_ns >= params.min_of_pass * found.pass_ns,
        Fact.SPAWNED: any(one.spawned for one in found.every),
    }
    parts = ("component:other-python", "component:input-wait")
    between = restarted_loader_workers.between_steps(view, found)
    return Seen(
        title=f"each pass starts the DataLoader's workers again: {format_ns(found.each_ns)} a pass, "
        f"{format_ratio(found.ratio)} of the time",
        confidence=0.9,
        where=_places(view, found),
        evidence=(
            Evidence(metric="restart_ratio", value=found.ratio, unit="ratio", threshold=params.min_ratio, refs=parts),
            Evidence(metric="between_steps_ratio", value=between, unit="ratio", refs=("phase:between-steps",)),
            Evidence(metric="restart_ns", value=found.each_ns, unit="ns"),
            Evidence(metric="pass_ns", value=found.pass_ns, unit="ns"),
            Evidence(metric="restarts", value=len(found.every), unit="restarts"),
            Evidence(metric="workers", value=max(made.workers for made in found.loaders), unit="processes"),
        ),
        cost=cost_of(view, found.ratio, low=found.low, high=found.high),
        remedies=_REMEDIES,
        about=frozenset(fact for fact, holds in facts.items() if holds),
        explanation="The process that trains waits for the workers of one pass to end and for those of the next to "
        "start. The first start of a loader is not counted.",
    )


def _places(view: StepsView, found: Restarts) -> tuple[Place, ...]:
    """The loops that take the batches."""
    places = (view.place(made.file, made.line, function=made.function) for made in found.loaders if made.file)
    return tuple(dict.fromkeys(places))


_REMEDIES = (
    Remedy(
        id="keep-loader-workers",
        text="keep the workers from pass to pass: DataLoader(..., persistent_workers=True), made once, before the "
        "passes (in TrainingArguments: dataloader_persistent_workers=True)",
    ),
    Remedy(
        id="one-loader",
        text="make the DataLoader once, before the passes: persistent_workers keeps no worker of one that is made in "
        "each pass",
    ),
    Remedy(
        id="fewer-loader-workers",
        text="or fewer workers, or none (num_workers=0): a pass takes no longer than the start of its workers",
    ),
    Remedy(
        id="fork-loader-workers",
        text='or DataLoader(..., multiprocessing_context="fork"), if the process has neither threads nor a CUDA '
        'context that workers use; else "forkserver", with set_forkserver_preload(["torch"])',
    ),
)


DETECTOR = Detector(
    code="INP017",
    name="restarted-loader-workers",
    cause="API: not using efficient API",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.BATCHES}),
    frameworks=frozenset({"torch.data"}),
    params=Params(),
    detect=detect,
)
