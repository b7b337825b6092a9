"""A phase of a running job that began after its steps were traced: a short training, then predictions for the rest.

The whole analysis says what the steps of the job are so far, and that may still be the training when the job is almost
over. Looked for here are the calls that take the time since the traced ones have ceased, chosen as steps are.
Evaluations of a fit that is not over belong to its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.graph import step_graphs, trace_size
from stepscope.derive.steps import choice, step_candidates, step_finder, step_work
from stepscope.model.log.graph import GraphRead
from stepscope.sidecar import capture_size
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.derive.steps.candidate import Candidate
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.api.status import LiveTask
    from stepscope.model.session.session import Session, Worker

    Calls = frozenset[tuple[str, int, int]]

MIN_CALLS = 6
"""Of a phase: four, and those that warm up."""
MIN_BUSY_RATIO = 0.5
"""Share of the time since that its calls take: what lies between them is no work of theirs."""
_MAKERS = frozenset(kinds_with(Trait.MAKER)) - frozenset(kinds_with(Trait.MARK))


class LaterPhase(Struct, frozen=True, kw_only=True):
    """What repeats in it (a ``capture_target.KnownJob``)."""

    steps: Steps
    calls: Calls
    """(worker, kind, name) of the calls that make its steps."""
    events: float | None
    """That a trace of one step would have; None: its graphs have not been read."""

    def calls_of_steps(self) -> Calls:
        """The calls that make its steps."""
        return self.calls

    def calls_of_tasks(self) -> list[tuple[LiveTask, list[tuple[str, int, int]]]]:
        """None: it is not asked for by task."""
        return []


def find(session: Session, traced: Calls) -> LaterPhase | None:
    """The phase that the job is in, None where the traced calls go on, or nothing else takes the time.

    Args:
        session: the recent past.
        traced: (worker, kind, name) of the calls that were traced.
    """
    since_ns = max((_last(worker, traced) for worker in session.workers), default=0)
    every = tuple(candidate for worker in session.workers for candidate in step_candidates.of(worker))
    late = [one for one in every if one.kind in _MAKERS and _since(one, since_ns) and traced.isdisjoint(_calls(one))]
    chosen = choice.choose(late).candidates
    if not chosen:
        return None
    steps = replace(step_finder.build(chosen[0]), candidates=every)
    if step_work.training_beside(steps):
        return None
    return LaterPhase(steps=steps, calls=_calls(chosen[0]), events=_events(session, steps))


def _last(worker: Worker, traced: Calls) -> int:
    """End of the last of the traced calls; 0: none is in sight."""
    records = worker.records
    mine = np.zeros(len(records), bool)
    for key, kind, name in traced:
        if key == worker.info.key:
            mine |= (records.kind == kind) & (records.name == name)
    return int((records.start_ns + records.dur_ns)[mine].max(initial=0))


def _since(one: Candidate, since_ns: int) -> bool:
    """Whether calls repeat since then, most of all of them, and take the time."""
    starts, ends = one.starts, one.ends
    late = starts >= since_ns
    count = int(late.sum())
    if count < MIN_CALLS or 2 * count < len(starts):
        return False
    newest = max(int(one.worker.records.start_ns[-1]), int(ends[-1]))
    return int((ends - starts)[late].sum()) >= MIN_BUSY_RATIO * (newest - int(starts[late][0]))


def _calls(one: Candidate) -> Calls:
    ids = step_candidates.alike(one.worker, one.kind, one.place) | {one.name.id}
    return frozenset((one.worker.info.key, int(one.kind), number) for number in ids)


def _events(session: Session, steps: Steps) -> float | None:
    """As ``trace_size``, of graphs whose nodes are not at hand: all of their nodes, or what the calls have time for
    where there are loops."""
    graphs = step_graphs.build(steps)
    read = [graph for graph in steps.worker.all(GraphRead) if graph.id in graphs]
    if not read:
        return None
    nodes = sum(graph.nodes for graph in read)
    loops = any(graph.role == "body" for graph in read)
    return trace_size.by_count(nodes, capture_size.step_ns(steps), session.manifest.host.cpus, loops=loops)
