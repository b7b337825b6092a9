"""Several processes find what one finds, and a process that dies takes nothing with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.check.run import work
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import Target

SLOW = """
import tensorflow as tf
from part{other} import jitter as other

def jitter(x):
    return x + tf.random.uniform([])

ds = tf.data.TextLineDataset("x").map(other)
"""


@pytest.fixture
def job(tmp_path: Path) -> work.FilesToCheck:
    """Twelve files in a circle."""
    for number in range(12):
        (tmp_path / f"part{number}.py").write_text(SLOW.format(other=(number + 1) % 12))
    paths = tuple(path.as_posix() for path in sorted(tmp_path.glob("*.py")))
    return work.FilesToCheck(files=paths, todo=paths, roots=(tmp_path.as_posix(),), codes=("TFD001",), target=Target())


@pytest.mark.parametrize("fork", [True, False])
def test_processes(job: work.FilesToCheck, monkeypatch: pytest.MonkeyPatch, fork: bool) -> None:
    """Results in the order of the files, and the same that they rest on."""
    alone = work.run(job, processes=1)
    monkeypatch.setattr(work, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(work, "_can_fork", lambda: fork)
    several = work.run(job, processes=3)
    assert several.results == alone.results
    assert [len(result.hits) for result in alone.results] == [1] * 12
    assert several.looks == alone.looks


def test_a_process_dies(job: work.FilesToCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are checked all the same."""
    alone = work.run(job, processes=1)
    parent = os.getpid()
    original = work._checked

    def dies(project: Project, mine: work.FilesToCheck) -> work.Outcome:
        if os.getpid() != parent:
            os._exit(9)
        return original(project, mine)

    monkeypatch.setattr(work, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(work, "_can_fork", lambda: True)
    monkeypatch.setattr(work, "_checked", dies)
    assert work.run(job, processes=3).results == alone.results


def test_large_projects_are_dropped_and_made_anew(job: work.FilesToCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has been forgotten in between is found again."""
    alone = work.run(job, processes=1)
    monkeypatch.setattr(work, "RENEWED_BYTES", 500)
    assert work.run(job, processes=1).results == alone.results
