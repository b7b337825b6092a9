"""The memory of a job without a trial that changes it, and with it: pages, faults, and what translation costs; and the
CPU time of its steps.

A change of memory leaves the job's work as it is: what it saves in faults, releases and misses is CPU time. That of a
step can be compared on a machine that others use as well, where the time on the wall says nothing.

Runs are short, so that their memory is looked at every few seconds, in all alike (``LaunchOptions.memory_looks_ns``).
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from stepscope.causes.system import translation
from stepscope.derive.view import SessionView
from stepscope.experiments import statistics
from stepscope.model.report.whatif import WhatIfMemory
from stepscope.store import open_session
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.experiments.statistics import Effect

MIN_LOOKS, MIN_MADE = 3, 8
"""Samples of the process, about one a second, and steps between them, from which a mean is worth something."""


def of_run(session: Path, steps_per_s: float) -> WhatIfMemory | None:
    """The largest process of a run; None if it ended before the first look."""
    try:
        view = SessionView(open_session(session))
        maps = translation.maps(view)
    except SessionError:
        return None
    if not maps:
        return None
    one = maps[0]
    faults = one.minor_faults_per_s
    cost = one.translation
    return WhatIfMemory(
        anonymous_bytes=one.anonymous_bytes,
        huge_bytes=one.huge_bytes,
        hole_bytes=one.layout.hole_bytes,
        layout=one.layout.verdict,
        faults_per_step=faults / steps_per_s if faults is not None and steps_per_s else None,
        miss_ns=cost.walk_ns if cost is not None else None,
        translation_ratio=cost.ratio if cost is not None else None,
        cpu_ns_per_step=_cpu_ns(view),
    )


def _cpu_ns(view: SessionView) -> float | None:
    """CPU time of the process that makes the steps, for each of those that ended between two of its samples."""
    steps = view.steps
    if steps is None or not steps.steady_count:
        return None
    rows = view.session.process
    rows = rows.take(rows.pid == steps.worker.info.pid)
    began, ended = int(steps.starts[steps.steady].min()), int(steps.ends[steps.steady].max())
    rows = rows.take((rows.at_ns >= began) & (rows.at_ns <= ended))
    if len(rows) < MIN_LOOKS:
        return None
    made = int(((steps.ends > rows.at_ns[0]) & (steps.ends <= rows.at_ns[-1])).sum())
    spent = rows.cpu_user_ns + rows.cpu_system_ns
    return float(spent[-1] - spent[0]) / made if made >= MIN_MADE else None


def cpu_effect(before: Sequence[float], after: Sequence[float]) -> Effect | None:
    """CPU time of a step, one of each side per round, each of which was a look; None with too few rounds."""
    if len(before) < statistics.MIN_PAIRS or not all((*before, *after)):
        return None
    return statistics.paired(before, after, looks=len(before))


def typical(runs: Sequence[WhatIfMemory]) -> WhatIfMemory | None:
    """The medians over some runs; None without any."""
    if not runs:
        return None
    return WhatIfMemory(
        anonymous_bytes=round(median(one.anonymous_bytes for one in runs)),
        huge_bytes=round(median(one.huge_bytes for one in runs)),
        hole_bytes=round(median(one.hole_bytes for one in runs)),
        layout=runs[-1].layout,
        faults_per_step=_median([one.faults_per_step for one in runs]),
        miss_ns=_median([one.miss_ns for one in runs]),
        translation_ratio=_median([one.translation_ratio for one in runs]),
        cpu_ns_per_step=_median([one.cpu_ns_per_step for one in runs]),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
