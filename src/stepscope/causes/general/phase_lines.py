"""The phases of a job outside of its steady steps, with the lines of the user's code that run in each.

Lines are those of stack samples of the threads that the job's ledger follows: the innermost line of the user's code,
and what it calls. Where too few samples fall into a phase, calls with records name them.

Serves the general detector of time outside of the steps, and the settling of the ledger.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general.spent_lines import LEAST, MAX_LINES, MIN_SAMPLES, SpentLine
from stepscope.derive.ledger import build as ledger
from stepscope.derive.ledger import loop_edges, outside
from stepscope.derive.numeric import concentration, intervals
from stepscope.derive.python import doing, stack_samples
from stepscope.derive.steps import step_makers
from stepscope.derive.steps.steps import names_of
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.ledger.part import Ledger, LedgerPart
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.report.ledger import Phase
    from stepscope.model.session.session import Manifest, Worker, WorkerInfo

_SHOWN: dict[str, tuple[Kind, ...]] = {
    **dict(outside.SHOWN),
    "evaluation": (Kind.LOOP,),
    "first-steps": (Kind.LOOP, *kinds_with(Trait.GRAPH)),
}
"""Kinds whose records name lines of a phase."""

TICK_NS = 10_000_000
"""Unit of the kernel's time of a process's start (USER_HZ, 100 on all common machines), which its key has."""


class PhaseTime(Struct, frozen=True, kw_only=True):
    """One phase of the job."""

    phase: Phase
    ns: int
    ratio: float
    """Share of the job's wall time."""
    count: int
    lines: tuple[SpentLine, ...]
    """The costliest first; ratios are shares of the phase's time."""
    edges: tuple[tuple[str, int], ...] = ()
    """What Keras' loops do in it at their edges (``loop_edges``), and for how long."""
    loops: int = 0
    """Number of these loops."""
    importing: float | None = None
    """Share that the program's import statements take, by samples; None: too few."""
    lazily: float = 0.0
    """The same of what libraries import when they are called."""
    launched_by: str = ""
    """Of the start: the program of the job that started the process of the steps, "torchrun"; "": it is the process."""
    launched_ns: int = 0
    """Of the start: until the process of the steps began."""
    finishing_ns: int = 0
    """Of the end: while the interpreter finishes, in which no line of the program runs."""
    once: bool = False
    """Whether nearly all of it passed in one piece, without a step."""


def job(view: SessionView) -> Ledger | None:
    """The ledger of the job; None where nothing was measured from its start."""
    if view.session.manifest.mode in {"attach", "import"}:
        return None
    makers = step_makers.build(view.steps) if view.steps is not None else ()
    pipe = view.pipeline
    wait = (pipe.wait_ns_per_execution or 0.0) if pipe is not None else 0.0
    found = ledger.ledgers(view.session, view.workers, makers, lambda _: wait)
    return found[0] if found and found[0].wall_ns else None


def build(view: SessionView) -> tuple[PhaseTime, ...]:
    """The phases outside of the steps."""
    whole = view.get(job)
    if whole is None:
        return ()
    by, until = launched(view.session.manifest, whole.worker)
    samples = tuple(stack_samples.thread_samples(whole.worker, whole.threads, gaps=True))
    edges = loop_edges.build(whole.worker, whole.threads)
    return tuple(
        PhaseTime(
            phase=part.phase,
            ns=part.ns,
            ratio=part.ns / whole.wall_ns,
            count=part.count,
            lines=_lines(view, whole, part, mine),
            edges=tuple((edge.what, intervals.total(intervals.clip(edge.spans, part.spans))) for edge in edges),
            loops=max((edge.count for edge in edges), default=0),
            importing=_importing(whole, part, mine, lazily=False),
            lazily=_importing(whole, part, mine, lazily=True) or 0.0,
            launched_by=by if part.phase == "start" else "",
            launched_ns=min(until, part.ns) if part.phase == "start" else 0,
            finishing_ns=_finishing_ns(whole, part),
            once=_once(part, view.steps),
        )
        for part, mine in ((part, within(part, samples)) for part in whole.parts)
        if part.phase not in {"steps", "not-seen"}
    )


def _once(part: LedgerPart, steps: Steps | None) -> bool:
    """Whether one piece between two steps holds nearly all of a part: what lies in gaps may have been anything."""
    begin, end = part.spans
    if steps is None or not len(begin):
        return False
    pieces = np.bincount(np.searchsorted(steps.starts, begin, side="right"), weights=end - begin)
    return bool(pieces.max() >= concentration.MOST * part.ns)


def launched(manifest: Manifest, worker: Worker) -> tuple[str, int]:
    """The program that started a process of the job, and how long it took to; ("", 0) for the job's own process."""
    info = worker.info
    if manifest.mode != "run" or manifest.job_pid in {0, info.pid} or info.started_ns <= 0:
        return "", 0
    return _program(manifest.command), _began_ns(info, manifest)


def _began_ns(info: WorkerInfo, manifest: Manifest) -> int:
    """When a process began, by its key; its log begins no earlier, and later where it imports a framework late."""
    ticks = info.key.rpartition("-")[2] if "-" in info.key else ""
    if not ticks.isdecimal():
        return info.started_ns
    return max(0, min(info.started_ns, int(ticks) * TICK_NS - manifest.origin_monotonic_ns))


def _program(command: Sequence[str]) -> str:
    """What a command runs: torchrun, train.sh, torch.distributed.run."""
    names = [word.rpartition("/")[2] for word in command] or ["the job's first process"]
    if not names[0].startswith(("python", "bash", "sh")):
        return names[0]
    if "-m" in names[1:-1]:
        return names[names.index("-m") + 1]
    return next((name for name in names[1:] if not name.startswith("-")), names[0])


def within(part: LedgerPart, samples: tuple[Sample, ...]) -> list[Sample]:
    """The samples in a phase."""
    at = np.array([sample.at for sample in samples], np.int64)
    inside = intervals.overlapping(part.spans, at, at + 1) if len(at) else np.zeros(0, np.bool_)
    return [sample for sample, hit in zip(samples, inside.tolist(), strict=True) if hit and not sample.in_agent]


def _importing(whole: Ledger, part: LedgerPart, samples: list[Sample], *, lazily: bool) -> float | None:
    if len(samples) < MIN_SAMPLES:
        return None
    within = (_imports(sample) and _calls(sample) == lazily for sample in samples)
    hits = stack_samples.weight_of(itertools.compress(samples, within))
    return hits / _total_ns(whole, part, samples)


def _imports(sample: Sample) -> bool:
    return any(frame.file.startswith(stack_samples.IMPORTING) for frame in sample.frames)


def _calls(sample: Sample) -> bool:
    """Whether the user's line called a library, which imports, and did not state the import."""
    below = [frame.file.startswith(stack_samples.IMPORTING) for frame in sample.below_user()]
    return any(below) and not below[0]


def _finishing_ns(whole: Ledger, part: LedgerPart) -> int:
    return min(whole.exit_ns, part.ns) if part.phase == "end" else 0


def _total_ns(whole: Ledger, part: LedgerPart, samples: list[Sample]) -> float:
    """Time of which samples are a part: imports of frameworks were not sampled, nor is the interpreter's end."""
    weight = max(1, stack_samples.weight_of(samples))
    if part.phase == "imports":
        return max(weight, part.ns)
    return weight * part.ns / max(1, part.ns - _finishing_ns(whole, part))


def _lines(view: SessionView, whole: Ledger, part: LedgerPart, samples: list[Sample]) -> tuple[SpentLine, ...]:
    if 2 * _finishing_ns(whole, part) >= max(1, part.ns):
        return ()  # most of it is no line's
    found = _by_samples(view, whole, part, samples) if len(samples) >= MIN_SAMPLES else _by_records(view, whole, part)
    return tuple(spent for spent in found if spent.ratio >= LEAST)[:MAX_LINES]


def _by_samples(view: SessionView, whole: Ledger, part: LedgerPart, samples: list[Sample]) -> list[SpentLine]:
    """The innermost lines of the user's code: functions as a whole, but each line of imports."""
    total = _total_ns(whole, part, samples)
    groups: dict[tuple[str, str, int], list[tuple[Sample, Spot]]] = defaultdict(list)
    for sample in samples:
        if (spot := sample.culprit) is not None:
            groups[spot.file, spot.function, spot.line if part.phase == "imports" else 0].append((sample, spot))
    found = []
    for group in groups.values():
        lines = Counter(spot.line for _, spot in group)
        spot = next(spot for _, spot in group if spot.line == lines.most_common(1)[0][0])
        called = Counter(name for sample, _ in group if (name := stack_samples.called(sample)))
        weight = stack_samples.weight_of(sample for sample, _ in group)
        found.append(
            SpentLine(
                place=view.place(spot.file, spot.line, function=spot.function),
                ratio=weight / total,
                what=doing.public(called.most_common(1)[0][0]) if called else "",
            )
        )
    return sorted(found, key=lambda spent: -spent.ratio)


def _by_records(view: SessionView, whole: Ledger, part: LedgerPart) -> list[SpentLine]:
    """Calls with the line of the user's code that made them."""
    names = names_of(whole.worker)
    records = whole.worker.records
    mine = np.isin(records.kind, _SHOWN.get(part.phase, ())) & np.isin(records.thread, whole.threads)
    spent: Counter[int] = Counter()
    starts = records.start_ns[mine]
    inside = intervals.clipped_sum(starts, starts + records.dur_ns[mine], part.spans)
    for number, time in zip(records.name[mine].tolist(), inside.tolist(), strict=True):
        spent[number] += time
    found = []
    for number, time in spent.most_common():
        name = names.get(number)
        if name is not None and name.call_file and time:
            place = view.place(name.call_file, name.call_line, function=name.call_function)
            found.append(SpentLine(place=place, ratio=min(1.0, time / max(1, part.ns)), what=name.text or name.role))
    return found
