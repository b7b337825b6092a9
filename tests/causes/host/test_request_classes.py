"""Calls by shape and calls in flight, what is queued, and the first answers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, S

from stepscope.causes.host import request_classes, tasks
from stepscope.model.log.program import ShapeMet
from stepscope.model.report.task import Task
from stepscope.report.document import requests
from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind

SHORT, LONG = 1 << SHAPE_SHIFT, 2 << SHAPE_SHIFT
OTHER_THREAD = 5


def served(*, rounded: bool = False) -> Job:
    """Runs of two shapes, 20 of each alone, then 20 long ones beside another client's; the first run takes 950 ms."""
    job = Job()
    job.event(ShapeMet(id=1, dims=(1, 64)), ShapeMet(id=2, dims=(1, 512), rounded=rounded))
    run = job.call(Kind.INFERENCE, "bert.onnx")
    run.at(0, 950 * MS, flags=SHORT)
    run.every(100 * MS, 20, dur=10 * MS, start=S, flags=SHORT)
    run.every(100 * MS, 20, dur=40 * MS, start=4 * S, flags=LONG)
    run.every(200 * MS, 20, dur=90 * MS, start=8 * S, flags=LONG)
    run.every(200 * MS, 20, dur=90 * MS, start=8 * S + 5 * MS, flags=LONG, thread=OTHER_THREAD)
    return job


def of(job: Job) -> Task:
    """Its only task."""
    (task,) = job.view().get(tasks.build)
    return task


def test_classes_are_by_shape_and_calls_in_flight() -> None:
    """A long request takes longer, and beside another one longer still: the excess over alone is queued."""
    found = [(c.dims, c.in_flight, c.count, c.p50_ns, c.queued_ns) for c in of(served()).classes]
    assert found == [
        ((1, 64), 1, 21, 10 * MS, None),
        ((1, 512), 1, 40, 40 * MS, None),
        ((1, 512), 2, 20, 90 * MS, 50 * MS),
    ]


def test_first_answers_are_apart() -> None:
    """The first call and the number of slow ones before the usual."""
    task = of(served())
    assert (task.first_call_ns, task.slow_first) == (950 * MS, 1)


def test_lines_say_shape_flight_queue_and_first_answer() -> None:
    """As the head of a report and the table of tasks have them."""
    assert requests.of_task(of(served(rounded=True))) == [
        "1x64 (21 calls): 10 ms",
        "up to 1x512 (60 calls): 40 ms, 2 in flight 90 ms (50 ms queued)",
        "first answer 950 ms after the start, in 950 ms; later 90 ms",
    ]


def test_calls_that_were_only_counted_have_no_classes() -> None:
    """What ran beside them is not known."""
    job = served()
    job.call(Kind.INFERENCE, "bert.onnx").counted(20 * S, calls=10, total=S)
    assert of(job).classes == ()


def test_flags_of_a_call_are_not_its_shape() -> None:
    """A traced call and a thinned one keep their shape apart from what else their flags say."""
    job = Job()
    job.event(ShapeMet(id=1, dims=(8,)))
    call = job.call(Kind.SESSION_RUN, "y:0")
    call.every(100 * MS, 5, dur=MS, flags=SHORT | int(Flag.TRACED)).every(100 * MS, 5, dur=MS, start=S)
    assert [(c.dims, c.count) for c in of(job).classes] == [((), 5), ((8,), 5)]


@pytest.mark.parametrize(
    ("spans", "counts"), [([(0, 9), (10, 9)], [1, 1]), ([(0, 15), (10, 9)], [1, 2]), ([(0, 9), (0, 9)], [2, 2])]
)
def test_in_flight(spans: list[tuple[int, int]], counts: list[int]) -> None:
    """Calls that run when one starts, itself included."""
    starts, durs = np.array(spans, np.int64).T
    assert request_classes.in_flight(starts, durs).tolist() == counts
