"""When captures are made: who is served first, what waits for the budget, what is never made."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.sidecar.capture_job import KEY, MS, Job, S

from stepscope.model.session.session import CaptureInfo, WorkerInfo
from stepscope.native.kernel import perf
from stepscope.sidecar.capturing import MAX_TRIES, REPEATS, RETRY_NS, Capturing
from stepscope.wire import commands
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.live import Live


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has just begun."""
    return Job(run=tmp_path)


def capturing(job: Job) -> Capturing:
    """What decides."""
    return Capturing(cast("Recording", job), cast("Live", job), 1)


def finished(cost_ns: int = 20 * MS, **fields: object) -> CaptureInfo:
    """A capture that is done."""
    return msgspec.structs.replace(CaptureInfo(id="c", outcome="done", steps=10, cost_ns=cost_ns), **fields)


def test_who_asks_is_served_at_once(job: Job) -> None:
    """The first request begins with an empty account, and its cost is told."""
    deciding = capturing(job)
    request = job.ask(steps=5)
    deciding.tick(1 * S, "running")
    assert [(a.by.word, a.steps) for a in job.captures.asked] == [("user", 5)]
    assert job.state(request).state == "tracing"
    job.captures.done = finished(request=request)
    deciding.tick(2 * S, "running")
    assert (job.state(request).state, job.state(request).cost_ns) == ("done", 20 * MS)


def test_native_stacks_are_made_by_their_own_capture_and_alone(job: Job) -> None:
    """A native window begins where it is asked for; an op trace waits until it is over."""
    deciding = capturing(job)
    request = job.ask(kind="native", seconds=2.0, ops=False)
    deciding.tick(1 * S, "running")
    job.ask(kind="ops", force=True)
    deciding.tick(1 * S + MS, "running")
    assert [a.seconds for a in job.native.asked] == [2.0]
    assert job.captures.asked == []
    job.native.done = finished(request=request)
    deciding.tick(2 * S, "running")
    assert job.state(request).state == "done"
    assert len(job.captures.asked) == 1


def test_a_native_window_has_an_op_trace_beside_it(job: Job) -> None:
    """As long as the window and without steps of its own; its cost is booked, and who asked hears of the window."""
    deciding = capturing(job)
    request = job.ask(kind="native", seconds=2.0)
    deciding.tick(1 * S, "running")
    (beside,) = job.captures.asked
    assert (beside.by.word, beside.worker, beside.anchors, beside.request) == ("user", KEY, (), "")
    assert (beside.seconds > 2.0 + perf.COUNT_SECONDS, job.captures.ended) == (True, 0)
    job.captures.done = finished(300 * MS, id="id", steps=0)
    deciding.tick(2 * S, "running")
    assert job.state(request).state == "tracing"
    job.native.done = finished(200 * MS, id="n", kind="native", steps=0, request=request)
    deciding.tick(3 * S, "running")
    assert (job.state(request).state, job.state(request).cost_ns) == ("done", 200 * MS)
    waits = job.ask()
    deciding.tick(4 * S, "running")
    assert "waits 46 s" in job.state(waits).text


def test_an_op_trace_that_outlasts_its_window_holds_up_the_next_capture(job: Job) -> None:
    """Who asked for the window has it; nothing else begins while the trace is written."""
    deciding = capturing(job)
    request = job.ask(kind="native")
    deciding.tick(1 * S, "running")
    job.native.done = finished(0, id="n", kind="native", steps=0, request=request)
    deciding.tick(2 * S, "running")
    assert job.state(request).state == "done"
    job.ask()
    deciding.tick(3 * S, "running")
    assert (len(job.captures.asked), job.captures.ended) == (1, 1)
    job.captures.done = finished(0, id="id", steps=0)
    deciding.tick(4 * S, "running")
    assert len(job.captures.asked) == 2


@pytest.mark.parametrize(("second", "beside"), [(20, 0), (40, 1)])
def test_a_detector_s_window_has_an_op_trace_where_the_budget_covers_both(job: Job, second: int, beside: int) -> None:
    """50 ms for the window and 300 ms for the trace: at 1 % there is enough for both after 35 s."""
    deciding = capturing(job)
    job.wants(("MEM002", "native"))
    deciding.tick(second * S, "running")
    assert [a.by.word for a in job.native.asked] == ["MEM002"]
    assert [a.by.word for a in job.captures.asked] == ["MEM002"] * beside


def test_no_op_trace_beside_the_user_s_own_profiler(job: Job) -> None:
    """The window goes on without; that there is none is told."""
    job.drainer.workers[KEY].profiled = True
    deciding = capturing(job)
    job.ask(kind="native")
    deciding.tick(1 * S, "running")
    assert (len(job.native.asked), job.captures.asked) == (1, [])
    assert job.notes == ["no op trace with the native stacks: the user's own profiler is running"]


def test_who_has_overdrawn_waits_and_is_told(job: Job) -> None:
    """Half a second spent: at 1 % the next request waits until the job has earned it, unless it is forced."""
    deciding = capturing(job)
    job.ask()
    deciding.tick(1 * S, "running")
    job.captures.done = finished(500 * MS)
    deciding.tick(2 * S, "running")
    waits = job.ask()
    deciding.tick(10 * S, "running")
    assert len(job.captures.asked) == 1
    assert job.state(waits).state == "waiting"
    assert "waits 40 s" in job.state(waits).text
    job.ask(force=True)
    deciding.tick(11 * S, "running")
    assert len(job.captures.asked) == 2
    job.captures.done = finished(0)
    deciding.tick(12 * S, "running")
    deciding.tick(51 * S, "running")
    assert len(job.captures.asked) == 3


def test_a_detector_is_served_once_and_within_the_budget(job: Job) -> None:
    """It waits until its expected cost is earned, and does not ask again when it has been served."""
    deciding = capturing(job)
    job.wants(("INP001", "ops"))
    deciding.tick(1 * S, "running")
    assert job.captures.asked == []
    deciding.tick(6 * S, "running")
    assert [a.by.word for a in job.captures.asked] == ["INP001"]
    deciding.tick(7 * S, "running")
    job.captures.done = finished()
    for second in range(8, 60):
        deciding.tick(second * S, "running")
    assert len(job.captures.asked) == 1


def test_what_a_native_window_cost_is_no_measure_for_op_traces(job: Job) -> None:
    """Its cost is booked; an op trace is expected to cost what op traces do."""
    deciding = capturing(job)
    job.ask(kind="native", ops=False)
    deciding.tick(1 * S, "running")
    job.native.done = finished(100 * MS, kind="native", steps=0)
    deciding.tick(2 * S, "running")
    job.wants(("INP001", "ops"))
    deciding.tick(14 * S, "running")
    assert job.captures.asked == []
    deciding.tick(16 * S, "running")
    assert [a.by.word for a in job.captures.asked] == ["INP001"]


def test_a_capture_without_steps_says_nothing_of_what_a_step_costs(job: Job) -> None:
    """A second of whatever runs, at the start of a job: it is booked, and the next one is expected to be usual."""
    deciding = capturing(job)
    job.ask(steps=5)
    deciding.tick(1 * S, "running")
    job.captures.done = finished(30 * MS, steps=0)
    deciding.tick(2 * S, "running")
    job.wants(("INP001", "ops"))
    deciding.tick(9 * S, "running")
    assert [a.by.word for a in job.captures.asked] == ["user", "INP001"]


def test_a_detector_s_failed_capture_is_tried_again_but_not_for_ever(job: Job) -> None:
    """Each failure delays the next try; after a few nobody tries."""
    deciding = capturing(job)
    job.wants(("INP001", "ops"))
    now = 10 * S
    for tries in range(MAX_TRIES + 2):
        deciding.tick(now, "running")
        now += (tries + 1) * RETRY_NS + S
        job.captures.done = finished(0, outcome="failed", text="no space") if job.captures.busy else None
        deciding.tick(now, "running")
        now += (tries + 1) * RETRY_NS + S
    assert len(job.captures.asked) == MAX_TRIES
    assert [c.text for c in job.shown] == ["no space"] * MAX_TRIES


@pytest.mark.parametrize("why", ["enable", "no budget", "the user profiles"])
def test_no_detector_is_served_where_nobody_agreed(job: Job, why: str) -> None:
    """Not under enable, not without a budget, not beside the user's own profiler."""
    if why == "enable":
        job.manifest = msgspec.structs.replace(job.manifest, mode="enable")
    elif why == "no budget":
        job.manifest = msgspec.structs.replace(job.manifest, budget="0%")
    else:
        job.drainer.workers[KEY].profiled = True
    deciding = capturing(job)
    job.wants(("INP001", "ops"))
    deciding.tick(100 * S, "running")
    assert job.captures.asked == []
    job.ask()
    deciding.tick(101 * S, "running")
    assert [a.by.word for a in job.captures.asked] == ["user"]


def test_a_schedule_is_spaced_by_what_its_captures_cost(job: Job) -> None:
    """At 1 % captures of 100 ms each come every 10 s, however often they are wanted, and as many as were asked for."""
    deciding = capturing(job)
    job.ask(every_s=1.0, count=5)
    begun: list[int] = []
    for second in range(200):
        deciding.tick(second * S, "running")
        if len(job.captures.asked) > len(begun):
            begun.append(second)
            job.captures.done = finished(100 * MS)
    gaps = [b - a for a, b in itertools.pairwise(begun[1:])]
    assert len(begun) == 5
    assert set(gaps) == {10}


def test_a_task_is_found_by_its_name(job: Job) -> None:
    """The whole name wins over a part of it; runs of a session are traced one by one, by what they fetch."""
    deciding = capturing(job)
    job.ask(task="train")
    deciding.tick(1 * S, "running")
    (asked,) = job.captures.asked
    assert (asked.task, asked.steps, asked.anchors) == ("train", 1, ((int(Kind.SESSION_RUN), 1),))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"task": "tra", "wait_s": 0}, "several tasks are called tra; expected one of: train, train_summary"),
        ({"task": "x", "wait_s": 0}, "no task is called x; expected one of: train, train_summary, accuracy"),
        ({"kind": "gpu"}, "unknown kind of capture gpu; expected ops, native, memory, python, syscalls"),
        ({"steps": 5000}, "5000 steps; expected 1 to 1000"),
    ],
)
def test_what_cannot_be_made_is_answered(job: Job, fields: dict[str, object], why: str) -> None:
    """The answer says what was got and what is expected."""
    deciding = capturing(job)
    request = job.ask(**fields)
    deciding.tick(1 * S, "running")
    assert (job.state(request).state, job.state(request).text) == ("failed", why)
    assert job.captures.asked == []


def test_hostile_requests_are_noted(job: Job) -> None:
    """What is no request is a diagnostic of the session; the next request is served."""
    deciding = capturing(job)
    job.ask(steps="many")
    (job.run / commands.REQUESTS_NAME / "bad.json").write_text("{")
    deciding.tick(1 * S, "running")
    assert len(job.notes) == 2
    job.ask()
    deciding.tick(2 * S, "running")
    assert len(job.captures.asked) == 1


def test_a_process_that_cannot_be_asked_is_a_failure(job: Job) -> None:
    """Who asked hears why."""
    deciding = capturing(job)
    job.captures.problem = "process 10 takes no captures"
    request = job.ask()
    deciding.tick(1 * S, "running")
    assert job.state(request).text == "process 10 takes no captures"


def test_without_steps_a_second_is_traced(job: Job) -> None:
    """Where nothing repeats the process that runs TensorFlow is asked; without one the answer says so."""
    job.steps = None
    deciding = capturing(job)
    job.ask(wait_s=0)
    deciding.tick(1 * S, "running")
    assert [(a.worker, a.anchors) for a in job.captures.asked] == [(KEY, ())]
    job.captures.done = finished(0)
    deciding.tick(2 * S, "running")
    job.drainer.workers[KEY].closed = True
    request = job.ask(wait_s=0)
    deciding.tick(3 * S, "running")
    assert "no process of the job has imported TensorFlow" in job.state(request).text


def test_who_asks_before_there_are_steps_waits_for_them(job: Job) -> None:
    """A job that starts: what is waited for is said, and the job is analysed as soon as something repeats."""
    steps, job.steps = job.steps, None
    worker = job.drainer.workers[KEY]
    told, worker.info = worker.info, WorkerInfo(key=KEY, pid=10)
    deciding = capturing(job)
    request = job.ask()
    deciding.tick(1 * S, "running")
    assert (job.state(request).state, job.state(request).text) == (
        "waiting",
        "waiting up to 60 s for steps: no process of the job has imported TensorFlow yet",
    )
    worker.info = told
    deciding.tick(2 * S, "running")
    assert job.state(request).text == "waiting up to 60 s for steps: no repeating work yet"
    assert job.refreshed == []
    worker.recent.counts = {(int(Kind.EXECUTION), 1): REPEATS}
    deciding.tick(3 * S, "running")
    assert job.refreshed == [3 * S]
    assert job.captures.asked == []
    job.steps = steps
    deciding.tick(4 * S, "running")
    assert [a.title for a in job.captures.asked] == ["Keras fit"]


def test_nobody_waits_for_steps_for_ever(job: Job) -> None:
    """A job that repeats nothing: after the time that was given whatever runs is traced, and others need not wait."""
    job.steps = None
    deciding = capturing(job)
    job.ask(wait_s=10)
    deciding.tick(1 * S, "running")
    job.ask(kind="native", ops=False)
    deciding.tick(10 * S, "running")
    assert (len(job.captures.asked), len(job.native.asked)) == (0, 1)
    job.native.done = finished(0, kind="native", steps=0)
    deciding.tick(11 * S, "running")
    assert [a.anchors for a in job.captures.asked] == [()]


def test_a_task_that_has_not_come_is_waited_for(job: Job) -> None:
    """What there is so far is said; when the time is over the answer lists it."""
    deciding = capturing(job)
    request = job.ask(task="evaluate", wait_s=5)
    deciding.tick(1 * S, "running")
    assert job.state(request).text == "waiting up to 5 s for the task evaluate; so far: train, train_summary, accuracy"
    deciding.tick(6 * S, "running")
    assert job.state(request).state == "failed"
    assert "no task is called evaluate; expected one of: train" in job.state(request).text


def test_a_detector_never_has_whatever_runs_traced(job: Job) -> None:
    """It asked about steps: where there are none any more it is told so, and may ask again later."""
    job.steps = None
    deciding = capturing(job)
    job.wants(("GRF021", "ops"))
    deciding.tick(100 * S, "running")
    assert job.captures.asked == []
    assert [c.text for c in job.shown] == ["nothing repeats any more: there are no steps to trace"]


def test_native_stacks_need_no_tensorflow(job: Job) -> None:
    """A process that runs ONNX Runtime alone has no op trace, but stacks."""
    worker = job.drainer.workers[KEY]
    worker.info = msgspec.structs.replace(worker.info, frameworks={"onnxruntime": "1.31.1"})
    job.steps = None
    deciding = capturing(job)
    job.ask(kind="native")
    deciding.tick(1 * S, "running")
    assert [a.worker for a in job.native.asked] == [KEY]
    assert job.captures.asked == []


def test_what_an_earlier_sidecar_spent_and_asked_counts(tmp_path: Path) -> None:
    """The account goes on from the manifest, and who asked the sidecar that died hears of the capture."""
    job = Job(run=tmp_path)
    job.manifest = msgspec.structs.replace(job.manifest, captures=(finished(10 * S),))
    deciding = capturing(job)
    job.captures.done = finished(request="old")
    waits = job.ask()
    deciding.tick(5 * S, "running")
    assert job.state("old").state == "done"
    assert job.state(waits).state == "waiting"


def test_an_analysis_without_steps_is_made_again_before_a_capture(job: Job) -> None:
    """A detector's own look saw steps since: the fresh analysis that had come too early does not count."""
    job.steps, job.seen_now = None, job.steps
    deciding = capturing(job)
    job.wants(("GRF021", "ops"))
    deciding.tick(100 * S, "running")
    assert [a.title for a in job.captures.asked] == ["Keras fit"]


def test_one_capture_answers_all_detectors_that_ask(job: Job) -> None:
    """They look at the same steps; who asks for another kind, or a user, is served as well."""
    deciding = capturing(job)
    job.wants(("INP001", "ops"), ("GRF021", "ops"), ("MEM002", "native"))
    deciding.tick(100 * S, "running")
    job.captures.done = finished()
    job.ask()
    for second in range(101, 110):
        deciding.tick(second * S, "running")
        job.captures.done = finished() if job.captures.busy else None
    beside = [a.by.word for a in job.captures.asked if a.title == "beside native stacks"]
    assert ([a.by.word for a in job.captures.asked], beside) == (["INP001", "user", "MEM002"], ["MEM002"])
    assert [a.by.word for a in job.native.asked] == ["MEM002"]
