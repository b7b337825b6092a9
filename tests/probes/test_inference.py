"""What the probe records of ONNX Runtime's sessions."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, Framework, InferenceSession, Probe
from stepscope.model.log.program import ShapeMet
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Any
    """A ``Recorded`` of conftest."""

pytestmark = pytest.mark.slow
PYTHON = os.environ.get("STEPSCOPE_TEST_PYTHON", sys.executable)


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Run]) -> Run:
    """The program ``inference``."""
    asked = subprocess.run([PYTHON, "-c", "import onnx, onnxruntime"], capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.skip(f"onnx and onnxruntime are not both installed for {PYTHON}")
    return recorded("inference")


def test_results_are_those_of_a_plain_run(run: Run) -> None:
    """The same output, errors of the user's included, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []
    assert {p.name for p in run.all(Probe) if p.name.startswith("inference") and p.attached} == {
        "inference",
        "inference:making",
        "inference:binding",
    }


def test_the_framework_is_named(run: Run) -> None:
    """A process that imports ONNX Runtime alone is a measured one."""
    assert {f.name for f in run.all(Framework)} == {"onnxruntime", "numpy"}


@pytest.mark.parametrize(
    ("mark", "model", "samples"),
    [
        ("run", "tower.onnx", [4 + number % 3 for number in range(20)]),
        ("named", "tower", [3]),
        ("ort-values", "tower", [6]),
        ("binding", "tower.onnx", [5]),
        ("bound-again", "tower.onnx", [7]),
        ("client", "tower.onnx", [2] * 10),
        ("again", "tower.onnx", [2] * 3),
    ],
)
def test_runs_have_their_model_and_samples(run: Run, mark: str, model: str, samples: list[int]) -> None:
    """Each way to run a session is recorded with its line, its model and the size of the batch."""
    assert [(r.name.text, r.arg) for r in run.called(Kind.INFERENCE, mark)] == [(model, size) for size in samples]


def test_runs_have_the_shape_that_they_were_given(run: Run) -> None:
    """By the number in their flags: of a feed, of a binding, and of a vector of values."""
    dims = {event.id: event.dims for event in run.all(ShapeMet)}
    for mark, rows in (("run", [4, 5, 6] * 7), ("ort-values", [6]), ("binding", [5]), ("bound-again", [7])):
        found = [dims[r.shape] for r in run.called(Kind.INFERENCE, mark)]
        assert found == [(size, 16) for size in rows[: len(found)]], mark


def test_clients_are_told_apart(run: Run) -> None:
    """Runs are on the thread that asked for them."""
    threads = [r.thread for r in run.called(Kind.INFERENCE, "client")]
    assert sorted(map(threads.count, set(threads))) == [5, 5]


def test_what_raises_is_flagged(run: Run) -> None:
    """A run that a session refuses, and a session that cannot be made."""
    assert [r.flags for r in run.called(Kind.INFERENCE, "raises")] == [Flag.RAISED]
    assert [r.flags for r in run.called(Kind.BUILD, "gone")] == [Flag.RAISED]


def test_sessions_are_builds(run: Run) -> None:
    """Each session that is made is a build, with the line that makes it."""
    assert [len(run.called(Kind.BUILD, mark)) for mark in ("file", "bytes", "again")] == [1, 1, 3]
    assert {(r.name.text, r.name.role) for r in run.of(Kind.BUILD)} == {("InferenceSession", "session")}


def test_settings_are_told_once(run: Run) -> None:
    """Threads, spinning, arena, providers and the open size of each session; those made alike are logged once."""
    told = {run.line(mark): mark for mark in ("file", "bytes", "again")}
    made = [e for e in run.all(InferenceSession) if e.line in told]
    assert [(told[e.line], e.model, e.intra_op_threads, e.spins, e.arena, e.parallel) for e in made] == [
        ("file", "tower.onnx", 1, False, False, False),
        ("bytes", "tower", 0, True, True, False),
        ("again", "tower.onnx", 1, False, False, False),
    ]
    assert all("CPUExecutionProvider" in e.providers and e.open_batch for e in made)


def test_runs_that_answer_by_a_callback(run: Run, recorded: Callable[[str], Run]) -> None:
    """Each is one, from the call until its callback, on the thread that asked; what is refused is none."""
    found = recorded("inference_async")
    assert (found.result.returncode, found.result.stdout) == (0, found.plain.stdout), found.result.stderr
    assert found.all(AgentDiagnostic) == []
    one, several = found.called(Kind.INFERENCE, "one"), found.called(Kind.INFERENCE, "several")
    assert ([r.arg for r in one], [r.arg for r in several]) == ([1, 2, 3, 4, 5], [8] * 4)
    both = sorted([*one, *several], key=lambda r: r.start)
    assert len({r.thread for r in both}) == 1
    assert all(before.end <= after.start for before, after in itertools.pairwise(both))
    assert len(found.of(Kind.INFERENCE)) == 9
