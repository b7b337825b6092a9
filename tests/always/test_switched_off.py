"""``enable``: measuring switched off while a job runs, after a crash, and for all but a share of the jobs."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from stepscope.wire import off, share

from .conftest import Environment, plain, tool, wait_for

LOOP = """
import os, time
import onnxruntime, stepscope
print("ready", flush=True)
while not os.path.exists("stop"):
    stepscope.step(); time.sleep(0.005)
if os.path.exists("crash"): os.kill(os.getpid(), 11)
print("done", flush=True)
"""


@pytest.fixture
def enabled(named: Environment, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An enabled environment, and a user of this test alone."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(named.folder / name.lower()))
    (named.folder / "loop.py").write_text(LOOP)
    return named


def notes(session: Path) -> dict[str, str]:
    """What a report says, by code."""
    report = json.loads((session / "report.json").read_text())
    return {note["code"]: note["text"] for note in report["diagnostics"]}


def measured(environment: Environment) -> bool:
    """Whether a sidecar follows a job."""
    return any((run / "status.json").exists() for run in environment.runs())


def test_a_running_job_is_left(enabled: Environment) -> None:
    """The session is complete while the job still runs; another job is not armed; the status of enable says why."""
    process = enabled.start(enabled.folder / "loop.py")
    wait_for(lambda: measured(enabled), "the sidecar")
    assert "every job of this user" in tool("disable", "--now").stdout
    (session,) = wait_for(enabled.finished, "the session's end")
    wait_for(lambda: not enabled.runs(), "the run directory to go")
    assert process.poll() is None
    assert notes(session)["DX102"].endswith(f"measuring is switched off by {off.user_file()}")
    other = enabled.start(enabled.folder / "loop.py")
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    assert enabled.runs() == []
    said = tool("enable", "--status", "--python", enabled.python).stdout
    assert f"switched off for everything by {off.user_file()}" in said
    (enabled.folder / "stop").touch()
    assert [one.communicate(timeout=60)[0][-5:] for one in (process, other)] == ["done\n", "done\n"]
    assert (process.returncode, other.returncode) == (0, 0)
    assert tool("enable", "--again").returncode == 0
    assert enabled.finished() == [session]


def test_a_crash_switches_the_program_off(enabled: Environment) -> None:
    """The collector is no parent of the job, and learns all the same how it died, where the kernel tells."""
    process = enabled.start(enabled.folder / "loop.py")
    wait_for(lambda: measured(enabled), "the sidecar")
    for name in ("crash", "stop"):
        (enabled.folder / name).touch()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGSEGV
    (session,) = wait_for(enabled.finished, "the session's end")
    wait_for(lambda: not enabled.runs(), "the run directory to go")
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 15):
        pytest.skip("this kernel does not tell how a process ended that is not one's own child")
    assert [entry["what"] for entry in off.harmed()] == ["died of SIGSEGV"]
    assert notes(session)["DX104"].startswith("measuring is off for loop.py since ")
    (enabled.folder / "crash").unlink()
    _, _, code = enabled.run(enabled.folder / "loop.py")
    assert (code, enabled.runs(), enabled.finished()) == (0, [], [session])
    assert "loop.py since" in tool("ps").stdout


def test_a_share_of_the_jobs(enabled: Environment) -> None:
    """The job that is drawn says by what it was; the other leaves nothing."""
    ids = [f"SLURM_JOB_ID={number}" for number in range(200)]
    drawn = next(identity for identity in ids if share.drawn(identity, 0.05))
    other = next(identity for identity in ids if not share.drawn(identity, 0.05))
    assert enabled.enable("--share", "5%").returncode == 0
    assert "5.0 % of the jobs" in tool("enable", "--status", "--python", enabled.python).stdout
    for identity in (other, drawn):
        process = enabled.start(enabled.folder / "loop.py", env=plain(SLURM_JOB_ID=identity.partition("=")[2]))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert bool(enabled.runs()) == (identity == drawn)
    wait_for(lambda: measured(enabled), "the sidecar")
    (enabled.folder / "stop").touch()
    (session,) = wait_for(enabled.finished, "the session's end")
    wait_for(lambda: not enabled.runs(), "the run directory to go")
    assert notes(session)["DX112"].endswith(f"drawn by {drawn}")


@pytest.mark.parametrize("text", ["0%", "101%", "some"])
def test_no_share(text: str, enabled: Environment) -> None:
    """What is no share is refused."""
    done = enabled.enable("--share", text)
    assert done.returncode == 64
    assert "expected more than 0%" in done.stderr
