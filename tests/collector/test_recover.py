"""Sessions of runs that died: who the processes were, and when they were last seen, is what the files tell."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepscope.collector import recover
from stepscope.collector.recorder import Recording
from stepscope.launcher import rundir, sidecar_death
from stepscope.model.session.session import Manifest
from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.wire.env import PROCS_NAME, RING_NAME
from stepscope.wire.kinds import Kind
from stepscope.wire.log import LogWriter
from stepscope.wire.ring import MIN_SLOTS, RingWriter

S = 1_000_000_000
AGO_S = 100
"""Time from the run's begin to now."""
LIVED_S = 7


@dataclass(frozen=True)
class DeadRun:
    """What a run has left whose processes are all gone."""

    run: Path
    session: Path

    @property
    def manifest(self) -> Manifest:
        """That of the session."""
        return read_manifest(self.session)


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[DeadRun]:
    """A worker of three that wrote spans for seven seconds and then died with its collector and its launcher."""
    origin = time.monotonic_ns() - AGO_S * S
    session = tmp_path / f"w{layout.SUFFIX}"
    session.mkdir()
    run = rundir.make(session, origin)
    manifest = {"schema_version": 1, "origin_monotonic_ns": origin, "state": "running", "run_dir": str(run)}
    (session / layout.MANIFEST).write_text(json.dumps(manifest))
    folder = run / PROCS_NAME / "4194303-1"
    folder.mkdir(parents=True)
    log = LogWriter(str(folder))
    log.write({"t": "process", "at": origin, "pid": 4_194_303, "ppid": 1, "argv": ["train.py"]})
    member = {"launcher": "TF_CONFIG", "role": "worker", "index": 1, "rank": 1, "size": 3, "tasks": 3, "job_id": "j"}
    log.write({"t": "member", "at": origin, **member})
    log.close()
    ring = RingWriter(str(folder / RING_NAME), MIN_SLOTS)
    for second in range(LIVED_S):
        ring.write(origin + second * S, S, 0, 1, Kind.SPAN, 0, 1)
    yield DeadRun(run, session)
    rundir.remove(run)


def test_a_run_ended_when_its_newest_record_did(dead: DeadRun) -> None:
    """Not when somebody came to look at its session."""
    assert recover.recover(dead.session)
    assert (dead.manifest.state, dead.manifest.ended_ns) == ("recovered", LIVED_S * S)
    assert not dead.run.exists()


def test_what_is_known_of_a_run_whose_host_died(dead: DeadRun) -> None:
    """Who its process was is in the manifest as soon as it is known; when it was last seen, in what was stored."""
    recording = Recording(dead.run, dead.session)
    recording.drain(time.monotonic_ns())
    assert [worker.member.name for worker in dead.manifest.workers if worker.member] == ["worker 1"]
    recording.drainer.flush()
    shutil.rmtree(dead.run)
    assert recover.recover(dead.session)
    assert (dead.manifest.state, dead.manifest.ended_ns) == ("recovered", LIVED_S * S)
    assert [worker.member.name for worker in dead.manifest.workers if worker.member] == ["worker 1"]
    assert [one.code for one in dead.manifest.diagnostics] == ["DX109"]


def test_a_collector_that_dies_between_store_and_manifest(dead: DeadRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a process ended is still known to the next one, which finds its directory."""
    first = Recording(dead.run, dead.session)
    first.drain(time.monotonic_ns())
    log = LogWriter(str(dead.run / PROCS_NAME / "4194303-1"))
    log.write({"t": "end", "at": time.monotonic_ns(), "records": LIVED_S, "lost_lines": 0, "thread_cpu_ns": 0})
    log.close()

    def die(**_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(first.sampling, "flush", die)
    with pytest.raises(KeyboardInterrupt):
        first.flush(time.monotonic_ns())
    assert not any(worker.clean_exit for worker in dead.manifest.workers)
    second = Recording(dead.run, dead.session, starts=2)
    second.flush(time.monotonic_ns())
    second.tick(time.monotonic_ns())
    second.flush(time.monotonic_ns())
    for recording in (first, second):
        recording.sampling.close()
    assert [worker.clean_exit for worker in dead.manifest.workers] == [True]
    assert not (dead.run / PROCS_NAME / "4194303-1").exists()


def test_a_collector_that_died_is_told_with_how(dead: DeadRun) -> None:
    """By its launcher's mark, if there is one; under ``enable`` there is no launcher."""
    for how in ("", "SIGSEGV"):
        if how:
            sidecar_death.leave(dead.run, int(signal.SIGSEGV), 0)
        Recording(dead.run, dead.session, starts=2).sampling.close()
        notes = [note.text for note in dead.manifest.diagnostics if note.code == "DX101"]
        began = "the sidecar died (SIGSEGV, no word in its log) and" if how else "the sidecar died and"
        assert notes[-1].startswith(f"{began} was restarted (restarts: 1); ")


def test_a_run_of_which_nothing_is_stored(dead: DeadRun) -> None:
    """Its length is 0; what it had in other temporary directories than the one that is gone goes, too."""
    others = [path for path in rundir.ring_directories(dead.run) if path != dead.run]
    shutil.rmtree(dead.run)
    assert recover.recover(dead.session)
    assert (dead.manifest.state, dead.manifest.ended_ns) == ("recovered", 0)
    assert [path for path in others if path.exists()] == []
    assert others


def test_a_cut_segment_does_not_count(dead: DeadRun) -> None:
    """The newest readable one does."""
    recording = Recording(dead.run, dead.session)
    recording.drain(time.monotonic_ns())
    recording.drainer.flush()
    shutil.rmtree(dead.run)
    folder = next((dead.session / layout.WORKERS).iterdir())
    (folder / layout.segment_name(layout.RECORDS, 100, 200)).write_bytes(b"PAR1")
    assert recover.recover(dead.session)
    assert dead.manifest.ended_ns == LIVED_S * S
