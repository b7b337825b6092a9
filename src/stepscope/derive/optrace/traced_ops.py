"""The op trace of the session that is joined to the graph table: the newest of the process that makes the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import line_times
from stepscope.derive.optrace.steps import traced_steps
from stepscope.errors import DamagedError, SessionError
from stepscope.model.records import RecordTable
from stepscope.model.session.session import Worker, WorkerInfo

if TYPE_CHECKING:
    from stepscope.derive.optrace.line_times import OpLines
    from stepscope.model.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedOps:
    """A trace, joined."""

    trace: str
    """Its name in the session."""
    steps: int
    """That it shows; 0: none."""
    step_ns: int
    """Mean duration of those that are whole; 0 without any."""
    lines: OpLines
    index: GraphIndex
    problem: str = ""
    """Why an op trace could not be read; what is there is then of an older one, or empty."""


def build(session: Session, worker: Worker | None) -> TracedOps | None:
    """The newest readable trace of ``worker``, of any process where that one has none; None without traces.

    Cost: reads one trace, a second for some million events.
    """
    traces = sorted(session.op_traces, key=lambda t: t.name, reverse=True)
    if worker is not None and any(t.worker == worker.info.key for t in traces):
        traces = [t for t in traces if t.worker == worker.info.key]
    problem = ""
    for stored in traces:
        index = GraphIndex(_worker_of(session, stored.worker))
        try:
            trace = stored.load()
            lines = line_times.build(trace, index)
        except DamagedError:
            raise
        except SessionError as error:
            problem = problem or str(error)
            continue
        found = traced_steps.find(trace)
        count = len(found[0]) if found else 0
        mean = int(found[0].whole_ns.mean()) if count else 0
        return TracedOps(trace=stored.name, steps=count, step_ns=mean, lines=lines, index=index, problem=problem)
    if not problem:
        return None
    nothing = line_times.OpLines(ops=(), total_ps=0, joined_ps=0)
    return TracedOps(
        trace="", steps=0, step_ns=0, lines=nothing, index=GraphIndex(_worker_of(session, "")), problem=problem
    )


def _worker_of(session: Session, key: str) -> Worker:
    """A process of the session; one that has made nothing where the trace is of none."""
    nobody = Worker(info=WorkerInfo(key="", pid=0), records=RecordTable.empty())
    return next((worker for worker in session.workers if worker.info.key == key), nobody)
