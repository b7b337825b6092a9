"""What is kept of weeks: windows of sessions, quotas of folders, run directories that nobody owns."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from stepscope.collector import sweep
from stepscope.collector.always_on import retention
from stepscope.collector.always_on.pth_file import Settings
from stepscope.collector.always_on.session_quota import SessionLimits, SessionQuota
from stepscope.launcher import run_directories, rundir
from stepscope.store.writer import EventRow, LogPosition, SessionWriter
from stepscope.tables.records import RecordTable
from stepscope.wire import sessions_folder

from .conftest import SOURCE, plain, wait_for

MIB = 1 << 20


def records(first: int, count: int) -> RecordTable:
    """Records that do not compress."""
    noise = np.random.default_rng(first).integers(0, 1 << 40, (count, 3))
    zeros = np.zeros(count, np.int64)
    seq = np.arange(first + 1, first + 1 + count)
    return RecordTable(
        start_ns=noise[:, 0],
        dur_ns=noise[:, 1],
        arg=noise[:, 2],
        name=zeros,
        kind=zeros,
        flags=zeros,
        thread=zeros,
        seq=seq,
    )


def test_a_window_keeps_the_newest(tmp_path: Path) -> None:
    """A session over its limit loses its oldest records, goes on where it was, and says how much it dropped."""
    limits = SessionLimits(bytes=2 * MIB)
    writer = SessionWriter(tmp_path, max_merged_bytes=limits.merged_bytes)
    window = SessionQuota(writer, limits)
    for number in range(40):
        writer.write_records("7-1", records(number * 10_000, 10_000))
        writer.write_events("7-1", [EventRow(0, "name", b'{"t":"name"}')], LogPosition(1, number))
        window.trim(10**12)
    assert window.dropped_segments > 10
    assert window.bytes <= limits.bytes
    assert writer.durable_records("7-1") == 400_000
    assert len(writer.stored_lines("7-1")) == 40
    again = SessionWriter(tmp_path)
    assert again.durable_records("7-1") == 400_000
    assert again.durable_log("7-1") == LogPosition(1, 39)


def test_a_window_counts_records(tmp_path: Path) -> None:
    """What compresses well is limited by the number of records, which is what analysing them costs."""
    writer = SessionWriter(tmp_path)
    window = SessionQuota(writer, SessionLimits(bytes=1 << 40, records=25_000))
    for number in range(8):
        writer.write_records("7-1", records(number * 10_000, 10_000))
    assert window.trim(0)
    assert window.dropped_segments == 6


def test_passing_lines_go_names_stay(tmp_path: Path) -> None:
    """Lines about one moment of long ago are dropped where they are many; what records refer to stays."""
    writer = SessionWriter(tmp_path)
    noise = np.random.default_rng(1)
    hour = 3_600 * 10**9
    for number in range(12):
        rows = [EventRow(number * hour, "metric", noise.bytes(200)) for _ in range(2_000)]
        rows.append(EventRow(number * hour, "name", b'{"t":"name","id":%d}' % number))
        writer.write_events("7-1", rows, LogPosition(1, number))
    SessionQuota(writer, SessionLimits(bytes=16 * MIB)).trim(12 * hour)
    kinds = [kind for kind, _ in writer.stored_lines("7-1")]
    assert kinds.count("name") == 12
    assert 5_000 <= kinds.count("metric") <= 9_000
    assert writer.durable_log("7-1") == LogPosition(1, 11)
    assert SessionWriter(tmp_path).durable_log("7-1") == LogPosition(1, 11)


def kept(folder: Path, name: str, *, size: int, age_days: float = 0.0, mode: str = "enable", **more: object) -> Path:
    """A session in a folder."""
    path = folder / f"{name}.stepscope"
    path.mkdir(parents=True)
    (path / "data").write_bytes(b"x" * size)
    (path / "manifest.json").write_text(json.dumps({"mode": mode, "state": "finished", **more}))
    at = time.time() - age_days * 86_400
    os.utime(path / "manifest.json", (at, at))
    return path


SETTINGS = Settings(python="p", package="q", quota_bytes=100 * MIB, job_quota_bytes=50 * MIB, keep_days=7)


def test_old_sessions_go(tmp_path: Path) -> None:
    """Finished sessions beyond their days are deleted; a user's own session in the same folder never is."""
    old = kept(tmp_path, "old", size=10, age_days=8)
    mine = kept(tmp_path, "mine", size=10, age_days=80, mode="run")
    new = kept(tmp_path, "new", size=10, age_days=6)
    running = kept(tmp_path, "running", size=10, age_days=9, state="running", run_dir=str(tmp_path))
    retention.keep_house(tmp_path, SETTINGS)
    assert [p.exists() for p in (old, mine, new, running)] == [False, True, True, True]


def test_the_quota_takes_the_oldest(tmp_path: Path) -> None:
    """Over the quota the oldest finished session goes first, no more than needed; jobs share what is left."""
    paths = [kept(tmp_path, f"s{n}", size=40 * MIB, age_days=4 - n) for n in range(4)]
    own = kept(tmp_path, "own", size=1, state="running", run_dir=str(tmp_path))
    allowed = retention.keep_house(tmp_path, SETTINGS, own=own)
    assert [p.exists() for p in paths] == [False, False, True, True]
    assert allowed == 100 * MIB - sum(k.bytes for k in retention.sessions_in(tmp_path) if not k.running)
    assert retention.keep_house(tmp_path / "none", SETTINGS) == SETTINGS.job_quota_bytes


def test_a_dead_job_without_run_directory_is_not_running(tmp_path: Path) -> None:
    """A session whose job and run directory are gone may be deleted like a finished one."""
    dead = kept(tmp_path, "dead", size=10, age_days=30, state="running", run_dir=str(tmp_path / "gone"))
    retention.keep_house(tmp_path, SETTINGS)
    assert not dead.exists()


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable goes before the settings, these before the user's state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(sessions_folder.VARIABLE, raising=False)
    assert Path(sessions_folder.candidates("")[0]) == tmp_path / "stepscope" / "sessions"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/x")
    assert sessions_folder.default() == "/home/x/.local/state/stepscope/sessions"
    assert sessions_folder.candidates("/said")[0] == "/said"
    monkeypatch.setenv(sessions_folder.VARIABLE, "/elsewhere")
    assert sessions_folder.candidates("/said")[0] == "/elsewhere"


def test_a_run_of_a_dead_launcher_is_swept(tmp_path: Path) -> None:
    """Launcher, job and sidecar were killed: the next sweep completes the session and takes the run directory."""
    (tmp_path / "job.py").write_text(
        "import time, stepscope\nprint('ready', flush=True)\nwhile True: stepscope.step(); time.sleep(0.01)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "run", "--session", "s.stepscope", "job.py"],
        cwd=tmp_path,
        env=plain(PYTHONPATH=str(SOURCE)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "ready\n"
    run = wait_for(lambda: _run_of(tmp_path / "s.stepscope"), "the run directory")
    wait_for((run / rundir.LOCK_NAME).exists, "the sidecar")
    assert not run_directories.abandoned(run)
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    launcher.kill()
    for child in children:
        os.kill(int(child), 9)
    launcher.communicate()
    wait_for(functools.partial(run_directories.abandoned, run), "the end of all")
    sweep.sweep()
    assert not run.exists()
    assert json.loads((tmp_path / "s.stepscope" / "manifest.json").read_text())["state"] == "recovered"


def _run_of(session: Path) -> Path | None:
    return next((r for r in run_directories.listed(os.getuid()) if rundir.session_of(r) == str(session)), None)


def test_what_another_world_owns_is_left(tmp_path: Path) -> None:
    """A run directory of another pid namespace is judged by its age and its lock alone, not by our pids."""
    run = rundir.make(tmp_path / "s.stepscope", 0)
    try:
        config = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps({**config, "owner_pid": 1 << 30}))
        assert run_directories.abandoned(run)
        (run / "config.json").write_text(json.dumps({**config, "owner_pid": 1 << 30, "pid_namespace": "pid:[1]"}))
        assert not run_directories.abandoned(run)
        day_ago = time.time() - 90_000
        os.utime(run, (day_ago, day_ago))
        assert run_directories.abandoned(run)
    finally:
        rundir.remove(run)
