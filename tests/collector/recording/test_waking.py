"""Which processes of a run are woken to be sampled, by real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepscope.collector.recording import waking

LISTENS = """
import signal, sys, time
got = []
signal.signal(signal.SIGURG, lambda *a: got.append(1))
print("ready", flush=True)
"""
COMPUTES = "while not got: sum(range(1000))\nprint('woken', flush=True)\n"
LOCKED = """
import threading
lock = threading.Lock()
lock.acquire()
while not lock.acquire(timeout=0.2):
    if got: break
    threading.main_thread()
print('woken', flush=True)
"""
WAITS = "while not got: signal.pause()\nprint('woken', flush=True)\n"


@contextmanager
def running(program: str, run: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A process of a run, ready."""
    words = [*(command or (sys.executable, "-c", LISTENS + program))]
    environment = {**os.environ, "STEPSCOPE_RUN": str(run)}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _woken(run: Path, process: subprocess.Popen[str], looks: int = 200) -> bool:
    """Whether one of some looks sends the signal: a process that computes is not found on a CPU by each."""
    wakes = waking.Waking(run)
    for _ in range(looks):
        wakes.look([process.pid])
        if wakes.sent(process.pid):
            return True
    return False


def _await_sleep(pid: int) -> None:
    """Wait until the process waits: on one CPU it may still be on its way there."""
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2][0] != "S":
        assert time.monotonic() < until, "it never waits"
        time.sleep(0.01)


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any process is old enough."""
    monkeypatch.setattr(waking, "LEAST_NS", 0)


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(("program", "woken"), [(COMPUTES, True), (LOCKED, True), (WAITS, False)])
def test_who_computes_or_waits_for_a_lock_is_woken(tmp_path: Path, program: str, woken: bool) -> None:
    """Another wait is not ended early: who waits for a signal, a child or a descriptor is left alone."""
    with running(program, tmp_path) as process:
        if not woken:
            _await_sleep(process.pid)
        assert _woken(tmp_path, process) is woken
        if woken:
            assert process.stdout is not None
            assert process.stdout.readline() == "woken\n"


def test_a_young_process_is_left_alone(tmp_path: Path) -> None:
    """A helper of a few seconds costs what it cost before."""
    with running(COMPUTES, tmp_path) as process:
        assert not _woken(tmp_path, process, looks=20)


@pytest.mark.usefixtures("old")
def test_a_process_of_another_run_is_left_alone(tmp_path: Path) -> None:
    """The signal is for those that this run has armed."""
    with running(COMPUTES, tmp_path / "other") as process:
        assert not _woken(tmp_path, process)


@pytest.mark.usefixtures("old")
def test_who_does_not_listen_is_left_alone(tmp_path: Path) -> None:
    """A program without our handler, and one that is no Python, get nothing."""
    plain = "print('ready', flush=True)\nwhile True: sum(range(1000))"
    for command in ((sys.executable, "-c", plain), ("/bin/sh", "-c", "echo ready; while :; do :; done")):
        with running("", tmp_path, *command) as process:
            assert not _woken(tmp_path, process)


@pytest.mark.usefixtures("old")
def test_a_helper_is_left_alone(tmp_path: Path) -> None:
    """A run of pip may compute for long: it is none of the job's work."""
    (tmp_path / "pip.py").write_text(LISTENS + COMPUTES)
    command = (sys.executable, "-m", "pip")
    environment = {**os.environ, "STEPSCOPE_RUN": str(tmp_path)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert not _woken(tmp_path, process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("old")
def test_who_does_not_answer_is_left_alone_in_the_end(tmp_path: Path) -> None:
    """A child of a measured process listens and makes no thread: it gets no signal without end."""
    with running("while True: sum(range(1000))", tmp_path) as process:
        wakes = waking.Waking(tmp_path)
        for _ in range(20 * waking.MOST):
            wakes.look([process.pid])
        assert wakes.sent(process.pid) == waking.MOST
        wakes.look([])
        assert wakes.sent(process.pid) == 0
