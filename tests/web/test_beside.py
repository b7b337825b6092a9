"""`stepscope run --ui`: a server beside the job that is no part of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepscope.cli.job_command import split_words
from stepscope.cli.run import run
from stepscope.store.manifests import read_manifest
from stepscope.tables.layout import key_of
from stepscope.web.beside_server import LINGER_S, REPORT_S, Ending, RequestClock

from .conftest import PATIENCE_S, PROGRAM, TOKEN, command, environment, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Message, Receive, Scope, Send

ENDS_BADLY = PROGRAM + "\nprint('done', flush=True)\nsys.exit(3)\n"


@dataclass
class Beside:
    """A job under ``run --ui`` that runs until it is told to stop."""

    folder: Path
    process: subprocess.Popen[str]
    url: str
    key: str

    def answer(self, path: str, token: str = TOKEN) -> int:
        """The status of an answer, 0 where nobody answers."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as said:
                said.read()
                return int(said.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def end(self) -> tuple[int, str]:
        """Let the job end; the launcher's exit code and the rest of the job's output."""
        (self.folder / "stop").touch()
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def servers(self) -> list[int]:
        """Pids of the server."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if b"beside_server" in words and os.fsencode(self.folder / "job.stepscope") in words:
                found.append(int(entry.name))
        return found


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """Such a job, with a token that is known."""
    (tmp_path / "job.py").write_text(ENDS_BADLY)
    process = subprocess.Popen(
        command("run", "-q", "--ui", "0", "--session", "job.stepscope", "job.py", "1000000"),
        cwd=tmp_path,
        env=environment(STEPSCOPE_TOKEN=TOKEN),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    base, _, key = process.stderr.readline().strip().removeprefix("stepscope: ").partition("/sessions/")
    started = Beside(tmp_path, process, base, key)
    assert process.stdout.readline() == "ready\n"
    try:
        yield started
    finally:
        (tmp_path / "stop").touch()
        for pid in started.servers():
            os.kill(pid, signal.SIGTERM)
        process.kill()
        process.communicate()


def test_it_is_served_while_the_job_runs_and_ends_with_it(beside: Beside) -> None:
    """The printed address names the session; the job's output and exit code are its own; where nobody looked, nothing
    is left."""
    assert beside.key == key_of((beside.folder / "job.stepscope").resolve())
    assert beside.answer("/metrics") == 200
    assert beside.answer("/metrics", "x" * 32) == 401
    (server,) = beside.servers()
    assert TOKEN not in Path(f"/proc/{server}/cmdline").read_text()
    assert os.getsid(server) == server
    assert beside.end() == (3, "done\n")
    wait_for(lambda: not beside.servers(), "the server's end")
    assert beside.answer("/metrics") == 0


def test_it_stays_while_somebody_looks(beside: Beside) -> None:
    """The launcher does not wait for it; who has the page open finds the finished session in the same place."""
    gone = threading.Event()

    def look() -> None:
        while not gone.wait(0.2):
            beside.answer("/")

    looker = threading.Thread(target=look)
    looker.start()
    try:
        assert beside.answer(f"/api/v1/sessions/{beside.key}") == 200
        assert beside.end() == (3, "done\n")
        assert read_manifest(beside.folder / "job.stepscope").state == "finished"
        assert beside.answer(f"/api/v1/sessions/{beside.key}/findings") == 200
        assert len(beside.servers()) == 1
    finally:
        gone.set()
        looker.join()


def test_a_port_that_is_taken_starts_no_job(tmp_path: Path) -> None:
    """One line, the documented exit code; likewise for a port that is none and a token that is none."""
    (tmp_path / "job.py").write_text("open('ran', 'w')")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for ui, env, said in (
            (["--ui", port], {}, port),
            (["--ui", "99999"], {}, "99999"),
            (["--ui", "0"], {"STEPSCOPE_TOKEN": "short"}, "token"),
        ):
            done = subprocess.run(
                command("run", *ui, "job.py"),
                cwd=tmp_path,
                env=environment(**env),
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            assert (done.returncode, done.stderr.count("\n")) == (64, 1), done.stderr
            assert said in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "given, expected",
    [
        (["--ui", "train.py", "5"], ["--ui=", "train.py", "5"]),
        (["--ui", "8080", "train.py", "--ui"], ["--ui=8080", "train.py", "--ui"]),
        (["-q", "--ui", "-m", "pkg", "--ui"], ["-q", "--ui=", "-m", "pkg", "--", "--ui"]),
        (["--ui", "--", "cmd"], ["--ui=", "--", "cmd"]),
        (["--session", "--ui", "train.py"], ["--session", "--ui", "train.py"]),
    ],
)
def test_a_port_may_follow(given: list[str], expected: list[str]) -> None:
    """Only a number is a port; what stands behind the script is the script's."""
    assert split_words(given, run.params)[0] == expected


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_when_it_ends() -> None:
    """Never while the job runs; then with the report, or when that is overdue; and not while somebody looks."""
    clock = Clock()
    runs, reported = True, False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        clock.now += 1

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    looks = RequestClock(app, clock)
    ending = Ending(lambda: runs, lambda: reported, clock)

    def asked(path: str) -> None:
        asyncio.run(looks({"type": "http", "path": path}, receive, send))

    clock.now = 1e6
    assert not ending.come(looks)
    runs = False
    assert not ending.come(looks)
    clock.now += REPORT_S + 1
    assert ending.come(looks)
    reported = True
    asked("/metrics")
    assert ending.come(looks)
    asked("/")
    assert not ending.come(looks)
    clock.now += LINGER_S
    assert ending.come(looks)
