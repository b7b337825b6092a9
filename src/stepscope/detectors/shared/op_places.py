"""Where the ops of an op trace come from: the lines of user code that made them, or else that make the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.optrace import line_times

if TYPE_CHECKING:
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place
    from stepscope.tables.records import I64

MAX_PLACES = 2
MIN_RATIO = 0.1
"""Share of the time of the given events from which a further line is named."""


def of_rows(view: SessionView, trace: OpView, rows: I64) -> tuple[Place, ...]:
    """Lines whose ops some events of a trace work for, the one with most of their time first; else where the steps are
    made.

    Args:
        view: the session.
        trace: the trace.
        rows: int64[event], rows of ``trace.trace.events``: ops, or kernels and copies of a device.
    """
    graphs, worker = view.graphs, view.worker
    if graphs is None or worker is None or trace.worker != worker.info.key or not len(rows):
        return of_steps(view)
    index = trace.labels.index[rows]
    durs = trace.trace.events.dur_ns[rows]
    spent = np.bincount(np.maximum(index, 0), weights=durs * (index >= 0), minlength=len(trace.labels.ops))
    lines: dict[line_times.Line, float] = {}
    for op in np.flatnonzero(spent).tolist():
        made = line_times.origin(graphs, graphs.node_of(*trace.labels.ops[op])).place
        if made is not None:
            lines[made] = lines.get(made, 0.0) + float(spent[op])
    known = sorted(lines, key=lambda line: -lines[line])[:MAX_PLACES]
    most = float(durs.sum())
    found = [line for line in known if line is known[0] or lines[line] >= MIN_RATIO * most]
    return tuple(view.place(line.file, line.line, function=line.function) for line in found) or of_steps(view)


def of_steps(view: SessionView) -> tuple[Place, ...]:
    """Where user code makes the steps."""
    fit = view.fit_place()
    if fit is not None:
        return (fit,)
    if view.loop is None or view.call_line is None:
        return ()
    return (view.place(view.loop[0], view.call_line, function=view.loop[1]),)
