"""The steps of a PyTorch program wait for its DataLoader.

## What it detects
A DataLoader whose `next` takes a large part of the steps, in a measured job, while no GPU of the job computes.

## Why it matters
A loader without worker processes makes each batch between two steps, on the thread that trains: nothing else happens
meanwhile. One with too few workers makes the steps wait for the slowest.

## Evidence
`wait_ratio`: share of the steady steps in the loader's `next`, timed call by call; `lost_ratio`: at most the share in
which the GPU was idle, by NVML; `next_ns`: mean time of a `next`; `workers`: its worker processes.

## Known limits
A GPU that is busy with another job's kernels hides the loss. What workers do is not measured: only that the steps wait
for them. Batches that come from something else than a DataLoader (a generator, a dataset of one's own) are not seen. A
step is an optimizer's step: with gradient accumulation it has several batches, and the batches of an evaluation count
in the step that the evaluation interrupts.

## Remedy
Where a row takes less than 50 us, it is the Python around it that costs, in workers too: take whole batches from the
dataset. Else `DataLoader(num_workers=...)`, where a CPU is idle, so that batches are made in other processes while the
step runs, and `persistent_workers=True`; with workers, more of them; or less work for a sample: decode less, do it
once, vectorise.

## References
PyTorch's performance tuning guide, "enable asynchronous data loading"; training-pipeline analysis (Rand 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.input import data_loader_wait
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.remedies import Fact, loader_workers
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ns, Ratio, format_ns, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.data_loader_wait import LoaderWait
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.finding import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_lost_ratio: Ratio = Ratio(0.15)
    """Of the steady steps; see INP001."""
    max_cheap_row: Ns = Ns(50_000)
    """Time of a row that is Python around it. Measured: rows of a TensorDataset take 16 us, by whole batches a third of
    the epoch; workers gained nothing (docs/decisions/0102)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the loader that the steps wait for most."""
    wait = data_loader_wait.build(view)
    if wait is None or wait.lost_ratio < params.min_lost_ratio:
        return
    made = wait.made
    inside = made.workers == 0
    who = (
        "makes each batch in the training process"
        if inside
        else f"has too few or too slow workers ({format_number_of(str(made.workers), 'processes')})"
    )
    yield Seen(
        title=f"the DataLoader {who}: its next takes {format_ns(round(wait.next_ns))}, and the steps wait for it "
        f"{format_ratio(wait.ratio)} of the time",
        confidence=0.9,
        cause="API: not using efficient API" if inside else "Data: inefficient data preprocessing",
        where=_places(view, wait),
        evidence=(
            Evidence(metric="wait_ratio", value=wait.ratio, unit="ratio"),
            Evidence(metric="lost_ratio", value=wait.lost_ratio, unit="ratio", threshold=params.min_lost_ratio),
            Evidence(metric="next_ns", value=wait.next_ns, unit="ns"),
            Evidence(metric="workers", value=made.workers, unit="processes"),
        ),
        cost=cost_of(view, wait.lost_ratio, low=_least(view, wait)),
        remedies=_remedies(view, wait),
        about=frozenset({Fact.CHEAP_ROWS}) if 0 < wait.row_ns < params.max_cheap_row else frozenset(),
        explanation="Each next of the loader was timed on the thread that trains. The rest of the step is PyTorch's "
        "work and other Python, which are not separated.",
    )


def _least(view: StepsView, wait: LoaderWait) -> float:
    """What is saved at least: other processes make the batches on the CPUs that the host has, or as fast again."""
    makers = max(1, view.session.manifest.host.cpus - 1) if wait.made.workers == 0 else 2
    rest = 1.0 - wait.lost_ratio
    return max(0.0, 1.0 - max(rest, wait.lost_ratio / makers)) if makers > 1 else min(rest, wait.lost_ratio)


def _places(view: StepsView, wait: LoaderWait) -> tuple[Place, ...]:
    """The user's function that makes a sample, and the loop that takes the batches."""
    made = wait.made
    places = [view.place(made.fn_file, made.fn_line, function=made.fn_name)] if made.fn_file else []
    if made.file:
        places.append(view.place(made.file, made.line, function=made.function))
    return tuple(places)


def _remedies(view: StepsView, wait: LoaderWait) -> tuple[Remedy, ...]:
    made = wait.made
    less = f"less work in {made.fn_name}: decode less, do it once, vectorise" if made.fn_name else "less work a sample"
    if made.workers == 0:
        workers = Remedy(id="loader-workers", text=loader_workers(view))
    else:
        workers = Remedy(id="more-loader-workers", text="more workers (num_workers, prefetch_factor)")
    rows = Remedy(
        id="batched-rows",
        text=f"take whole batches from the dataset, not row by row ({format_ns(round(wait.row_ns))} each): "
        f"DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), {made.batch}, drop_last=False)) "
        "for tensors in memory, or a __getitems__ that indexes them once",
    )
    return rows, workers, Remedy(id="less-work-per-sample", text=less)


DETECTOR = Detector(
    code="INP015",
    name="data-loader-wait",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"torch.data"}),
    params=Params(),
    detect=detect,
)
