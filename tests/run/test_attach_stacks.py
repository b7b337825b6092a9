"""``stepscope attach PID --stacks``: what all threads of a process do now, without stopping it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run.conftest import environment

PROGRAM = """
import queue, threading, time
work = queue.Queue()
def waiter():
    work.get()
def burner():
    while True:
        sum(number for number in range(1000))
for target in (waiter, waiter, burner):
    threading.Thread(target=target, daemon=True).start()
class Loop:
    def main(self):
        print("up", flush=True)
        time.sleep(600)
Loop().main()
"""
PYTHONS = [sys.executable, *filter(None, os.environ.get("STEPSCOPE_TEST_PYTHONS", "").split(":"))]


def stacks(pid: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepscope", "attach", str(pid), "--stacks"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment(), cwd="/")


def shot(program: list[str], folder: Path, user: int | None = None) -> tuple[subprocess.CompletedProcess[str], bool]:
    """The stacks of a program that has said that it is up, and whether it runs afterwards."""
    pipe = subprocess.PIPE
    with subprocess.Popen(program, cwd=folder, stdin=pipe, stdout=pipe, user=user) as process:
        if process.stdout is not None:
            process.stdout.readline()
        done = stacks(process.pid)
        runs = process.poll() is None
        process.kill()
    return done, runs


@pytest.mark.parametrize("python", PYTHONS)
def test_threads_of_a_python_program(tmp_path: Path, python: str) -> None:
    """Each thread has its functions with lines, innermost first; equal ones stand together; the program runs on."""
    (tmp_path / "threads.py").write_text(PROGRAM)
    done, runs = shot([python, "threads.py"], tmp_path)
    assert (done.returncode, done.stderr, runs) == (0, "", True)
    blocks = done.stdout.split("\n\n")
    assert "4 threads" in blocks[0]
    (main,) = (block for block in blocks if "main (threads.py:14)" in block)
    assert main.splitlines()[-1] == "    <module> (threads.py:15)"
    (waiting,) = (block for block in blocks if "waiter (threads.py:5)" in block)
    assert waiting.splitlines()[0].count(",") == 1
    assert "get (" in waiting
    assert any("burner (threads.py:" in block for block in blocks)  # at the head of its loop, or in it
    assert not any(tmp_path.glob("*.stepscope"))


def test_a_program_without_python() -> None:
    """Its threads have states, and it is said why there is no more."""
    done, runs = shot(["/bin/sh", "-c", "echo up; read line"], Path("/"))
    assert (done.returncode, runs) == (0, True)
    assert "no Python stacks: it runs no CPython of 3.10 to 3.13" in done.stdout
    assert "1 sh, sleeping" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what others run")
def test_a_program_of_another_user(tmp_path: Path) -> None:
    """Root sees the stacks of a job that is not its own."""
    tmp_path.chmod(0o755)
    done, _ = shot(["/usr/bin/env", "python3", "-c", PROGRAM], Path("/"), user=65534)
    assert done.returncode == 0
    assert "4 threads" in done.stdout


def test_no_such_process() -> None:
    """A process that has ended is an error in one line."""
    with subprocess.Popen(["true"]) as process:
        pass
    done = stacks(process.pid)
    assert done.returncode == 67
    assert len(done.stderr.splitlines()) == 1
