"""How often something rare and long happens, such as an evaluation in a callback, and how long it usually takes.

In a job with gaps (``derive.steps.gaps``) few steps are timed, and which of them hold such a call is chance. Nothing is
extrapolated from their number:

- What gaps record, too (``Trait.STAYS``), is counted over the whole run, as the steps are: each part of a gap says how
  many it had, and how far a call may be off in it bounds the answer.
- Of other calls, the steps between two of them are known where all steps between them were timed. Where no such two
  were seen, the longest stretch without a call is a lower bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps import gaps
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import F64, I64, Bool, Gaps

_STAYS = frozenset(kinds_with(Trait.STAYS))
CLOSE = 0.05
"""Width of an answer's bounds from which it is approximate."""
SPREAD = 2.0
"""Standard errors on both sides of a mean distance."""


class Rare(Struct, frozen=True, kw_only=True):
    """Calls of the steps' thread while its steps were counted."""

    calls: int
    every: float
    """Steps from one call to the next; of a single call: all steps."""
    low: float
    high: float
    """Bounds of ``every``; high infinite: only a lower bound is known, which ``every`` then is."""
    usual_ns: float
    """Median time of a call."""

    def often(self, one: str, many: str) -> str:
        """``every 10 batches``, ``about every 37 batches``, ``every 40 batches or more``."""
        if self.high == np.inf:
            return f"every {self.low:,.0f} {many} or more"
        whole = round(self.every)
        if self.low <= whole <= self.high < self.low + 1:
            return f"every {f'{whole:,} {many}' if whole > 1 else one}"
        said = f"every {self.every:.3g} {many}"
        return said if self.high - self.low < CLOSE * self.every else f"about every {self.every:.2g} {many}"


def of(steps: Steps, chosen: Bool) -> Rare | None:
    """Of the records of the worker that ``chosen`` marks. None: no two of them, nor a stretch without any, was seen."""
    return counted(steps, chosen) or _in_windows(steps, chosen)


def counted(steps: Steps, chosen: Bool) -> Rare | None:
    """Of all of them in the run. None: there is none, or gaps do not hold records of its kind.

    Calls after the last step that was counted say nothing: a process that was killed lost the count of its last gap.
    """
    records, parts = steps.worker.records, _parts(steps)
    counted_ns = parts.end_ns[parts.calls > 0].max(initial=0)
    until = max(int(steps.ends[-1]), steps.span[1] if steps.steady.any() else 0, int(counted_ns))
    mine = chosen & (records.start_ns >= steps.starts[0]) & (records.start_ns <= until)
    kinds = {Kind(kind) for kind in np.unique(records.kind[mine]).tolist()}
    if not mine.any() or (len(steps.worker.gaps) and not kinds <= _STAYS):
        return None
    starts, usual = records.start_ns[mine], float(np.median(records.dur_ns[mine]))
    calls = len(starts)
    if calls == 1:
        return Rare(calls=1, every=float(steps.count), low=steps.count, high=steps.count, usual_ns=usual)
    (first, last), off = _passed(steps, starts[[0, -1]])
    between = float(last - first)
    return Rare(
        calls=calls,
        every=between / (calls - 1),
        low=max(0.0, between - off) / (calls - 1),
        high=(between + off) / (calls - 1),
        usual_ns=usual,
    )


def _parts(steps: Steps) -> Gaps:
    """The parts of gaps that counted calls which go with the steps."""
    return gaps.counting(steps.worker.gaps, steps.kind)


def _passed(steps: Steps, times: I64) -> tuple[F64, float]:
    """Number of steps before each time, and how far all of these may be off: a part of a gap knows only how many."""
    parts = _parts(steps)
    found: F64 = np.searchsorted(steps.starts, times, side="right").astype(float)
    total = int(parts.calls.sum())
    if not steps.skipped or not total:
        return found, 0.0
    scale = steps.skipped / total
    lengths = np.maximum(parts.end_ns - parts.start_ns, 1)
    within = np.clip((times[:, None] - parts.start_ns) / lengths, 0.0, 1.0)
    found += scale * (within * parts.calls).sum(1)
    off = scale * (parts.calls * ((within > 0) & (within < 1))).sum()
    return found, float(off)


def apart(steps: Steps, at: I64) -> I64:
    """How many steps lie between each of some steps and the next, where all between them were timed."""
    run = np.cumsum(steps.unobserved)[at]
    found: I64 = np.diff(at)[run[1:] == run[:-1]]
    return found


def by_distances(distances: I64 | F64, usual_ns: float) -> Rare:
    """By the steps from one to the next, of two or more."""
    mean, many = float(distances.mean()), len(distances)
    off = SPREAD * float(distances.std()) / many**0.5 if many > 1 else 0.0
    return Rare(calls=many + 1, every=mean, low=mean - off, high=mean + off, usual_ns=usual_ns)


def _in_windows(steps: Steps, chosen: Bool) -> Rare | None:
    """By runs of steps that were timed without a gap between them."""
    records = steps.worker.records
    starts = records.start_ns[chosen]
    step = np.searchsorted(steps.starts, starts, side="right") - 1
    seen = (step >= 0) & ~steps.unobserved[step] & (starts < steps.ends[step])
    if not seen.any():
        return None
    at, usual = np.unique(step[seen]), float(np.median(records.dur_ns[chosen][seen]))
    distances = apart(steps, at)
    if len(distances):
        return by_distances(distances, usual)
    edges = np.flatnonzero(np.append(steps.unobserved, True))
    stretches = np.diff(np.unique(np.concatenate([[-1], edges, at])))
    least = float(stretches.max(initial=1))
    return Rare(calls=len(at), every=least, low=least, high=float("inf"), usual_ns=usual)
