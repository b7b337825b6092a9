"""What most analyses of a session start from, computed once and on demand; ``get`` keeps what the others find."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from stepscope.derive.graph import step_graphs
from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.input import pipeline
from stepscope.derive.machine import thread_cpu
from stepscope.derive.optrace import chosen_traces
from stepscope.derive.optrace.node_costs import NodeCosts
from stepscope.derive.optrace.shape_costs import ShapeCosts
from stepscope.derive.python import hot_spots, notebook_cells, ready_time, stack_samples
from stepscope.derive.steps import anatomy, joined_threads, named_times, step_finder, steps
from stepscope.model.log.events import Framework
from stepscope.tables.place import Place
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from stepscope.derive.input.pipeline import Pipeline
    from stepscope.derive.optrace.chosen_traces import ChosenTraces
    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.log.events import DatasetMade, Name
    from stepscope.model.report.components import ComponentName
    from stepscope.model.session.session import Session, Worker
    from stepscope.tables.nearby import NotebookCell

T = TypeVar("T")


class SessionView:
    """Read-only view of one session. All results are for the steady steps of the thread that makes them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.workers = tuple(joined_threads.joined(worker) for worker in session.workers)
        """The measured processes, with ``joined_threads``."""
        self._memo: dict[object, object] = {}

    def get(self, analysis: Callable[[Self], T]) -> T:
        """What an analysis of this session finds; it runs once."""
        if analysis not in self._memo:
            self._memo[analysis] = analysis(self)
        return cast("T", self._memo[analysis])

    @cached_property
    def steps(self) -> Steps | None:
        """The steps, None when nothing repeats."""
        found = step_finder.find(self.workers)
        return found if found is not None and found.steady_count > 0 else None

    @property
    def step_samples(self) -> int:
        """Samples of every steady step; 0 if unknown, or if steps differ."""
        known = set(self.steps.samples[self.steps.steady].tolist()) if self.steps is not None else set()
        return known.pop() if len(known) == 1 else 0

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
        return pipeline.build(self.steps, self.traces.views) if self.steps else None

    @cached_property
    def traces(self) -> ChosenTraces:
        """Op traces of the process that makes the steps; of any where none is seen to."""
        return chosen_traces.build(self.session, self.steps)

    @cached_property
    def anatomy(self) -> Anatomy | None:
        """The split of the mean step."""
        if self.steps is None or self.pipeline is None:
            return None
        return anatomy.build(self.steps, self.pipeline.wait_ns_per_execution or 0.0)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Stack samples of the step thread within the steady steps."""
        return stack_samples.samples(self.steps, self.anatomy) if self.steps and self.anatomy else ()

    @cached_property
    def loop(self) -> tuple[str, str] | None:
        """(file, function) of the user's loop."""
        return stack_samples.loop_function(self.samples, self.steps) if self.steps else None

    @cached_property
    def callers(self) -> tuple[Spot, ...]:
        """The user's frames from which the loop's function is called, innermost first."""
        return stack_samples.callers(self.samples, self.loop)

    def statement_of(self, sample: Sample) -> Spot | None:
        """The line that pays for a sample: of the loop's function, outside of it of those that call it."""
        return stack_samples.statement_of(sample, self.loop, self.callers)

    def hot_spots(self, *components: ComponentName) -> tuple[HotSpot, ...]:
        """Where samples of these components fall, with the time for which the thread did not run where it was spent."""
        return hot_spots.hot_spots(self.get(with_ready_time), frozenset(components), self.loop, self.callers)

    @cached_property
    def _cells(self) -> dict[str, NotebookCell]:
        return {cell.hash: cell for cell in self.session.manifest.cells}

    @cached_property
    def graphs(self) -> GraphIndex | None:
        """The nodes of the graphs of the process that makes the steps; None where none was read."""
        return GraphIndex(self.worker) if self.worker is not None and len(self.worker.graphs) else None

    @cached_property
    def node_costs(self) -> NodeCosts | None:
        """The ops of the traced steps with their nodes; None without a trace of steps, or without graphs."""
        trace = self.traces.main
        if trace is None or self.graphs is None:
            return None
        slowed = {f"capture:{capture.id}": capture.ratio for capture in self.session.manifest.captures}
        return NodeCosts(trace, self.graphs, slowed.get(trace.ref, 0.0))

    def shape_costs(self, samples: int) -> ShapeCosts | None:
        """The nodes that the steps run, by their work; None without graphs. ``samples``: in a step, 0: unknown."""
        if self.steps is None or self.graphs is None or self.anatomy is None:
            return None
        graphs, call = step_graphs.build(self.steps), self.anatomy
        return ShapeCosts(self.graphs, graphs, samples, call.ratio("call"), call.mean_ns("call"))

    @property
    def frameworks(self) -> dict[str, str]:
        """Name to version of all frameworks seen, the step worker's first."""
        found: dict[str, str] = {}
        for worker in [*([self.worker] if self.worker else []), *self.workers]:
            for event in worker.all(Framework):
                found.setdefault(event.name, event.version)
        return found

    def named_times(self, *kinds: Kind) -> tuple[NamedTime, ...]:
        """Time by name on the step thread within the steady steps, longest first. Counted short calls included."""
        return named_times.build(self.steps, self.names, kinds) if self.steps else ()

    def fit_place(self) -> Place | None:
        """Where user code calls the Keras loop that the steps run in."""
        for row in self.named_times(Kind.LOOP):
            if row.name.call_file:
                return self.place(row.name.call_file, row.name.call_line, function=row.name.call_function)
        return None

    def source_of(self, file: str) -> str | None:
        """Text of a user file as it was when it ran."""
        return self.session.sources.get(file)

    @cached_property
    def call_line(self) -> int | None:
        """Line of the user's loop that makes the step's call: by samples, else where it was first called from."""
        if self.steps is None:
            return None
        lines = [
            f.line for s in self.samples if s.component == "call" if (f := stack_samples.statement_of(s, self.loop))
        ]
        if lines:
            return max(set(lines), key=lines.count)
        call = self.steps.call
        return call.call_line if call is not None and call.call_line else None

    def place(self, file: str, line: int, end_line: int = 0, function: str = "") -> Place:
        """A place with its file relative to the job's working directory where it lies below it."""
        cwd = self.session.manifest.cwd
        if cwd and file.startswith(cwd.rstrip("/") + "/"):
            file = os.path.relpath(file, cwd)
        file, above = notebook_cells.named(file, self._cells)
        end = end_line + above if end_line > line else None
        return Place(file=file, line=line + above, end_line=end, function=function)

    def dataset_place(self, made: DatasetMade) -> Place | None:
        """Where user code made a dataset."""
        return self.place(made.file, made.line, function=made.function) if made.file else None


def with_ready_time(view: SessionView) -> tuple[Sample, ...]:
    """The stack samples, with the time for which the thread of the steps did not run where it was spent."""
    if view.steps is None:
        return ()
    return ready_time.spread(view.samples, thread_cpu.ready_per_run(view.session, view.steps))
