"""What the lines of a finding do: the samples on them, of the thread of the steps, else of the job's other threads.

A sample is on a place if a frame of the user's is: in its lines, or in its function unless that is the loop's. What a
framework calls back from there is other code.

Serves the pass of the diagnosis that says what lines do (``diagnosis.reasons``).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.input import pipeline_python
from stepscope.derive.python import element_loops, library_work, line_work, stack_samples
from stepscope.derive.python.framework_files import is_framework
from stepscope.derive.python.stack_samples import Spot
from stepscope.derive.view import with_ready_time
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.python.library_work import WorkKind
    from stepscope.derive.python.line_work import Work
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place

COMPUTE = "call"
"""The component of which a line only starts the work."""


class WorkThere(Struct, frozen=True, kw_only=True):
    """What the lines of a place do."""

    work: Work
    own_thread: bool
    """Whether the thread of the steps does it."""
    share: float
    """Share of the steady wall time; 0 of other threads."""
    calls: float
    """Calls of the place's function a step, where each of them is recorded; 0: not counted."""


def of(view: StepsView, place: Place, component: str = "") -> WorkThere | None:
    """What the lines of a place do; None if too few samples show it. ``component``: of the step, whose time alone
    counts on its thread; "": of all but compute.
    """
    known: dict[Spot, bool] = {}
    for taken, own in ((view.get(with_ready_time), True), (view.get(_others), False)):
        mine = [one for one in taken if _on(view, one, place, known) and not _computes(view, one)]
        if own and component:
            mine = [one for one in mine if one.component == component]
        work = line_work.build(mine, view.source_of)
        if work is not None:
            share = stack_samples.weight_of(mine) / stack_samples.weight_of(taken) if own else 0.0
            return WorkThere(work=work, own_thread=own, share=share, calls=_calls(view, place))
    return None


def repeats(view: StepsView, place: Place, component: str) -> bool:
    """Whether a step runs a place several times, by the loops on most of its stacks below the loop of the steps."""
    known: dict[Spot, bool] = {}
    looping: dict[Spot, bool] = {}
    mine = [one for one in view.get(with_ready_time) if one.component == component and _on(view, one, place, known)]
    inside = [one for one in mine if _in_inner_loop(view, one, looping)]
    return 2 * stack_samples.weight_of(inside) > stack_samples.weight_of(mine)


def _in_inner_loop(view: StepsView, sample: Sample, looping: dict[Spot, bool]) -> bool:
    """``looping``: frames that were asked."""
    own = [frame for frame in sample.frames if frame.own]
    outer = [i for i, frame in enumerate(own) if (frame.file, stack_samples.plain(frame.function)) == view.loop]
    for frame in own[outer[-1] + 1 if outer else 0 :]:
        if frame not in looping:
            looping[frame] = bool(element_loops.every(view.source_of(frame.file) or "", frame.line))
    return any(looping[frame] for frame in own[outer[-1] + 1 if outer else 0 :])


def by_source(view: StepsView, place: Place) -> WorkKind:
    """The kind of work that a place's lines call for by their source; "" where they call for none or several."""
    file = str(PurePosixPath(view.session.manifest.cwd) / place.file)
    lines = range(place.line, (place.end_line or place.line) + 1)
    spots = (Spot(file=file, function=place.function, line=line, own=True) for line in lines)
    kinds = {library_work.at_line(spot, view.source_of) for spot in spots} - {""}
    return kinds.pop() if len(kinds) == 1 else ""


def _calls(view: StepsView, place: Place) -> float:
    """By the records of Python within the input pipeline."""
    mine = (one for one in view.get(_pipeline) if one.name.file and one.name.text == place.function)
    found = next((one for one in mine if view.place(one.name.file, one.name.line).file == place.file), None)
    return found.calls / view.steps.steady_count if found is not None else 0.0


def _pipeline(view: StepsView) -> tuple[PythonFunction, ...]:
    return pipeline_python.build(view.steps)


def _on(view: StepsView, sample: Sample, place: Place, known: dict[Spot, bool]) -> bool:
    """Whether the user's code is on the place, or in what this calls by itself. ``known``: frames that were asked."""
    for frame in reversed(sample.frames[: len(sample.frames) - len(sample.below_user())]):
        if not frame.own:
            if is_framework(frame.file):
                return False
            continue
        if frame not in known:
            known[frame] = _meets(view, frame, place)
        if known[frame]:
            return True
    return False


def _meets(view: StepsView, frame: Spot, place: Place) -> bool:
    function = stack_samples.plain(frame.function)
    here = view.place(frame.file, frame.line)
    inside = place.line <= here.line <= (place.end_line or place.line)
    whole = function == place.function != "<module>" and (frame.file, function) != view.loop
    return here.file == place.file and (inside or whole)


def _computes(view: StepsView, sample: Sample) -> bool:
    """Whether it is the step's own call, not code of the user's that the framework calls in it."""
    return sample.component == COMPUTE and not stack_samples.inside_call(sample, view.loop)


def _others(view: StepsView) -> tuple[Sample, ...]:
    """The samples of the job's other threads, of all of its processes, during the steady steps."""
    return tuple(_others_of(view)) if len(view.steps.windows[0]) else ()


def _others_of(view: StepsView) -> Iterable[Sample]:
    lo, hi = view.steps.windows
    for worker in view.workers:
        records = worker.records
        threads: Sequence[int] = np.unique(records.thread[records.kind == Kind.SAMPLE]).tolist()
        wanted = [one for one in threads if worker is not view.worker or one != view.steps.thread]
        for sample in stack_samples.thread_samples(worker, wanted):
            if lo[0] <= sample.at < hi[-1]:
                yield sample
