"""Members of a job on this host, whose run directories are those of this process: they live."""

from __future__ import annotations

import os
from pathlib import Path

from stepscope.collector.host_members import MemberSession
from stepscope.launcher import rundir
from stepscope.native import process_stat
from stepscope.wire.env import RUN_PREFIX

S = 1_000_000_000


def member(folder: Path, number: int, *, began_s: int = 0) -> MemberSession:
    """A session whose run directory is that of this process: it lives."""
    run = folder / f"{RUN_PREFIX}{os.getuid()}-{number}"
    run.mkdir(exist_ok=True)
    config = {
        "owner_pid": os.getpid(),
        "owner_ticks": process_stat.start_ticks(os.getpid()),
        "pid_namespace": str(Path("/proc/self/ns/pid").readlink()),
    }
    rundir.write_json(run / "config.json", config)
    session = folder / f"w{number}.stepscope"
    return MemberSession(session=str(session), run=str(run), names=(f"worker {number}",), began_ns=began_s * S)
