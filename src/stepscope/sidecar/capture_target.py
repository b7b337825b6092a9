"""Whose steps a capture is of: the job's own, or the calls of one of its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

from msgspec.structs import replace

from stepscope.collector.captures.asked import CaptureExtent
from stepscope.derive.steps import step_work
from stepscope.model.api.capture_ask import DEFAULT_RUNS, DEFAULT_STEPS
from stepscope.model.frameworks import TITLES
from stepscope.sidecar import capture_size
from stepscope.tables.errors import CaptureError
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.captures.reason import Reason
    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.api.capture_ask import CaptureAsk
    from stepscope.model.api.status import LiveTask

    Calls = list[tuple[str, int, int]]

MAX_ANCHORS = 256
_SHOWN = 8
_NATIVE = "native stacks are possible at any time: stepscope trace JOB --kind native"
_NOT_TRACED = (
    "ONNX Runtime can only trace a session from its creation: set SessionOptions.enable_profiling in the job, "
    f"then stepscope import FILE; {_NATIVE}"
)


class KnownJob(Protocol):
    """What is known of a job's steps and tasks."""

    @property
    def steps(self) -> Steps | None:
        """Its steps."""

    def calls_of_steps(self) -> frozenset[tuple[str, int, int]]:
        """(worker, kind, name) of every call that counts as a step."""

    def calls_of_tasks(self) -> list[tuple[LiveTask, Calls]]:
        """Its tasks, each with its calls."""


class _About(TypedDict):
    """Fields of ``CaptureExtent``."""

    usual: tuple[tuple[int, int], ...]
    step_ns: int
    work: str
    place: str


def absent(ask: CaptureAsk, recording: Recording, live: KnownJob) -> str:
    """What is to be captured and has not been seen yet, "" where it has been: a job may still start."""
    if ask.task:
        named = [task for task, calls in live.calls_of_tasks() if calls and ask.task in task.name]
        return "" if named else f"the task {ask.task}; so far: {_names(live.calls_of_tasks())}"
    if ask.kind != "ops" or live.steps is not None:
        return ""
    if _running(recording, "tensorflow"):
        return "steps: no repeating work yet"
    return f"steps: {_without_tensorflow(recording)}"


def _running(recording: Recording, *frameworks: str) -> list[WorkerDrain]:
    """The processes that have imported one of these."""
    workers = recording.drainer.workers.values()
    return [w for w in workers if not w.closed and not w.info.frameworks.keys().isdisjoint(frameworks)]


def _without_tensorflow(recording: Recording) -> str:
    """Why there is no op trace of a job without TensorFlow, or not yet, and what there is of it."""
    said = "no process of the job has imported TensorFlow yet"
    found = {name for worker in _running(recording, *TITLES) for name in worker.info.frameworks}
    names = [title for name, title in TITLES.items() if name in found]
    return f"{said}, and of {' and '.join(names)} stepscope takes no op trace; {_NATIVE}" if names else said


def resolve(ask: CaptureAsk, by: Reason, recording: Recording, live: KnownJob) -> CaptureExtent:
    """What to ask which process for.

    Raises:
        CaptureError: there is no such task, or there are several, no process runs TensorFlow, or a detector asks about
            steps that are no more.
    """
    if ask.task:
        return _of_task(ask, by, live)
    steps = live.steps
    if steps is not None and steps.call is not None:
        key = steps.worker.info.key
        measured = steps.worker.info.frameworks
        if ask.kind == "ops" and measured and not {"tensorflow", "onnxruntime"} & measured.keys():
            raise CaptureError(_without_tensorflow(recording))
        training = step_work.training_beside(steps)
        if training:
            calls = [(int(Kind.EXECUTION), name) for name in training]
            asked = _asked(ask, by, key, calls, "Keras fit", text="fit", thread=steps.thread)
            where = _place(step_work.loop_place(steps, "fit"), recording)
            return replace(asked, work="training", place=where)
        anchors = [(kind, name) for worker, kind, name in live.calls_of_steps() if worker == key]
        thread = max(
            0, steps.thread
        )  # of a chain of threads (``derive.steps.joined_threads``) whichever makes the step
        asked = _asked(ask, by, key, anchors, steps.title, text=steps.call.text, thread=thread)
        return replace(asked, **_about(steps, recording))
    if ask.kind == "ops" and not by.person:
        raise CaptureError("nothing repeats any more: there are no steps to trace")
    alive = _running(recording, *(("tensorflow",) if ask.kind == "ops" else ("tensorflow", "onnxruntime")))
    if not alive and ask.kind == "ops":
        raise CaptureError(_without_tensorflow(recording))
    return CaptureExtent(
        by=by,
        worker=alive[0].key if alive else "",
        steps=ask.steps or DEFAULT_STEPS,
        title="no steps yet",
        request=ask.id,
        seconds=ask.seconds,
    )


def _about(steps: Steps, recording: Recording) -> _About:
    """What there is to say of the steps, and what else they call."""
    return _About(
        usual=step_work.usual(steps),
        step_ns=round(capture_size.step_ns(steps)),
        work=step_work.work(steps),
        place=_place(step_work.place(steps), recording),
    )


def _place(where: tuple[str, int] | None, recording: Recording) -> str:
    """FILE:LINE, the file relative to the job's directory where it lies below it."""
    if where is None:
        return ""
    path, cwd = Path(where[0]), recording.manifest.cwd
    inside = bool(cwd) and path.is_relative_to(cwd)
    return f"{path.relative_to(cwd) if inside else path}:{where[1]}"


def _of_task(ask: CaptureAsk, by: Reason, live: KnownJob) -> CaptureExtent:
    tasks = [(task, calls) for task, calls in live.calls_of_tasks() if calls]
    found = [pair for pair in tasks if pair[0].name == ask.task] or [p for p in tasks if ask.task in p[0].name]
    if len(found) != 1:
        what = "several tasks are" if found else "no task is"
        raise CaptureError(f"{what} called {ask.task}; expected one of: {_names(found or tasks)}")
    task, calls = found[0]
    key = calls[0][0]
    anchors = [(kind, name) for worker, kind, name in calls if worker == key]
    title = task.name if task.kind == task.name else f"{task.kind} {task.name}"
    return _asked(ask, by, key, anchors, title, text=task.name)


def _asked(
    ask: CaptureAsk, by: Reason, worker: str, anchors: list[tuple[int, int]], title: str, *, text: str, thread: int = 0
) -> CaptureExtent:
    if ask.kind == "ops" and any(kind == Kind.INFERENCE for kind, _ in anchors):
        raise CaptureError(_NOT_TRACED)
    runs = all(kind == Kind.SESSION_RUN for kind, _ in anchors)
    if runs and text not in title:
        title = f"{title} {text}"
    return CaptureExtent(
        by=by,
        worker=worker,
        steps=ask.steps or (DEFAULT_RUNS if runs else DEFAULT_STEPS),
        title=title,
        anchors=tuple(sorted(anchors)[-MAX_ANCHORS:]),
        thread=thread,
        task=text if runs else None,
        keep_raw=ask.keep_raw,
        request=ask.id,
        seconds=ask.seconds,
    )


def _names(tasks: list[tuple[LiveTask, Calls]]) -> str:
    names = list(dict.fromkeys(task.name for task, _ in tasks))
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "") or "none yet"
