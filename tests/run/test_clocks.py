"""Two runs with different clocks on one machine: what they exchange gives the true offset."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.run.conftest import Project, environment, wait_for

from stepscope.derive.clocks import session_links
from stepscope.sessions.bundle import open_session

SKEW_S = 1_000
ELSEWHERE = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(SKEW_S)]
"""A time namespace: CLOCK_MONOTONIC is ahead, CLOCK_REALTIME is the same."""
JOB = "import sys; sys.stdin.read()"


def ports() -> list[int]:
    """Two UDP ports of the loopback interface that are free."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return found


def listening(port: int) -> bool:
    """Whether somebody has a UDP port of the loopback interface."""
    return f"0100007F:{port:04X} " in Path("/proc/net/udp").read_text()


def started(project: Project, name: str, hosts: str, before: list[str]) -> subprocess.Popen[bytes]:
    """A run whose job lasts until its standard input ends."""
    words = ["run", "-q", "--clock-hosts", hosts, "--key-file", "key", "--session", name, "job.py"]
    return subprocess.Popen(
        [*before, *project.command(*words)], cwd=project.root, env=environment(), stdin=subprocess.PIPE
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="time namespaces need root")
def test_runs_with_different_clocks(project: Project) -> None:
    """The offset of the second is the thousand seconds that its clock is ahead, within a bound of some milliseconds."""
    if subprocess.run([*ELSEWHERE, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no time namespace can be made here")
    project.script("job.py", JOB)
    (project.root / "key").write_bytes(os.urandom(32))
    (project.root / "key").chmod(0o600)
    both = ports()
    hosts = ",".join(f"127.0.0.1:{port}" for port in both)
    first = started(project, "a.stepscope", hosts, [])
    wait_for(lambda: listening(both[0]), "the first collector does not listen")
    second = started(project, "b.stepscope", hosts, ELSEWHERE)
    wait_for(lambda: listening(both[1]), "the second collector does not listen")
    for job in (second, first):  # the last burst of the second is answered by the first
        job.communicate(b"")
        assert job.returncode == 0
    sessions = [open_session(project.root / name) for name in ("a.stepscope", "b.stepscope")]
    model = session_links.model_of(sessions)
    assert model is not None
    clock = model.clocks[session_links.domain(sessions[1])]
    probes = sessions[1].peers.clock_probes
    at = (probes.received_ns[:1] + probes.answered_ns[-1:]) / 2  # by the clock of the reference
    offset, bound = clock.offset(at)[0], clock.bound(at)[0]
    assert abs(offset - SKEW_S * 1e9) <= bound < 50e6
    assert np.all(probes.returned_ns > probes.sent_ns)


def test_no_key_no_run(project: Project) -> None:
    """Hosts without a key are an error of use, before the job starts."""
    project.script("job.py", "open('ran', 'w')")
    done = subprocess.run(
        project.command("run", "--clock-hosts", "a,b", "job.py"),
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert "--key-file" in done.stderr
    assert not (project.root / "ran").exists()
