"""A process that was started without stepscope is looked at from outside, and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope import store
from stepscope.collector import sweep

from .conftest import wait_for

REFAULTING = """
import mmap, time
block = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_NOHUGEPAGE)
page = b"x" * (8 << 20)
print("up", flush=True)
while True:
    block[:] = page
    block.madvise(mmap.MADV_DONTNEED)
    time.sleep(0.005)
"""


@pytest.fixture(name="service")
def _service() -> Iterator[subprocess.Popen[bytes]]:
    """A process that faults its memory in again for as long as it lives."""
    process = subprocess.Popen([sys.executable, "-S", "-c", REFAULTING], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(name="sleeper")
def _sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def attach(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stepscope", "attach", *words], capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.timeout(180)
def test_a_service_that_faults_all_the_time(service: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Its faults are found from outside, a session like any other comes of it, and it goes on as before."""
    session, copy = tmp_path / "s.stepscope", tmp_path / "r.json"
    done = attach(str(service.pid), "--seconds", "9", "--session", str(session), "--report-json", str(copy))
    assert done.returncode == 0, done.stderr
    assert "page faults a second" in done.stderr
    assert service.poll() is None
    report = json.loads(copy.read_text())
    (found,) = (f for f in report["findings"] if f["code"] == "MEM002")
    assert found["exposed_stage"] == "unknown"
    opened = store.open_session(session)
    assert (opened.manifest.mode, opened.manifest.job_pid) == ("attach", service.pid)
    assert [worker.info.pid for worker in opened.workers] == [service.pid]
    (outcome,) = (c for c in report["checked"] if c["detector"] == "MEM002")
    assert outcome["outcome"] == "found"
    assert [look.pid for look in opened.memory_looks] == [service.pid]
    drawn = subprocess.run(
        [sys.executable, "-m", "stepscope", "memory", str(session)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stderr
    assert f"pid {service.pid}" in drawn.stdout
    assert report["memory"][0]["pid"] == service.pid
    assert opened.stacks or any(d.code in {"DX118", "DX140", "DX141"} for d in opened.manifest.diagnostics)


def test_no_such_process() -> None:
    """One clear line and the documented exit code."""
    process = subprocess.Popen(["true"])
    process.wait()
    done = attach(str(process.pid))
    assert done.returncode == 67
    assert done.stderr == f"stepscope: cannot attach to {process.pid}: no such process; expected a pid of `ps`\n"


@pytest.mark.skipif(os.getuid() == 0, reason="root may look at every process")
def test_another_users_process() -> None:
    """It says how it can be done."""
    done = attach("1")
    assert done.returncode == 67
    assert "sudo stepscope attach 1" in done.stderr


@pytest.mark.parametrize("word", ["abc", "0", "-1", "1.5"])
def test_what_is_no_process_id(word: str) -> None:
    """A name or a number that no process has is refused with where to find one."""
    done = attach("--", word)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"'{word}' is not a process id; expected a number" in done.stderr


def test_a_killed_one_is_swept_while_the_process_goes_on(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Its run directory goes with the next collector's sweep, and its session is completed."""
    session = tmp_path / "s.stepscope"
    words = ["attach", str(sleeper.pid), "--seconds", "60", "--session", str(session)]
    process = subprocess.Popen([sys.executable, "-m", "stepscope", *words], stderr=subprocess.DEVNULL)
    wait_for((session / "tables").exists, "a segment")
    run = Path(store.open_session(session).manifest.run_dir)
    process.kill()
    process.wait()
    assert run.is_dir()
    sweep.sweep()
    assert not run.exists()
    assert sleeper.poll() is None
    assert store.open_session(session).manifest.state == "recovered"
