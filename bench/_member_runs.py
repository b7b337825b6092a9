"""A run of ``member_kills``: workers, each on a host of its own, perhaps a gathering server, and what dies of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import _hosts
import _whole_hosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from _whole_hosts import WholeHost

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "programs" / "goes_on.py"
STEPSCOPE = Path(sys.executable).with_name("stepscope")
WORKERS = 3
SERVER = WORKERS
"""Number of the host with the gathering server."""
PORT, GATHER_PORT = 5000, 7332
SECONDS = 4.0


@dataclass(slots=True, kw_only=True)
class Run:
    """A run under way."""

    kind: str
    gathered: bool
    hosts: list[WholeHost]
    """Of the workers, then that of the server."""
    folder: Path
    network: Path
    """Folder of the relay."""
    victim: int
    jobs: list[subprocess.Popen[bytes]] = field(default_factory=list)
    server: subprocess.Popen[bytes] | None = None
    killed_ns: int = 0

    @property
    def key(self) -> Path:
        """The key of clocks and server."""
        return self.folder / "key"

    @property
    def url(self) -> str:
        """The server."""
        return f"http://{self.hosts[SERVER].host.address}:{GATHER_PORT}"

    def start_server(self) -> None:
        """Start the server, and wait until it listens."""
        host = self.hosts[SERVER]
        listen = ["--listen", f"{host.host.address}:{GATHER_PORT}", "--key-file", str(self.key)]
        words = [str(STEPSCOPE), "gather", "serve", str(self.folder / "gathered"), *listen]
        self.server = host.started(words, "server", dict(os.environ))
        until = time.monotonic() + 30
        while b"http" not in host.out("server").read_bytes():
            if time.monotonic() > until:
                raise RuntimeError("the server did not start")
            time.sleep(0.02)

    def start_workers(self) -> None:
        """Start all workers."""
        workers = self.hosts[:WORKERS]
        places = [f"{one.host.address}:{PORT}" for one in workers]
        for one in workers:
            index = one.host.index
            config = {"cluster": {"worker": places}, "task": {"type": "worker", "index": index}}
            words = [str(PROGRAM), str(index), ",".join(places), str(SECONDS), str(one.disk / "count")]
            if self.kind == "bare":
                words = [sys.executable, *words]
            else:
                names = ",".join(other.host.address for other in workers)
                options = ["--clock-hosts", names, "--key-file", str(self.key), "--session", str(one.session)]
                options += ["--gather", self.url] if self.gathered else []
                words = [str(STEPSCOPE), "run", *options, *words]
            self.jobs.append(one.started(words, "worker", {**os.environ, "TF_CONFIG": json.dumps(config)}))

    def kill(self) -> bool:
        """Let die what is to die; whether it still lived."""
        self.killed_ns = time.monotonic_ns()
        if self.kind in ("link", "cut"):
            _hosts.order(self.network, "cut", self.victim)
            return True
        if self.kind in ("host", "all"):
            _hosts.order(self.network, "cut", self.victim)  # a dead host says no "connection refused"
            time.sleep(0.005)
            return _killed(_whole_hosts.first_process, self.jobs[self.victim])
        if self.kind == "server":
            return self.server is not None and _killed(_whole_hosts.first_process, self.server)
        find = _whole_hosts.collector if self.kind == "collector" else _whole_hosts.worker
        return _killed(find, self.jobs[self.victim])

    def stop(self) -> None:
        """End what is left."""
        for job in (*self.jobs, *([self.server] if self.server else [])):
            first = _whole_hosts.first_process(job)
            if first:
                _whole_hosts.kill(first)
            job.wait()
        for host in range(WORKERS + 1):
            _hosts.order(self.network, "mend", host)


def _killed(find: Callable[[subprocess.Popen[bytes]], int], started: subprocess.Popen[bytes]) -> bool:
    """Kill a process of a host, which is waited for while the host starts; False: it had ended already."""
    while started.poll() is None:
        pid = find(started)
        if pid:
            return _whole_hosts.kill(pid)
        if not _whole_hosts.worker(started) and find is _whole_hosts.worker and _has_begun(started):
            return False
        time.sleep(0.002)
    return False


def _has_begun(started: subprocess.Popen[bytes]) -> bool:
    """Whether the job of a host has had the time to start."""
    return any("sidecar" in word for _, words in _whole_hosts.below(started.pid) for word in words)
