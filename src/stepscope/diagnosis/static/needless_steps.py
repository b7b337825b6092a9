"""What a call of fit, evaluate or predict costs that goes over its data more often than is meant.

The source says that its number of steps counts samples (``Hit.excess``), the run how long these steps took and how many
samples a batch has: of as many passes in each epoch, one is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.derive.numeric import intervals
from stepscope.detectors.base import cost_of, severity_of
from stepscope.diagnosis.static.static_check import StaticHit
from stepscope.model.log.events import BatchSeen
from stepscope.tables.findings import Evidence, Finding
from stepscope.tables.units import format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

MIN_RATIO = 0.03
"""Share of steady wall time from which a finding is low instead of info (decision 0003)."""


def finding(view: SessionView, item: StaticHit) -> Finding | None:
    """The finding of a hit whose call the steps belong to, without a place; None if the run does not bear it out."""
    excess, steps = item.hit.excess, view.steps
    if excess is None or steps is None or not steps.steady_ns:
        return None
    call = excess.call
    rows = [
        row
        for row in view.named_times(Kind.LOOP)
        if row.name.call_file == call.path and call.line <= row.name.call_line <= call.end_line
    ]
    if not rows:
        return None
    ids = {row.name.id for row in rows}
    records = steps.worker.records
    loops = records.take((records.kind == Kind.LOOP) & np.isin(records.name, list(ids)))
    begun = set(loops.start_ns.tolist())
    sizes = {batch.size for batch in steps.worker.all(BatchSeen) if batch.loop in begun and batch.size}
    passes = min(sizes, default=excess.factor)
    share = min(1.0, sum(row.total_ns for row in rows) / steps.steady_ns)
    needless = 1.0 - 1.0 / max(1, passes)
    if share * needless < MIN_RATIO:
        return None
    spans = intervals.merge(loops.start_ns, loops.start_ns + loops.dur_ns)
    first, last = steps.span
    stepping = intervals.clipped_sum(*spans, (np.array([first]), np.array([last]))).sum() / max(
        1, intervals.total(spans)
    )
    return replace(
        item.finding,
        title=f"{item.hit.message}: each epoch goes over the data {passes} times; its steps take "
        f"{format_ratio(share)} of the time",
        severity=severity_of(share * needless),
        evidence=(
            Evidence(metric="passes_per_epoch", value=passes, unit="passes"),
            Evidence(metric="steps_ratio", value=share, unit="ratio", threshold=MIN_RATIO),
            *item.finding.evidence,
        ),
        # What a call does before its steps and after them stays.
        cost=cost_of(view, share * needless, low=share * needless * float(stepping), basis="modelled"),
        seen=True,
    )
