"""The steps of a PyTorch program wait for its DataLoader.

## What it detects
A DataLoader whose `next` takes a large part of the steps, in a measured job, while no GPU of the job computes.

## Why it matters
A loader without worker processes makes each batch between two steps, on the thread that trains: nothing else happens
meanwhile. One with too few workers makes the steps wait for the slowest.

## Evidence
`wait_ratio`: share of the steady steps in the loader's `next`, timed call by call; `lost_ratio`: at most the share in
which the GPU was idle, by NVML; `next_ns`: mean time of a `next`; `workers`: its worker processes; `idle_workers`:
those with under a quarter of the busiest one's batches, or, where those are not known, of its CPU time; `worker_cores`:
CPUs that they take, if those are all; `worker_threads`: runnable threads of a worker, on average. The first place is
the function that most stack samples under the loader's fetch are in: the dataset's, the collate function or what these
call; where no function has most of them, the dataset's method.

## Known limits
A GPU that is busy with another job's kernels hides the loss. Of what workers do, their batches are known (not with
`in_order=False`), and their CPU time, only while they are among the host's eight busiest. DataLoaders that Keras makes
on PyTorch around its input are not the program's, and are left out. Batches that come from something else than a
DataLoader (a generator, another library's loader) are not seen: then nothing is decided. A step is an optimizer's step:
with gradient accumulation it has several batches, and the batches of an evaluation count in the step that the
evaluation interrupts. Of several processes that make the same steps, the finding is about the one that waits longest.
What workers take to start again in each pass is INP017's.

## Remedy
Where a row takes less than 50 us, it is the Python around it that costs, in workers too: take whole batches from the
dataset. Else `DataLoader(num_workers=...)`, where a CPU is idle, so that batches are made in other processes while the
step runs, and `persistent_workers=True`, both in `TrainingArguments` (`dataloader_num_workers=...`) for the Trainer of
transformers; with workers, more of them. Not where some have no work: an iterable dataset needs at least as many shards
as workers. Nor where the workers take all CPUs: PyTorch limits its own threads in a worker to one, but NumPy,
SciPy and OpenCV use all cores in each, so limit those. Or less work for a sample: decode less, do it once, vectorise.

## References
PyTorch's performance tuning guide, "enable asynchronous data loading"; training-pipeline analysis (Rand 2020).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import data_loader_wait, input_work
from stepscope.causes.system import contention
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.remedies import Fact, loader_workers, trainer_workers
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ns, Ratio, format_ns, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.input.data_loader_wait import LoaderWait, ProcessWait
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_lost_ratio: Ratio = Ratio(0.15)
    """Of the steady steps; see INP001."""
    min_threads: float = 1.5
    """Runnable threads of a worker, on average, from which its library starts some. Measured: 1.97 of NumPy's OpenBLAS
    in each of two workers on two CPUs, 0.83 with one thread for each."""
    max_cheap_row: Ns = Ns(50_000)
    """Time of a row that is Python around it. Measured: rows of a TensorDataset take 16 us, by whole batches a third of
    the epoch; workers gained nothing (docs/decisions/0102)."""


_THREADED = re.compile(
    r"linalg|\bscipy\b|\bcv2\b|\bsklearn\b|\bskimage\b|\bnumexpr\b|\bfaiss\b"
    r"|\b(?:np|numpy)\.(?:dot|matmul|einsum|tensordot|inner|cov|corrcoef|polyfit)\b"
)
"""Code whose library starts threads: one for each core in every worker."""
_TRAINER = re.compile(r"\bTrainingArguments\b")


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the loader that the steps wait for most."""
    found = data_loader_wait.everywhere(view)
    waiting = [one for one in found if one.wait.lost_ratio >= params.min_lost_ratio]
    if waiting:
        yield _finding(waiting[0].view, waiting[0].wait, params, _whose(waiting, len(found)))


def _whose(waiting: Sequence[ProcessWait], processes: int) -> tuple[str, str]:
    """What is said before and after of the process that waits longest: which task it is, or how many wait like it."""
    first, *others = waiting
    alike = 1 + sum(2 * one.wait.lost_ratio >= first.wait.lost_ratio for one in others)
    if first.task:
        return (f"{first.task}: " if alike < processes else ""), ""
    return "", f", in {alike} of {processes} processes" if processes > 1 else ""


def _finding(view: StepsView, wait: LoaderWait, params: Params, whose: tuple[str, str]) -> Seen:
    made, (before, after) = wait.made, whose
    inside = made.workers == 0
    return Seen(
        title=f"{before}the DataLoader {_who(view, wait)}: its next takes {format_ns(round(wait.next_ns))}, "
        f"and the steps wait for it {format_ratio(wait.ratio)} of the time{after}",
        confidence=0.9,
        cause="API: not using efficient API" if inside else "Data: inefficient data preprocessing",
        where=_places(view, wait),
        evidence=(
            Evidence(metric="wait_ratio", value=wait.ratio, unit="ratio", refs=("component:input-wait",)),
            Evidence(metric="lost_ratio", value=wait.lost_ratio, unit="ratio", threshold=params.min_lost_ratio),
            Evidence(metric="next_ns", value=wait.next_ns, unit="ns"),
            Evidence(metric="workers", value=made.workers, unit="processes"),
            *_of_workers(view, wait),
        ),
        cost=cost_of(view, wait.lost_ratio, low=_least(view, wait), each=view.anatomy.per_step_of("input-wait")),
        remedies=_remedies(view, wait),
        about=_about(view, wait, params),
        explanation="Each next of the loader was timed on the thread that trains. The rest of the step is PyTorch's "
        "work and other Python, which are not separated.",
    )


def _who(view: StepsView, wait: LoaderWait) -> str:
    workers = wait.made.workers
    if not workers:
        return "makes each batch in the training process"
    if wait.idle:
        return f"has work for {workers - wait.idle} of its {format_number_of(str(workers), 'workers')}"
    used = view.get(contention.build)
    if wait.crowded and used is not None:
        all_of_them = used.fed + used.got >= contention.FULL * used.available
        what = "take all CPUs" if all_of_them else f"get {used.fed:.2g} of {used.available:.0f} CPUs: none is idle"
        return f"waits for {format_number_of(str(workers), 'workers')} that {what}"
    return f"has too few or too slow workers ({format_number_of(str(workers), 'processes')})"


def _of_workers(view: StepsView, wait: LoaderWait) -> Iterator[Evidence]:
    """What is known of the workers, where it decides what is advised."""
    if wait.idle:
        yield Evidence(metric="idle_workers", value=wait.idle, unit="processes")
    used = view.get(contention.build)
    if wait.crowded and used is not None:
        yield Evidence(metric="worker_cores", value=used.fed, unit="cores")
    if wait.crowded and wait.threads >= 0:
        yield Evidence(metric="worker_threads", value=wait.threads, unit="threads")


def _about(view: StepsView, wait: LoaderWait, params: Params) -> frozenset[Fact]:
    made = wait.made
    loop, code = view.source_of(made.file), view.source_of(made.fn_file or made.file)
    threaded = code is None or _THREADED.search(code) is not None
    if wait.threads >= 0:
        threaded = wait.threads >= params.min_threads
    facts = {
        Fact.CHEAP_ROWS: 0 < wait.row_ns < params.max_cheap_row and wait.makes_rows,
        Fact.IDLE_WORKERS: wait.idle > 0,
        Fact.CROWDED_WORKERS: wait.crowded and threaded,
        Fact.TRAINER: loop is not None and _TRAINER.search(loop) is not None and not _loops(loop, made.line),
    }
    return frozenset(fact for fact, holds in facts.items() if holds)


def _loops(source: str, line: int) -> bool:
    """Whether the program takes the batches in a loop that it wrote."""
    lines = source.split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return re.search(r"\bfor\b|\bnext\(|\benumerate\(", text) is not None


def _least(view: StepsView, wait: LoaderWait) -> float:
    """What is saved at least: nothing is certain where more workers would gain nothing."""
    if wait.idle or wait.crowded:
        return 0.0
    if wait.made.workers == 0:
        return input_work.saved_ahead(view, wait.lost_ratio)
    return max(0.0, 1.0 - max(1.0 - wait.lost_ratio, wait.lost_ratio / 2))  # twice as many


def _places(view: StepsView, wait: LoaderWait) -> tuple[Place, ...]:
    """The user's function that most of a batch's time is in, else the one that makes a sample; the loop that takes the
    batches.
    """
    made, work = wait.made, wait.work
    places = [view.place(made.fn_file, made.fn_line, function=made.fn_name)] if made.fn_file else []
    if work is not None:
        entry = work.entry
        places = [
            view.place(work.file, work.lines[0], function=work.function),
            view.place(entry.file, entry.line, function=entry.function),
        ][: 1 if (entry.file, entry.function) == (work.file, work.function) else 2]
    if made.file:
        places.append(view.place(made.file, made.line, function=made.function))
    return tuple(places)


def _remedies(view: StepsView, wait: LoaderWait) -> tuple[Remedy, ...]:
    made = wait.made
    doer = wait.work.function if wait.work is not None else made.fn_name
    less = f"less work in {doer}: decode less, do it once, vectorise" if doer else "less work a sample"
    if made.workers == 0:
        workers = [
            Remedy(id="loader-workers", text=loader_workers(view)),
            Remedy(id="trainer-workers", text=trainer_workers(view)),
        ]
    else:
        workers = [_ONE_THREAD, _SPLIT, _MORE]
    rows = Remedy(
        id="batched-rows",
        text=f"take whole batches from the dataset, not row by row ({format_ns(round(wait.row_ns))} each): "
        f"DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), {made.batch}, drop_last=False)) "
        "for tensors in memory, or a __getitems__ that indexes them once",
    )
    return rows, *workers, Remedy(id="less-work-per-sample", text=less)


_ONE_THREAD = Remedy(
    id="one-thread-per-worker",
    text="give each worker one thread for NumPy, SciPy or OpenCV: threadpoolctl's threadpool_limits(1) and "
    "cv2.setNumThreads(1) in worker_init_fn, or OPENBLAS_NUM_THREADS=1; PyTorch limits only its own in num_workers",
)
_SPLIT = Remedy(
    id="split-among-workers",
    text="give every worker data: at least as many shards (files) as num_workers, or take every n-th sample in each "
    "(torch.utils.data.get_worker_info)",
)
_MORE = Remedy(id="more-loader-workers", text="use more workers (num_workers, prefetch_factor)")


DETECTOR = Detector(
    code="INP015",
    name="data-loader-wait",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.BATCHES}),
    frameworks=frozenset({"torch.data"}),
    params=Params(),
    detect=detect,
)
