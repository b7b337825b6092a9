"""Looks at the graphs of a running job's steps once they have been read: what they show may need a capture to decide.

Steps that spend most of their time in their ops are captured even where no detector asks: which ops, and on which lines
of the program, is the question that is left then.

The nodes come once, some seconds after the first step. Of them only the graphs that steps run are looked at, by the
detectors that need nodes; then they are forgotten. The whole analysis never sees them. Cost: 8 to 20 ms of CPU time
for graphs of 200 to 1,400 nodes, most of it the records'.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.collector.agent_files import graph_blocks
from stepscope.collector.captures import reason
from stepscope.derive.graph import step_graphs, trace_size
from stepscope.derive.view import SessionView
from stepscope.detectors import base, registry
from stepscope.model.log.graph import assemble
from stepscope.model.session.session import Session
from stepscope.sidecar.triggers import repeated_calls
from stepscope.sidecar.triggers.trigger import Wish

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.graph import NodeColumns
    from stepscope.sidecar.triggers.trigger import LastAnalysis

NODE_NS = 11_000
"""CPU time for each node that is expected. Measured: 9 us."""
CPU_RATIO = 0.002
"""Of one core since the beginning: a look at a large graph comes later."""
FREE_NS = 80_000_000
"""CPU time of all looks that is not waited for: some 5,000 nodes, a network of fifty layers with its gradients. A job
of a quarter of a minute would be over before the share of such a graph is earned."""
RETRY_NS = 5_000_000_000
"""Between two looks."""
SOON_NS = 20_000_000_000
"""After the first trace was seen its log is read each second."""
MIN_CALL_RATIO = 0.6
"""Of the steady time, in the call of the step: the ops are what takes time."""
MAX_LOOKS = 8
"""At one process: one that traces again and again is not looked at each time."""
DETECTORS = tuple(d for d in registry.ALL if base.Signal.NODES in d.needs or d.asks is not None)


class Graphs:
    """What the detectors on graphs want captured."""

    what = "reading the graphs"

    def __init__(self, recording: Recording, now_ns: int) -> None:
        """Nothing was seen yet."""
        self._recording = recording
        self._began_ns = now_ns
        self._looks: dict[str, int] = {}
        self._traced_ns: dict[str, int] = {}
        self._not_before_ns = now_ns
        self._cpu_ns = 0
        self._spent_ns = 0
        self.wanted: tuple[Wish, ...] = ()
        """Captures without which detectors cannot decide, or of steps that compute."""
        self.events: float | None = None
        """That a trace of one step would have, by the graphs looked at last."""

    def tick(self, now_ns: int, _last: LastAnalysis) -> bool:
        """Look where graphs are new. The whole analysis never sees them and need not run for them."""
        workers = [w for w in self._recording.drainer.workers.values() if not w.closed]
        for worker in workers:
            if self._recording.manifest.mode != "run" or self._looks.get(worker.key, 0) >= MAX_LOOKS:
                worker.recent.nodes.clear()
        if any(self._soon(worker, now_ns) for worker in workers):
            self._recording.drain(now_ns)
        if now_ns < self._not_before_ns or not any(self._due(worker, now_ns) for worker in workers):
            return False
        self._not_before_ns = now_ns + RETRY_NS
        used = time.thread_time_ns()
        self._look(workers, now_ns)
        used = time.thread_time_ns() - used
        self._cpu_ns += used
        self._spent_ns += used
        return False

    def take_cpu_ns(self) -> int:
        """CPU time of the looks since this was asked."""
        used, self._cpu_ns = self._cpu_ns, 0
        return used

    def _soon(self, worker: WorkerDrain, now_ns: int) -> bool:
        """Whether its first graphs are being read: a short job ends soon after."""
        if "trace" not in worker.types or graph_blocks.ALL_READ in worker.types:
            return False
        return now_ns - self._traced_ns.setdefault(worker.key, now_ns) < SOON_NS

    def _due(self, worker: WorkerDrain, now_ns: int) -> bool:
        """Whether all of its graphs were read, it makes steps, and the look is not too dear at this time."""
        nodes = worker.recent.nodes
        if not nodes or worker.reading or repeated_calls.count(worker) < repeated_calls.MIN_CALLS:
            return False
        expected_ns = NODE_NS * sum(len(part.node) for part in nodes)
        return self._spent_ns + expected_ns <= FREE_NS + CPU_RATIO * (now_ns - self._began_ns)

    def _look(self, workers: list[WorkerDrain], now_ns: int) -> None:
        session = Session(manifest=self._recording.manifest, workers=tuple(w.recent.worker(w.info) for w in workers))
        steps = SessionView(session).steps
        for worker in workers:
            if not self._due(worker, now_ns):
                continue
            self._looks[worker.key] = self._looks.get(worker.key, 0) + 1
            if steps is not None and steps.worker.info.key == worker.key:
                self._ask(session, steps, worker.recent.nodes)
                worker.recent.nodes.clear()

    def _ask(self, session: Session, steps: Steps, nodes: list[NodeColumns]) -> None:
        run = step_graphs.build(steps)
        table = assemble([part for part in nodes if len(part.graph) and int(part.graph[0]) in run])
        key = steps.worker.info.key
        seen = [replace(w, graphs=table) if w.info.key == key else w for w in session.workers]
        view = SessionView(replace(session, workers=seen))
        if view.graphs is not None:
            calls_ns = view.anatomy.mean_ns("call") if view.anatomy is not None else 0.0
            self.events = trace_size.per_step(view.graphs, run, calls_ns, session.manifest.host.cpus)
        _, checked, _ = base.run(DETECTORS, view)
        asked = [Wish(by=reason.of(c.detector), kind=c.capture) for c in checked if c.capture]
        if not asked and not self.wanted and _computes(view):
            asked = [Wish(by=reason.COMPUTE, kind="ops")]
        self.wanted = tuple(dict.fromkeys([*self.wanted, *asked]))


def _computes(view: SessionView) -> bool:
    """Whether the steps spend most of their time in ops whose lines can be told."""
    anatomy = view.anatomy
    return view.graphs is not None and anatomy is not None and anatomy.ratio("call") >= MIN_CALL_RATIO
