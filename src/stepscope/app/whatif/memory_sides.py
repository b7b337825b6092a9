"""The memory of a job without a trial that changes it, and with it: pages, faults, and what translation costs.

Runs are short, so that their memory is looked at every few seconds, in all alike (``LaunchOptions.memory_looks_ns``).
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from stepscope.causes.system import translation
from stepscope.derive.view import SessionView
from stepscope.errors import SessionError
from stepscope.model.report.whatif import WhatIfMemory
from stepscope.store import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def of_run(session: Path, steps_per_s: float) -> WhatIfMemory | None:
    """The largest process of a run; None if it ended before the first look."""
    try:
        maps = translation.maps(SessionView(open_session(session)))
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
    )


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
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
