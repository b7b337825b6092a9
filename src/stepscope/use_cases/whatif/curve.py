"""Curves of batch size and threads: the job as ``experiments.curves`` wants it, the memory limit, and the report."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from stepscope.experiments import curves
from stepscope.experiments.curves import KNEE, CurveRun, size_of
from stepscope.experiments.schedule import UNCHANGED
from stepscope.model.report.whatif import WhatIfCurve, WhatIfPoint
from stepscope.native.cgroups import cgroup
from stepscope.use_cases.whatif import result

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.experiments.curves import Curve
    from stepscope.experiments.schedule import Arm
    from stepscope.use_cases.whatif.recorded import RecordedRuns


def trace(recorded: RecordedRuns, name: str) -> Curve:
    """Measure a curve.

    Raises:
        NotMeasuredError: the job as it is has no time.
        TargetError: the job as it is failed.
        CaptureError: nothing could be recorded.
    """

    def run(trial: str, number: int, /) -> CurveRun:
        measured, ran = recorded.compared(trial, number, stage=name)
        return CurveRun(measured=measured, peak_bytes=ran.peak_bytes if ran is not None else 0)

    return curves.trace(name, run, cores=len(os.sched_getaffinity(0)), limit_bytes=limit_bytes())


def limit_bytes(host: Path = cgroup.HOST) -> int:
    """Memory that a job started now may hold: what its control groups and the machine have left; 0: unknown."""
    left = [limit - _held(folder) for folder in cgroup.folders("self", "memory", host) if (limit := _limit(folder))]
    words = cgroup.read(host / "proc/meminfo").split()
    free = {key: int(value) << 10 for key, value in itertools.pairwise(words) if value.isdigit()}
    known = [*left, *([free["MemAvailable:"]] if "MemAvailable:" in free else [])]
    return max(1, min(known)) if known else 0


def _limit(folder: Path) -> int:
    return max(0, cgroup.memory_limit(folder))


def _held(folder: Path) -> int:
    """Bytes of a group that the kernel cannot take from its page cache."""
    used = max(cgroup.number(folder / "memory.current"), cgroup.number(folder / "memory.usage_in_bytes"), 0)
    words = cgroup.read(folder / "memory.stat").split()
    stat = {key: int(value) for key, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}
    cache = stat.get("total_inactive_file", stat.get("inactive_file", 0)) + stat.get("active_file", 0)
    return max(0, used - cache)


def report(recorded: RecordedRuns, curve: Curve) -> WhatIfCurve:
    """The curve with its knee and the line to set."""
    unchanged = WhatIfPoint(
        trial=UNCHANGED,
        size=1.0 if curve.name == "batch" else 0.0,
        ns=result.unchanged_ns(recorded),
        rate=_rate(result.unchanged_ns(recorded)),
        ratio=1.0,
        low=0.0,
        high=0.0,
        rounds=curve.experiment.rounds,
        peak_bytes=curve.peaks.get(UNCHANGED, 0),
    )
    points = [_point(recorded, curve, arm) for arm in curve.experiment.arms]
    return WhatIfCurve(
        name=curve.name,
        points=tuple(sorted([unchanged, *points], key=lambda point: point.size)),
        knee=curve.knee,
        lasting=lasting(recorded, curve),
        stopped=curve.stopped,
        limit_bytes=curve.limit_bytes,
    )


def _point(recorded: RecordedRuns, curve: Curve, arm: Arm) -> WhatIfPoint:
    effect = curve.effect(arm)
    ns = round(result.unchanged_ns(recorded) * arm.ratio) if arm.pairs else 0
    return WhatIfPoint(
        trial=arm.candidate.trial,
        size=float(size_of(arm.candidate.trial)),
        ns=ns,
        rate=_rate(ns),
        ratio=arm.ratio,
        low=effect.low if effect is not None else 0.0,
        high=effect.high if effect is not None else 0.0,
        rounds=len(arm.pairs),
        peak_bytes=curve.peaks.get(arm.candidate.trial, 0),
        note=result.failed(arm),
    )


def _rate(ns: int) -> float:
    return 1e9 / ns if ns else 0.0


def lasting(recorded: RecordedRuns, curve: Curve) -> str:
    """The line that sets the knee; "" if nothing is to be changed."""
    if not curve.knee:
        return ""
    if curve.name == "threads":
        return result.lasting(curve.knee) if min(curve.ratios.values()) < KNEE else ""
    size = batch_size(recorded)
    factor = size_of(curve.knee)
    now = f"batch_size={max(1, int(size * factor))} (now {size})" if size else f"batch_size times {factor}"
    return f"{now}, or the same in .batch(); tune the learning rate with it"


def batch_size(recorded: RecordedRuns) -> int:
    """Samples of a step of the unchanged job; 0: unknown."""
    plain = next((ran for ran in recorded.runs if not ran.trial), None)
    if plain is None:
        return 0
    rates = plain.report.session.throughput
    return round(rates.samples_per_s / rates.steps_per_s) if rates.samples_per_s and rates.steps_per_s else 0
