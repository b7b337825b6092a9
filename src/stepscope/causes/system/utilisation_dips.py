"""Periodic dips of utilisation, and what the steps do in them.

Seconds are compared with seconds: a dip is a second in which CPU or GPU do much less than usual. What the step's thread
does in those seconds beyond its usual work is what runs with that period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.causes.system import resources
from stepscope.model.report.components import COMPONENTS, ComponentName
from stepscope.tables.units import Ratio

if TYPE_CHECKING:
    from stepscope.causes.system.resources import Resources
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.records import F64, I64, Bool


class DipLimits(Struct, frozen=True, kw_only=True):
    """What a dip is, and when dips are periodic."""

    dip_ratio: Ratio = Ratio(0.6)
    """Share of the usual (median) utilisation: less is a dip."""
    min_usual: float = 0.2
    """Cores, or share of a GPU, that must usually be busy: dips of an idle resource mean nothing."""
    min_dips: int = 5
    """Fewer may be regular by chance."""
    min_period_s: float = 3.0
    """Samples come once a second: closer dips are noise between neighbouring samples."""
    max_dip_ratio: Ratio = Ratio(0.5)
    """Dips that last longer than half of the time are the rule."""
    max_spread: float = 0.35
    """Standard deviation over mean of the distances between dips, at most: for random dips it is near 1."""


class Dips(Struct, frozen=True, kw_only=True):
    """Periodic dips of one kind of utilisation."""

    what: str
    """CPU or GPU."""
    count: int
    period_s: float
    spread: float
    usual: float
    """Cores, or share of the device."""
    within: float
    share_ratio: float
    """Share of the time in dips."""
    lost_ratio: float
    """Share of the time that is lost, from the steps made in dips and outside them."""
    component: ComponentName | Literal[""]
    """The component of the step that takes more time in dips."""
    others_cores: float
    """Cores that other processes use in dips beyond their use outside."""


def build(view: StepsView, limits: DipLimits) -> tuple[Dips, ...]:
    """Dips of CPU and of the GPUs; empty if there are none."""
    used = view.get(resources.build)
    if used is None:
        return ()
    found = [_of("CPU", used.looks.cpu_cores, view, used, limits)]
    table = view.session.gpus
    if len(table) and (table.busy_percent >= 0).all():
        at = np.unique(table.at_ns)
        busy = np.array([table.busy_percent[table.at_ns == t].mean() for t in at]) / 100.0
        middle = (used.edges[1:] + used.edges[:-1]) / 2
        found.append(_of("GPU", np.interp(middle, at.astype(float), busy), view, used, limits))
    return tuple(d for d in found if d is not None)


def _of(what: str, use: F64, view: StepsView, resources: Resources, limits: DipLimits) -> Dips | None:
    usual = float(np.median(use))
    low: Bool = use < limits.dip_ratio * usual
    starts = np.flatnonzero(low & ~np.concatenate(([False], low[:-1])))
    share = float(resources.looks.seconds[low].sum() / resources.looks.seconds.sum())
    if usual < limits.min_usual or len(starts) < limits.min_dips or share > limits.max_dip_ratio:
        return None
    distances = np.diff(resources.edges[starts]) / 1e9
    period = float(distances.mean())
    spread = float(distances.std() / period)
    if spread > limits.max_spread or period < limits.min_period_s:
        return None
    seconds = resources.looks.seconds
    rate, rate_low = (float(np.average(resources.progress[m], weights=seconds[m])) for m in (~low, low))
    return Dips(
        what=what,
        count=len(starts),
        period_s=period,
        spread=spread,
        usual=usual,
        within=float(np.average(use[low], weights=seconds[low])),
        share_ratio=share,
        lost_ratio=share * max(0.0, 1.0 - rate_low / rate) if rate > 0 else 0.0,
        component=_component(view, resources.edges, low),
        others_cores=float(resources.others_cores[low].mean() - resources.others_cores[~low].mean()),
    )


def _component(view: StepsView, edges: I64, low: Bool) -> ComponentName | Literal[""]:
    """The component with the largest increase of time per step in dips; "" for none."""
    anatomy = view.anatomy
    if len(anatomy.per_step) == 0:
        return ""
    lo, hi = anatomy.steps.windows
    at = np.minimum(np.searchsorted(edges, (lo + hi) // 2, side="right") - 1, len(low) - 1)
    inside = (at >= 0) & low[at]
    if not inside.any() or inside.all():
        return ""
    more = anatomy.per_step[inside].mean(axis=0) - anatomy.per_step[~inside].mean(axis=0)
    best = int(np.argmax(more))
    return list(COMPONENTS)[best] if more[best] > 0 else ""
