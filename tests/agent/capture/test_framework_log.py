"""TensorFlow's INFO lines while its profiler is switched on and off."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

from stepscope.agent.capture import framework_log

JOB = """
import sys, tempfile
import tensorflow as tf
from stepscope.agent.capture.framework_log import without_info
from tensorflow.python.profiler.internal._pywrap_profiler import ProfilerSession

if tuple(map(int, tf.__version__.split(".")[:2])) < (2, 18):
    sys.exit(print("too old"))

def trace():
    session = ProfilerSession()
    session.start(tempfile.mkdtemp(), {})
    session.export_to_tb()

with without_info():
    trace()
print("LOUD", file=sys.stderr, flush=True)
trace()
"""


def test_only_the_profilers_lines_within_are_missing() -> None:
    if not find_spec("tensorflow"):
        pytest.skip("no TensorFlow in this environment")
    loud_environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", JOB], env=loud_environment, capture_output=True, text=True, timeout=120, check=True
    )
    if "too old" in done.stdout:
        pytest.skip("needs TensorFlow 2.18 or later")
    quiet, loud = done.stderr.split("LOUD")
    assert "Profiler session" not in quiet
    assert "Profiler session started" in loud


@pytest.mark.parametrize("level, seen", [(0, [1, 0]), (2, [])])
def test_the_level_is_put_back_and_a_higher_one_left_alone(
    monkeypatch: pytest.MonkeyPatch, level: int, seen: list[int]
) -> None:
    now = [level]
    written: list[int] = []

    def write(value: int) -> None:
        written.append(value)
        now[0] = value

    monkeypatch.setattr(framework_log, "_level", lambda: (lambda: now[0], write))
    with framework_log.without_info():
        assert now[0] == max(level, 1)
    assert written == seen


def test_a_level_that_the_program_sets_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(framework_log, "_level", lambda: (lambda: now[0], lambda value: now.__setitem__(0, value)))
    with framework_log.without_info():
        now[0] = 3
    assert now == [3]


@pytest.mark.parametrize("place", [None, "/nowhere/tensorflow/__init__.py"])
def test_a_framework_without_the_library_is_left_alone(monkeypatch: pytest.MonkeyPatch, place: str | None) -> None:
    module = ModuleType("tensorflow")
    module.__file__ = place
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    with framework_log.without_info():
        assert framework_log._level() is None
