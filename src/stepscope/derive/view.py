"""Everything that detectors may look at, computed once and on demand."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive import (
    allocators,
    anatomy,
    contention,
    crowd,
    dips,
    disk_input,
    eager,
    faults,
    gpu,
    graph_growth,
    hot,
    input_cause,
    intervals,
    lanes,
    lock_waits,
    memory,
    named_times,
    network,
    pipeline,
    progress,
    rebuilds,
    resources,
    rest,
    retraces,
    rising,
    stalls,
    startup,
    statement_role,
    steps,
    tasks,
    traced_ops,
    traces,
    uploads,
)
from stepscope.derive.graph_index import GraphIndex
from stepscope.derive.step_ops import StepOps
from stepscope.derive.step_validation import TRAIN_ROLES
from stepscope.model.events import DatasetMade, Framework, ModelBuilt, Traced
from stepscope.model.finding import Place
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.allocators import Serving
    from stepscope.derive.anatomy import Anatomy
    from stepscope.derive.contention import Contention
    from stepscope.derive.crowd import Crowd
    from stepscope.derive.dips import Dips
    from stepscope.derive.disk_input import DiskInput
    from stepscope.derive.eager import EagerTime
    from stepscope.derive.faults import Faults
    from stepscope.derive.gpu import Gpu
    from stepscope.derive.graph_growth import GraphGrowth
    from stepscope.derive.hot import HotSpot, Sample
    from stepscope.derive.input_cause import InputCause
    from stepscope.derive.lock_waits import LockWaits
    from stepscope.derive.loop_source import Role
    from stepscope.derive.memory import MemoryGrowth
    from stepscope.derive.named_times import NamedTime
    from stepscope.derive.network import Network
    from stepscope.derive.pipeline import Pipeline
    from stepscope.derive.progress import Standstill
    from stepscope.derive.rebuilds import Rebuilds
    from stepscope.derive.resources import Resources
    from stepscope.derive.retraces import RetraceGroup
    from stepscope.derive.rising import Rise
    from stepscope.derive.stalls import Stalls
    from stepscope.derive.startup import Startup
    from stepscope.derive.steps import Steps
    from stepscope.derive.traced_ops import TracedOps
    from stepscope.derive.traces import OpTraces
    from stepscope.derive.uploads import Uploads
    from stepscope.model.events import Name
    from stepscope.model.finding import Task
    from stepscope.model.session import Session, Worker


class SessionView:
    """Read-only view of one session. All results are for the steady steps of the thread that makes them."""

    def __init__(self, session: Session) -> None:
        self.recorded = session
        """As it was recorded; ``session`` leaves out what lies in rests, and joins threads (``rest``, ``lanes``)."""
        self.session = replace(session, workers=[lanes.joined(rest.attached(worker)) for worker in session.workers])

    @cached_property
    def steps(self) -> Steps | None:
        """The steps, None when nothing repeats."""
        found = steps.find(self.session.workers)
        return found if found is not None and found.steady_count > 0 else None

    @property
    def worker(self) -> Worker | None:
        """The process that makes the steps."""
        return self.steps.worker if self.steps else None

    @cached_property
    def names(self) -> dict[int, Name]:
        """Name lines of the worker."""
        return steps.names_of(self.steps.worker) if self.steps else {}

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The input pipeline."""
        return pipeline.build(self.steps, self.op_traces.views) if self.steps else None

    @cached_property
    def op_traces(self) -> OpTraces:
        """Op traces of the process that makes the steps; of any where none is seen to."""
        return traces.build(self.session, self.steps)

    @cached_property
    def anatomy(self) -> Anatomy | None:
        """The split of the mean step."""
        if self.steps is None or self.pipeline is None:
            return None
        return anatomy.build(self.steps, self.pipeline.wait_ns_per_execution or 0.0)

    @property
    def hidden_wait(self) -> bool:
        """The input wait may hide in the compiled step and nothing could show it."""
        if self.steps is None or self.pipeline is None or self.pipeline.windows:
            return False
        if self.steps.kind == Kind.EXECUTION:
            eager = any(m.run_eagerly for m in self.steps.worker.all(ModelBuilt))
            return not eager and self._pulls_inside()
        return self.steps.kind == Kind.FUNCTION and self._iterates_inside()

    def _iterates_inside(self) -> bool:
        """The user made datasets, and nobody pulls from them in Python: the function does."""
        if self.steps is None or self.pipeline is None:
            return False
        records = self.steps.worker.records
        pulled = ((records.kind == Kind.NEXT) & (records.thread == self.steps.thread)).any()
        return any(d.file for d in self.steps.worker.all(DatasetMade)) and not pulled

    def _pulls_inside(self) -> bool:
        """The steps run in fit, evaluate or predict, whose compiled functions take an iterator rather than a batch."""
        if self.steps is None:
            return False
        records = self.steps.worker.records
        ids = [n.id for n in self.names.values() if n.role in {"fit", "evaluate", "predict"}]
        loops = (records.kind == Kind.LOOP) & (records.thread == self.steps.thread) & np.isin(records.name, ids)
        starts = records.start_ns[loops]
        spans = intervals.merge(starts, starts + records.dur_ns[loops])
        return 2 * intervals.total(intervals.clip(spans, self.steps.windows)) > self.steps.steady_ns

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Stack samples of the step thread within the steady steps."""
        return hot.samples(self.steps, self.anatomy) if self.steps and self.anatomy else ()

    @property
    def sampled(self) -> bool:
        """There are stack samples of the step thread, at any time of the run."""
        if self.steps is None:
            return False
        records = self.steps.worker.records
        return bool(((records.kind == Kind.SAMPLE) & (records.thread == self.steps.thread)).any())

    @cached_property
    def loop(self) -> tuple[str, str] | None:
        """(file, function) of the user's loop."""
        return hot.loop_function(self.samples, self.steps) if self.steps else None

    def hot_spots(self, *components: str) -> tuple[HotSpot, ...]:
        """Where samples of these components fall."""
        return hot.hot_spots(self.samples, frozenset(components), self.loop)

    @cached_property
    def retraces(self) -> tuple[RetraceGroup, ...]:
        """Repeated traces by cause."""
        return retraces.build(self.steps) if self.steps else ()

    @cached_property
    def rises(self) -> tuple[Rise, ...]:
        """Components of the step that take longer and longer."""
        return rising.build(self)

    @cached_property
    def stalls(self) -> tuple[Stalls, ...]:
        """Components of the step that stall with a period."""
        return stalls.build(self)

    @cached_property
    def crowd(self) -> Crowd | None:
        """How many threads of the job share its CPUs."""
        return crowd.build(self)

    @cached_property
    def lock_waits(self) -> LockWaits | None:
        """How long the step's thread waits for the interpreter lock."""
        return lock_waits.build(self)

    @cached_property
    def startup(self) -> Startup | None:
        """What was done before the first steady step."""
        return startup.build(self)

    @cached_property
    def standstill(self) -> Standstill | None:
        """From the last record of work to the end of the job."""
        return progress.build(self.session, self.steps)

    @cached_property
    def trains(self) -> bool:
        """Whether anything changes a model: a loop that only predicts may keep its results, or wait for requests."""
        steps = self.steps
        if steps is None:
            return any(w.all(ModelBuilt) for w in self.session.workers)
        records = steps.worker.records
        train = [n.id for n in self.names.values() if n.role in TRAIN_ROLES]
        trained = (records.kind == Kind.EXECUTION) & np.isin(records.name, train)
        return bool((trained | np.isin(records.kind, [Kind.APPLY, Kind.SESSION_RUN])).any() or self.updating_functions)

    @cached_property
    def memory_growth(self) -> MemoryGrowth | None:
        """How the memory of the step's process grows."""
        return memory.build(self.session, self.steps) if self.steps else None

    @cached_property
    def faults(self) -> Faults | None:
        """Page faults of the step's process."""
        return faults.build(self.session, self.steps)

    @cached_property
    def serving(self) -> Serving:
        """Which allocator serves the step's process, and why its memory is faulted in."""
        return allocators.build(self.session, self.worker, self.steps)

    @cached_property
    def rebuilds(self) -> Rebuilds | None:
        """What is built or loaded again and again."""
        return rebuilds.build(self)

    @cached_property
    def graph_growth(self) -> GraphGrowth | None:
        """How the graph of a session grows."""
        return graph_growth.build(self)

    @cached_property
    def eager(self) -> EagerTime | None:
        """What runs op by op from Python."""
        if self.steps is not None and self.steps.kind == Kind.SESSION_RUN:
            return None  # a program of sessions adds ops to a graph: nothing of it runs eagerly
        keras = self.steps is not None and self.steps.kind in {Kind.EXECUTION, Kind.LOOP}
        return eager.build(self.samples, keras=keras)

    @property
    def eager_setting(self) -> str | None:
        """Which setting makes the steps run eagerly, see ``eager.setting``; None where none does."""
        of_keras = self.steps is not None and self.steps.kind in {Kind.EXECUTION, Kind.LOOP}
        return eager.setting(self.eager, keras=of_keras) if self.steps is not None else None

    @cached_property
    def traced_ops(self) -> TracedOps | None:
        """The newest op trace, joined to the graph table."""
        return traced_ops.build(self.session, self.worker)

    @cached_property
    def graphs(self) -> GraphIndex | None:
        """The nodes of the graphs of the process that makes the steps; None where none was read."""
        return GraphIndex(self.worker) if self.worker is not None and len(self.worker.graphs) else None

    @cached_property
    def step_ops(self) -> StepOps | None:
        """The ops of the traced steps with their nodes; None without a trace of steps, or without graphs."""
        trace = self.op_traces.main
        return StepOps(trace, self.graphs) if trace is not None and self.graphs is not None else None

    @property
    def predicts(self) -> bool:
        """The steps are calls of Keras' predict or evaluate."""
        steps = self.steps
        return steps is not None and steps.kind in {Kind.EXECUTION, Kind.LOOP} and steps.anchor.purpose != "training"

    @cached_property
    def contention(self) -> Contention | None:
        """Who else used the CPUs."""
        return contention.build(self)

    @cached_property
    def input_cause(self) -> InputCause | None:
        """Why steps wait for their input."""
        return input_cause.build(self)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """What the job does again and again, in all of its processes."""
        return tasks.build(self)

    @cached_property
    def resources(self) -> Resources | None:
        """What the resources did, second by second."""
        return resources.build(self)

    @cached_property
    def dips(self) -> tuple[Dips, ...]:
        """Dips of utilisation with a period."""
        return dips.build(self)

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """What the GPUs did."""
        return gpu.build(self)

    @cached_property
    def network(self) -> Network | None:
        """The input that comes over a network."""
        return network.build(self)

    @cached_property
    def disk_input(self) -> DiskInput | None:
        """The input that comes from a disk."""
        return disk_input.build(self)

    @cached_property
    def uploads(self) -> Uploads | None:
        """Seconds with uploads against those without."""
        return uploads.build(self)

    @property
    def frameworks(self) -> dict[str, str]:
        """Name to version of all frameworks seen, the step worker's first."""
        found: dict[str, str] = {}
        for worker in [*([self.worker] if self.worker else []), *self.session.workers]:
            for event in worker.all(Framework):
                found.setdefault(event.name, event.version)
        return found

    def named_times(self, *kinds: Kind) -> tuple[NamedTime, ...]:
        """Time by name on the step thread within the steady steps, longest first. Counted short calls included."""
        return named_times.build(self.steps, self.names, kinds) if self.steps else ()

    @cached_property
    def updating_functions(self) -> set[int]:
        """Names of the functions whose graphs change variables: training steps."""
        if self.steps is None:
            return set()
        updating = {(t.file, t.line) for t in self.steps.worker.all(Traced) if t.updates > 0}
        return {n.id for n in self.names.values() if n.file and (n.file, n.line) in updating}

    def fit_place(self) -> Place | None:
        """Where user code calls the Keras loop that the steps run in."""
        for row in self.named_times(Kind.LOOP):
            if row.name.call_file:
                return self.place(row.name.call_file, row.name.call_line, function=row.name.call_function)
        return None

    def source_of(self, file: str) -> str | None:
        """Text of a user file as it was when it ran."""
        return self.session.sources.get(file)

    def role_of_statement(self, spot: HotSpot) -> Role:
        """What the loop statement of a hot spot does for the step."""
        return statement_role.build(self, spot)

    @cached_property
    def model_lines(self) -> frozenset[int]:
        """Lines of the loop that compute a part of the model op by op, between the calls of the step."""
        return statement_role.model_lines(self.samples, self.loop)

    @cached_property
    def call_line(self) -> int | None:
        """Line of the user's loop that makes the step's call: by samples, else where it was first called from."""
        if self.steps is None:
            return None
        lines = [f.line for s in self.samples if s.component == "call" if (f := hot.statement_of(s, self.loop))]
        if lines:
            return max(set(lines), key=lines.count)
        anchor = self.steps.anchors
        return anchor.call_line if anchor is not None and anchor.call_line else None

    def place(self, file: str, line: int, end_line: int = 0, function: str = "") -> Place:
        """A place with its file relative to the job's working directory where it lies below it."""
        cwd = self.session.manifest.cwd
        if cwd and file.startswith(cwd.rstrip("/") + "/"):
            file = os.path.relpath(file, cwd)
        return Place(file=file, line=line, end_line=end_line if end_line > line else None, function=function)

    def dataset_place(self, made: DatasetMade) -> Place | None:
        """Where user code made a dataset."""
        return self.place(made.file, made.line, function=made.function) if made.file else None
