"""What a running job does at this moment, how far its fit is, and how long it still takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.api.status import LiveProgress
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.collector.recorder import Recording
    from stepscope.collector.recording.drain import WorkerDrain

    Calls = Iterable[tuple[str, int, int]]

IMPORTING, FIRST_STEP = "importing", "first step"
BUILDING = "building"
OVER = "its program has ended"
TRACING = "tracing"
PHASES = {
    Doing.BUILDING: BUILDING,
    Doing.TRACING: TRACING,
    Doing.EVALUATING: "evaluating",
    Doing.PREDICTING: "predicting",
    Doing.SAVING: "saving",
}
OF_MAKERS = {"training": "training", "evaluation": "evaluating", "prediction": "predicting"}
"""Phase of a job whose steps are of a kind, if nothing else is known."""
MIN_DONE = 10
"""Steps of a fit from which the mean of all that it did, evaluations included, says how long the rest takes."""
_STEPS = frozenset(map(int, (*kinds_with(Trait.STEP), *kinds_with(Trait.UPDATE))))
"""Calls that may be steps: an eager loop, or one of PyTorch, has its optimizer's."""
_TRACE = int(Kind.TRACE)


def phase(recording: Recording, kind: str) -> str:
    """Phase of the job. ``kind``: of its steps, as ``LiveMaker.kind``; empty: they are not known."""
    if recording.drainer.ends.unended:
        return OVER
    workers = [worker for worker in recording.drainer.workers.values() if not worker.closed]
    doing = {_doing(worker) for worker in workers}
    named = next((word for what, word in PHASES.items() if what in doing), "")
    if any(_calls(worker, _STEPS) for worker in workers):
        return named or OF_MAKERS.get(kind, "training" if Doing.TRAINING in doing else "running")
    if named:
        return named
    if Doing.TRAINING in doing or any(_calls(worker, {_TRACE}) for worker in workers):
        return FIRST_STEP
    return BUILDING if any(worker.info.frameworks for worker in workers) else IMPORTING


def _doing(worker: WorkerDrain) -> Doing:
    try:
        return Doing(worker.doing())
    except ValueError:  # of a later version, or damaged
        return Doing.NOTHING


def _calls(worker: WorkerDrain, kinds: Iterable[int]) -> int:
    return sum(count for (kind, _), count in worker.recent.counts.items() if kind in kinds)


class Progress:
    """How far the newest fit is."""

    def __init__(self, recording: Recording) -> None:
        """There is none yet."""
        self._recording = recording
        self._loop = 0
        """Start of the fit that is followed."""
        self._first = (0, 0)
        """(time, steps) when its first steps were seen."""

    def look(self, now_ns: int, calls: Calls, samples_per_step: float, rate: float | None) -> LiveProgress | None:
        """The progress; None if no fit runs, or it does not say how many steps it has.

        ``calls``: those that are the job's steps.
        """
        mine = list(calls)
        for worker in self._recording.drainer.workers.values():
            fit = worker.recent.fit
            if fit is None or worker.closed or not worker.recent.fit_runs or not fit.steps:
                continue
            done = sum(worker.recent.since_fit(kind, name) for key, kind, name in mine if key == worker.key)
            if done:
                each = max(1, round(samples_per_step / fit.size)) if fit.size and samples_per_step else 1
                return self._of(now_ns, fit.loop, (done, each, fit.steps, fit.epochs), rate)
        return None

    def _of(self, now_ns: int, loop: int, counts: tuple[int, int, int, int], rate: float | None) -> LiveProgress:
        done, each, steps, epochs = counts
        if loop != self._loop:
            self._loop, self._first = loop, (now_ns, done)
        batches = min(done * each, steps * epochs)
        ratio = batches / (steps * epochs)
        since_ns, more = now_ns - self._first[0], done - self._first[1]
        per_s = more * 1e9 / since_ns if more >= MIN_DONE and since_ns > 0 else rate
        left = (steps * epochs - batches) / each / per_s if per_s else None
        return LiveProgress(
            epoch=min(epochs, 1 + (batches - 1) // steps),
            epochs=epochs,
            steps=batches,
            steps_total=steps * epochs,
            ratio=ratio,
            left_s=left,
        )
