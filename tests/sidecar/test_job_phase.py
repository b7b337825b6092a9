"""What a running job is said to do, how far its fit is, and when its first figures are due."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np
import pytest

from stepscope.collector.agent_files.log import LogLine
from stepscope.collector.agent_files.ring import RECORD_DTYPE
from stepscope.collector.recording.process_ends import ProcessEnds
from stepscope.collector.recording.recent import Recent
from stepscope.model.session.session import WorkerInfo
from stepscope.sidecar import job_phase
from stepscope.sidecar.first_figures import AGAIN_NS, MIN_CALLS, FirstFigures
from stepscope.sidecar.job_phase import Progress
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

S = 1_000_000_000
TRAIN = ("10-1", int(Kind.EXECUTION), 1)


def job(doing: int = 0, *, frameworks: bool = True) -> tuple[Recording, Recent]:
    """A job of one process, and its recent past."""
    recent = Recent(0)
    info = WorkerInfo(key="10-1", pid=10, frameworks={"tensorflow": "2.21.0"} if frameworks else {})
    worker = SimpleNamespace(key="10-1", closed=False, info=info, recent=recent, doing=lambda: doing)
    drainer = SimpleNamespace(workers={"10-1": worker}, ends=ProcessEnds())
    return cast("Recording", SimpleNamespace(drainer=drainer)), recent


def calls(recent: Recent, count: int, kind: Kind = Kind.EXECUTION, *, start: int = 0) -> None:
    """So many calls."""
    rows = np.zeros(count, RECORD_DTYPE)
    rows["kind"], rows["name"], rows["dur_ns"] = int(kind), 1, 1000
    rows["start_ns"] = start + 1 + np.arange(count) * 2000
    recent.add_records(rows)


def begin_fit(recent: Recent, at: int, *, steps: int = 100, epochs: int = 4) -> None:
    """The line that a fit logs when it begins."""
    line = {"t": "batch", "at": at, "loop": at, "role": "train", "size": 8, "steps": steps, "epochs": epochs}
    recent.add_lines([LogLine(type="batch", at=at, text=msgspec.json.encode(line))])


def test_a_program_that_has_ended() -> None:
    """Whatever the process did last: its program is over."""
    recording, _ = job(Doing.TRAINING)
    recording.drainer.ends.unended["10-1"] = "it waits for its threads"
    assert job_phase.phase(recording, "training") == job_phase.OVER


@pytest.mark.parametrize(
    ("doing", "frameworks", "seen", "kind", "phase"),
    [
        (0, False, None, "", "importing"),
        (0, True, None, "", "building"),
        (Doing.BUILDING, True, None, "", "building"),
        (Doing.TRAINING, True, None, "", "first step"),
        (Doing.TRACING, True, None, "", "tracing"),
        (0, True, Kind.TRACE, "", "first step"),
        (Doing.TRAINING, True, Kind.EXECUTION, "", "training"),
        (0, True, Kind.APPLY, "training", "training"),
        (Doing.TRAINING, True, Kind.EXECUTION, "training", "training"),
        (Doing.EVALUATING, True, Kind.EXECUTION, "training", "evaluating"),
        (Doing.SAVING, True, Kind.EXECUTION, "training", "saving"),
        (0, True, Kind.FUNCTION, "prediction", "predicting"),
        (0, True, Kind.FUNCTION, "step", "running"),
        (99, True, Kind.FUNCTION, "training", "training"),
    ],
)
def test_phases(doing: int, frameworks: bool, seen: Kind | None, kind: str, phase: str) -> None:
    """What is told comes first, then what was seen; a number of a later version tells nothing."""
    recording, recent = job(doing, frameworks=frameworks)
    if seen is not None:
        calls(recent, 1, seen)
    assert job_phase.phase(recording, kind) == phase


def test_progress_of_the_second_fit() -> None:
    """Steps of an earlier fit do not count; the mean since the first ones says how long the rest takes."""
    recording, recent = job()
    progress = Progress(recording)
    calls(recent, 70)
    begin_fit(recent, 5 * S)
    calls(recent, 10, start=5 * S)
    found = progress.look(6 * S, [TRAIN], 8.0, 20.0)
    assert found is not None
    assert (found.epoch, found.epochs, found.steps, found.steps_total) == (1, 4, 10, 400)
    assert found.left_s == pytest.approx(390 / 20)
    calls(recent, 240, start=6 * S)
    found = progress.look(16 * S, [TRAIN], 8.0, 20.0)
    assert found is not None
    assert (found.epoch, found.steps) == (3, 250)
    assert found.left_s == pytest.approx(150 / 24)


def test_several_batches_for_each_step() -> None:
    """With steps_per_execution=5, a step has the samples of five batches."""
    recording, recent = job()
    begin_fit(recent, S)
    calls(recent, 10, start=S)
    found = Progress(recording).look(2 * S, [TRAIN], 40.0, 2.0)
    assert found is not None
    assert found.steps == 50
    assert found.left_s == pytest.approx(350 / 5 / 2)


def test_no_progress_after_the_fit_or_without_a_length() -> None:
    """The loop's record ends it; data of unknown length have no end."""
    recording, recent = job()
    begin_fit(recent, 1, steps=0)
    calls(recent, 5)
    assert Progress(recording).look(S, [TRAIN], 8.0, 1.0) is None
    begin_fit(recent, 2)
    calls(recent, 5, start=2)
    assert Progress(recording).look(S, [TRAIN], 8.0, 1.0) is not None
    rows = np.zeros(1, RECORD_DTYPE)
    rows["kind"], rows["start_ns"] = int(Kind.LOOP), 2
    recent.add_records(rows)
    assert Progress(recording).look(S, [TRAIN], 8.0, 1.0) is None


@pytest.mark.parametrize("kind", [Kind.EXECUTION, Kind.APPLY])
def test_first_figures_are_due_with_the_first_steps(kind: Kind) -> None:
    """Not before some calls of one name, then a few times, at growing distances."""
    recording, recent = job()
    first = FirstFigures(recording)
    calls(recent, MIN_CALLS - 1, kind)
    assert not first.due(S)
    calls(recent, 1, kind)
    assert first.due(S)
    assert not first.due(S + 1)
    looks = [at for at in range(1, 200) if first.due(at * S)]
    assert len(looks) == len(AGAIN_NS)
    assert first.over
