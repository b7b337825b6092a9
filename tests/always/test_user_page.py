"""The page of ``enable --ui``: one server for each user and host, which no job waits for and which ends by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import msgspec
import pytest
from starlette.types import Receive, Scope, Send
from tests.always.conftest import PATIENCE_S, SOURCE, Environment, make, plain, tool, wait_for
from tests.always.fit_program import FIT

from stepscope.collector.always_on import user_page
from stepscope.native import process_stat
from stepscope.tables.errors import UsageError
from stepscope.web import user_server
from stepscope.web.beside_server import RequestClock
from stepscope.wire import sessions_folder

NOBODY = 65_534
JOB = """
import os, sys, time
from stepscope.wire import run_directory, env
from stepscope.launcher import rundir
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
me = (os.getpid(), rundir.start_ticks(os.getpid()))
run = run_directory.make("", time.monotonic_ns(), me, 1 << 12)
job = {"pid": me[0], "start_ticks": me[1], "launcher_pid": 0, "command": ["python", sys.argv[1]], "sources": False,
       "mode": "enable", "cwd": "/"}
run_directory.write_json(os.path.join(run, env.JOB_NAME), job)
print("ready", flush=True)
sys.stdin.read()
run_directory.remove(run)
"""
"""A process that looks like a measured job: a run directory, and no sidecar."""
OTHER = """
import os, sys
from stepscope.launcher import jobs
from stepscope.collector.always_on import user_page
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
print(*(job.name for job in jobs.running()), os.access(sys.argv[1], os.R_OK), bool(user_page.address()))
"""
"""What another user sees: jobs, root's token, root's page."""


def read(address: str, path: str = "/api/v1/jobs") -> tuple[int, bytes]:
    """Status and content of an answer, with the token of the address; 0 without an answer."""
    at = urlparse(address)
    (token,) = parse_qs(at.query)["token"]
    asked = urllib.request.Request(f"http://{at.netloc}{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def names(address: str) -> list[str]:
    """The jobs that a page shows."""
    status, content = read(address)
    assert status == 200, content
    return [job["name"] for job in msgspec.json.decode(content)["items"]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder for the test, without a server when it ends."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    yield state
    found = user_page.said(user_page.folder()) if state.exists() else None
    user_page.end()
    wait_for(lambda: found is None or not found.lives, "the page's end")


def listener() -> user_page.Listener:
    """The server that listens."""
    found = user_page.said(user_page.folder())
    assert found is not None
    return found


@pytest.mark.tf
def test_the_first_job_starts_one_page_for_all(tmp_path: Path, home: Path) -> None:
    """Two jobs, one server that shows both; it outlives them, and their exit codes and output are as without."""
    environment = make(tmp_path, sys.executable, with_tensorflow=True)
    done = environment.enable("--ui")
    assert done.returncode == 0, done.stderr
    first = listener()
    assert user_page.end()  # so that the job starts it
    wait_for(lambda: not first.lives, "the first server's end")
    jobs = [environment.start(FIT, env=plain(XDG_STATE_HOME=str(home)))]
    address = wait_for(user_page.address, "the page of the first job")
    owner = listener()
    jobs.append(environment.start(FIT, env=plain(XDG_STATE_HOME=str(home))))
    wait_for(lambda: len(list(environment.sessions.glob("*.stepscope"))) == 2, "sidecars of both")
    wait_for(lambda: names(address).count("-c") >= 2, "both jobs on the page")
    assert f"page      {address}" in tool("ps").stdout
    assert address in tool("enable", "--status", "--python", environment.python).stdout
    (environment.folder / "stop").touch()
    for job in jobs:
        out, err = job.communicate(timeout=PATIENCE_S)
        assert (job.returncode, out.split()) == (0, ["ready", "done"]), err
    wait_for(lambda: len(environment.finished()) == 2, "their reports")
    assert listener() == owner
    assert owner.lives
    status, content = read(address, "/api/v1/sessions")
    assert status == 200
    assert len(msgspec.json.decode(content)["items"]) >= 2
    ended = tool("disable", "--ui", "--python", environment.python)
    assert ended.stdout.startswith("ended: the page of this user; jobs of "), ended.stderr
    wait_for(lambda: not owner.lives, "the server's end")
    assert read(address) == (0, b"")
    assert "page " not in tool("enable", "--status", "--python", environment.python).stdout


def test_a_second_server_gives_way(environment: Environment, home: Path) -> None:
    """One server holds the lock; another one ends at once. The next one has the same token and port."""
    assert environment.enable("--ui").returncode == 0
    address = user_page.address()
    before = listener()
    second = subprocess.run(
        [sys.executable, "-c", f"from {user_server.MODULE} import main; main(['0'])"],
        env={**plain(), "PYTHONPATH": str(SOURCE), "XDG_STATE_HOME": str(home)},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (second.returncode, second.stdout, second.stderr) == (0, b"", b"")
    assert listener() == before
    assert not user_page.start(user_server.MODULE, 0)
    user_page.end()
    wait_for(lambda: not before.lives, "its end")
    assert user_page.address() == ""
    assert user_page.start(user_server.MODULE, 0)
    assert wait_for(user_page.address, "the next server") == address
    assert listener() != before
    assert "no page of this user was served" not in tool("disable", "--ui", "--python", environment.python).stdout


def test_without_ui_there_is_no_page(environment: Environment, home: Path) -> None:
    """``enable`` alone starts nothing, and ``disable --ui`` says that there was nothing."""
    assert environment.enable().returncode == 0
    assert not home.exists()
    assert "no page of this user was served" in tool("disable", "--ui", "--python", environment.python).stdout
    assert not home.exists()
    assert tool("enable", "--ui", "notaport", "--python", environment.python).returncode == 64


async def unasked(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that gets no request."""


def test_it_ends_when_nothing_runs_and_no_page_is_open() -> None:
    """Half an hour after the last job and the last request; a job or a request begins it again."""
    now, runs = [0.0], [True]
    looks = RequestClock(unasked, lambda: now[0])
    idle = user_server.IdleServer(lambda: runs[0], 100.0, lambda: now[0])
    now[0] = 1_000.0
    assert not idle.come(looks)
    runs[0] = False
    now[0] = 1_099.0
    assert not idle.come(looks)
    runs[0] = True
    assert not idle.come(looks)
    runs[0] = False
    now[0] = 1_198.0
    assert not idle.come(looks)
    now[0] = 1_199.0
    assert idle.come(looks)


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts processes of others")
def test_a_user_sees_own_jobs_and_root_all(home: Path) -> None:
    """Root's page shows the jobs of two users; another user lists own ones only, and cannot read root's token."""
    env = {**plain(), "PYTHONPATH": str(SOURCE)}
    jobs: list[subprocess.Popen[bytes]] = []
    try:
        for name, uid in (("mine.py", 0), ("theirs.py", NOBODY)):
            words = [sys.executable, "-c", JOB, name, str(uid)]
            jobs.append(subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            assert jobs[-1].stdout is not None
            assert jobs[-1].stdout.readline() == b"ready\n"
        assert user_page.start(user_server.MODULE, 0)
        assert {"mine.py", "theirs.py"} <= set(names(wait_for(user_page.address, "root's page")))
        token = user_page.folder() / user_page.TOKEN
        words = [sys.executable, "-c", OTHER, str(token), str(NOBODY)]
        seen = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        assert seen.stdout.split() == ["theirs.py", "False", "False"]
    finally:
        for job in jobs:
            job.communicate(timeout=PATIENCE_S)


def test_state_of_others_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A link in place of the folder is refused; a token that others could have guessed is replaced."""
    (home / "stepscope").mkdir(parents=True)
    (home / "stepscope" / "page").symlink_to(tmp_path)
    monkeypatch.setattr(sessions_folder, "spare", lambda _: "/proc/nothing")
    with pytest.raises(UsageError, match="no folder for the page's state"):
        user_page.folder()
    (home / "stepscope" / "page").unlink()
    place = user_page.folder()
    (place / user_page.TOKEN).write_text("short")
    made = user_page.token(place)
    assert len(made) == 48
    assert user_page.token(place) == made
    assert (place / user_page.TOKEN).stat().st_mode & 0o777 == 0o600
    assert process_stat.alive(os.getpid(), process_stat.start_ticks(os.getpid()))
