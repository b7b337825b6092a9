"""The cache: nothing is checked twice without need, and nothing old is told after anything has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.check.run import cache, work
from stepscope.check.use_cases.check import Options, check

MAIN = """
import tensorflow as tf
from parts.steps import augment
ds = tf.data.TFRecordDataset("x").map(augment)
"""
STEPS = """
import tensorflow as tf
from .random import jitter

def augment(x):
    return jitter(x)
"""
RANDOM = """
import tensorflow as tf

def jitter(x):
    return x + tf.random.uniform([])
"""
CALLED = """
import tensorflow as tf

@tf.function
def step(x, n):
    return x

def run(model):
    return model.predict([[1]])
"""
LOOP = """
import keras
from called import run
net = keras.Sequential()
for x in y:
    run(net)
"""
Change = Callable[[Path], object]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four files that rest on each other, and a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    (root / "parts").mkdir(parents=True)
    for name, text in (
        ("main.py", MAIN),
        ("parts/__init__.py", ""),
        ("parts/steps.py", STEPS),
        ("parts/random.py", RANDOM),
        ("called.py", CALLED),
        ("alone.py", "x = 1\n"),
    ):
        write(root / name, text)
    return root


def write(path: Path, text: str) -> None:
    """Write a file that looks old enough for its time stamp to be trusted."""
    path.write_text(text)
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - 60_000_000_000))


def checked(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Findings, and the files that were checked anew for them."""
    seen: list[str] = []
    original = work.run

    def spy(job: work.FilesToCheck, processes: int | None = None) -> work.Outcome:
        seen.extend(Path(path).relative_to(root).as_posix() for path in job.todo)
        return original(job, processes)

    with monkeypatch.context() as patch:
        patch.setattr(work, "run", spy)
        report = check(Options(paths=(root,), target_version="2.21")).report
    found = [f"{Path(f.where[0].file).relative_to(root)}:{f.where[0].line} {f.code}" for f in report.findings]
    anew = [f.code for f in check(Options(paths=(root,), target_version="2.21", cache=False)).report.findings]
    assert [f.rpartition(" ")[2] for f in found] == anew, "the cache tells something else than a check without it"
    return found, sorted(seen)


def test_nothing_changed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is checked and the same is found."""
    first, everything = checked(project, monkeypatch)
    assert first == ["main.py:4 TFD001"]
    assert len(everything) == 6
    assert checked(project, monkeypatch) == (first, [])


@pytest.mark.parametrize(
    ("change", "findings", "anew"),
    [
        (lambda root: write(root / "alone.py", "x = 2\n"), ["main.py:4 TFD001"], ["alone.py"]),
        (lambda root: write(root / "parts/random.py", RANDOM.replace("random.uniform", "zeros")), [], ["main.py"]),
        (lambda root: (root / "parts/random.py").unlink(), [], ["main.py", "parts/steps.py"]),
        (
            lambda root: write(root / "loop.py", LOOP),
            ["called.py:9 KER001", "main.py:4 TFD001"],
            ["called.py", "loop.py"],
        ),
        (
            lambda root: write(root / "alone.py", "import called\nimport keras\ncalled.run(keras.Sequential())\n"),
            ["main.py:4 TFD001"],
            ["alone.py"],
        ),
        (
            lambda root: write(root / "tensorflow.py", ""),
            ["main.py:4 TFD001"],
            ["tensorflow.py"],
        ),
    ],
    ids=["alone", "two imports away", "deleted", "a new caller", "a framework", "a new file"],
)
def test_changes(
    project: Path, monkeypatch: pytest.MonkeyPatch, change: Change, findings: list[str], anew: list[str]
) -> None:
    """What changes in one file is seen in those that rest on it, and in them alone."""
    checked(project, monkeypatch)
    change(project)
    found, again = checked(project, monkeypatch)
    assert found == findings
    assert set(anew) <= set(again)
    assert "alone.py" not in again or "alone.py" in anew
    assert checked(project, monkeypatch) == (found, [])


def test_a_module_that_was_missing_appears(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that led nowhere leads to the file that is there now."""
    (project / "parts/random.py").unlink()
    assert checked(project, monkeypatch)[0] == []
    write(project / "parts/random.py", RANDOM)
    assert checked(project, monkeypatch)[0] == ["main.py:4 TFD001"]


@pytest.mark.parametrize("damage", [b"", b"\x81", b"garbage" * 100])
def test_a_damaged_cache_is_none(project: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    """What cannot be read is checked anew."""
    first, _ = checked(project, monkeypatch)
    cache.place([project]).write_bytes(damage)
    assert checked(project, monkeypatch)[0] == first


def test_settings_are_part_of_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version or another choice of rules never gets what was kept for the first."""
    checked(project, monkeypatch)
    old = check(Options(paths=(project,), target_version="2.4", select=("KER",))).report
    assert old.findings == ()


def test_a_file_of_the_last_moment_is_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within the time stamp's grain, of the same size, is seen."""
    random = project / "parts/random.py"
    random.write_text(RANDOM)
    checked(project, monkeypatch)
    stamp = random.stat().st_mtime_ns
    random.write_text(RANDOM.replace("x + tf", "tf + x").replace("tf.random.uniform([])", "tf.randon.uniform([])"))
    os.utime(random, ns=(stamp, stamp))
    assert checked(project, monkeypatch)[0] == []
