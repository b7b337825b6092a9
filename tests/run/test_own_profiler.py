"""A user's own profiler under stepscope: the same files, with the same kinds of content, as without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run.conftest import Project, environment

from stepscope.model.log.events import UserProfiler

pytestmark = [pytest.mark.tf, pytest.mark.slow]

PYTHONS = [p for p in os.environ.get("STEPSCOPE_TEST_PYTHONS", "").split(os.pathsep) if p]
PROGRAM = Path(__file__).parent / "programs" / "profiled.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize("python", [sys.executable, *PYTHONS])
def test_own_profiler(project: Project, python: str) -> None:
    """TensorBoard's profile_batch, start and stop, and the Profile context leave what they leave without us."""
    looked = subprocess.run([python, "-c", "import tensorflow, tensorboard"], capture_output=True, check=False)
    if looked.returncode:
        pytest.skip(f"{python} has no TensorFlow with TensorBoard")
    for name in ("plain", "measured"):
        (project.root / name).mkdir()
    words = [python, str(PROGRAM)]
    plain = subprocess.run(
        [*words, str(project.root / "plain")], capture_output=True, text=True, check=False, env={**os.environ, **QUIET}
    )
    measured = project.run("run", "-q", "--", *words, str(project.root / "measured"), env=environment(**QUIET))
    assert (plain.returncode, measured.returncode) == (0, 0), measured.stderr
    assert measured.stdout == plain.stdout
    for way in ("board", "context", "started"):
        assert f"{way}/plugins/profile/TIME/" in plain.stdout or f"{way}/train/plugins/profile/TIME/" in plain.stdout
    (worker,) = project.session().workers
    told = worker.all(UserProfiler)
    actions = [e.action for e in told]
    assert actions == ["start", "stop", "stopped"] * (len(actions) // 3)
    assert len(actions) >= 9  # Keras' callback starts and stops once more, to warm up
    assert {Path(e.file).name for e in told if e.action == "start"} == {PROGRAM.name}
    assert all((e.dur_ns > 0) is (e.action == "stopped") for e in told)
