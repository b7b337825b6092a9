"""The replica of a strategy in one process that the others wait for, by the own times of all in traced steps.

Serves DST011.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.cluster import blame
from stepscope.derive.optrace.exchange import replica_times

if TYPE_CHECKING:
    from stepscope.derive.cluster.blame import Blame
    from stepscope.derive.optrace.exchange.replica_times import ReplicaTimes
    from stepscope.derive.optrace.line_times import Line
    from stepscope.derive.view import SessionView

MIN_TRACED = 5
"""Fewest traced steps that say for whom others wait."""


class Replicas(Struct, frozen=True, kw_only=True):
    """The replicas, and for whom they wait."""

    times: ReplicaTimes
    blame: Blame
    ref: str
    """The capture, as used in evidence."""

    def lines_beyond(self, replica: int) -> list[tuple[Line, float]]:
        """Lines whose ops take longer on a replica than on the median of the others, by ns a step, longest first."""
        steps = len(self.times.period_ns)
        others = [lines for j, lines in enumerate(self.times.lines) if j != replica]
        more = [
            (line, (ns - float(np.median([one.get(line, 0.0) for one in others]))) / steps)
            for line, ns in self.times.lines[replica].items()
        ]
        return sorted(((line, ns) for line, ns in more if ns > 0), key=lambda pair: -pair[1])


def why_not(view: SessionView) -> str:
    """Why the detector does not apply; "" if graphs have nodes on several devices of one kind, or none was read."""
    if view.graphs is None:
        return ""
    table = view.graphs.table
    devices = {table.strings[number].rpartition("device:")[2] for number in np.unique(table.device).tolist()} - {""}
    kinds = [device.partition(":")[0] for device in devices]
    return "" if len(set(kinds)) < len(kinds) else "no replicas on several devices of one process"


def build(view: SessionView) -> Replicas | None:
    """The replicas; None without an op trace of enough steps in which several devices exchange tensors."""
    trace, index = view.traces.main, view.graphs
    if trace is None or index is None or len(trace.periods) < MIN_TRACED:
        return None
    times = replica_times.build(trace, index)
    if times is None:
        return None
    found = blame.of_steps(times.own_ns, times.exchange_ns, times.period_ns)
    return Replicas(times=times, blame=found, ref=trace.ref)
