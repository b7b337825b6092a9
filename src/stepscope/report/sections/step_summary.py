"""The step makers of a job, in the words of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.system import gpu
from stepscope.derive import steps_view
from stepscope.derive.ledger import pauses
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import step_finder, step_makers
from stepscope.model.log.events import ProcessEnded
from stepscope.model.report.report import StepMaker
from stepscope.model.report.step_summary import StepChoice, Throughput
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.steps.step_makers import Maker
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.report.report import JobEnd
    from stepscope.tables.place import Place

MAX_MAKERS = 20
MAX_LEFT_OUT = 8
SHELL_SIGNALS = 128
"""Exit codes above it say by which signal a job ended."""
MOST_UNSEEN = 10
"""Median steps without a record at a killed job's end, from which its steps went on uncounted."""


def found(view: SessionView) -> tuple[Maker, ...]:
    """All makers of the session, the main ones first; for ``view.get``."""
    return step_makers.build(view.steps) if view.steps is not None else ()


def gpu_busy_ratio(view: SessionView) -> float | None:
    """Share of the steady steps in which a kernel ran, mean over the GPUs; None without samples of one."""
    of_steps = steps_view.of(view)
    busy = [one.busy_ratio for one in of_steps.get(gpu.build)] if of_steps is not None else []
    return sum(busy) / len(busy) if busy else None


def makers(view: SessionView, all_makers: Sequence[Maker]) -> tuple[StepMaker, ...]:
    """All step makers, the main ones first."""
    return tuple(
        StepMaker(
            kind=maker.purpose,
            title=maker.steps.title,
            place=_place(view, maker),
            pid=maker.steps.worker.info.pid,
            threads=len(maker.threads),
            count=maker.count,
            rate=rate,
            samples_per_s=samples,
            main=maker.main,
            step_ratio=_step_ratio(maker, view.steps) if view.steps is not None else None,
        )
        for maker in all_makers[:MAX_MAKERS]
        for rate, samples in (_rates(maker),)
    )


def _step_ratio(maker: Maker, steps: Steps) -> float | None:
    """Share of the steady steps within the maker's calls on the steps' thread; None if it makes none there."""
    mine = [one for one in maker.threads if one.worker is steps.worker and one.thread == steps.thread]
    if not mine or not steps.steady_ns:
        return None
    calls = intervals.merge(mine[0].candidate.starts, mine[0].candidate.ends)
    return intervals.total(intervals.clip(calls, steps.windows)) / steps.steady_ns


def throughput(all_makers: Sequence[Maker]) -> Throughput:
    """Of the main makers together."""
    found = [_rates(maker) for maker in all_makers if maker.main]
    rates = [rate for rate, _ in found if rate is not None]
    samples = [held for rate, held in found if rate is not None]
    known = [value for value in samples if value is not None]
    return Throughput(
        samples_per_s=sum(known) if known and len(known) == len(samples) else None,
        steps_per_s=sum(rates) if rates else None,
    )


def _rates(maker: Maker) -> tuple[float | None, float | None]:
    """Steps and samples per second; of a single thread those included that were only counted."""
    timed, held = maker.rate, maker.samples_per_s
    if len(maker.threads) > 1 or not timed:
        return timed, held
    rate = 1e9 / pauses.mean_ns(maker.steps)
    return rate, None if held is None else held * rate / timed


def at_least(view: SessionView, *, ended: JobEnd) -> bool:
    """Whether the steps are more than were counted: a process that was killed lost the count of its last gap.

    One that a signal ended in an orderly way (Ctrl-C) wrote it.
    """
    steps, manifest = view.steps, view.session.manifest
    code = manifest.exit_code
    killed = ended in {"memory", "unknown"} or (code is not None and (code < 0 or code > SHELL_SIGNALS))
    if steps is None or not killed or not len(steps.worker.gaps) or steps.worker.all(ProcessEnded):
        return False
    usual = float(np.median(steps.durations[steps.steady]))
    return manifest.ended_ns - max(int(steps.ends[-1]), steps.span[1]) > MOST_UNSEEN * usual


def choice(view: SessionView) -> tuple[StepChoice, ...]:
    """Why these steps were chosen: what each rule excluded."""
    if view.steps is None:
        return ()
    return tuple(
        StepChoice(
            rule=left.rule,
            left_out=tuple(
                f"{step_finder.title_of(one)}, {len(one.index)} calls" for one in left.candidates[:MAX_LEFT_OUT]
            ),
        )
        for left in view.steps.why
    )


def _place(view: SessionView, maker: Maker) -> Place | None:
    name = maker.name
    if maker.steps.kind == Kind.FUNCTION and name.file:
        return view.place(name.file, name.line, name.end_line, name.text)
    if name.call_file:
        return view.place(name.call_file, name.call_line, function=name.call_function)
    return view.place(name.file, name.line, name.end_line, name.text) if name.file else None
