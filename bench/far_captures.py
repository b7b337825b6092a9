"""What one request for a joint capture says of tasks on another host, when that host is well, and when it is not.

Usage: far_captures.py [--cases NAME,...] [--write]

Two hosts (``_hosts``, ``_whole_hosts``; by root), enabled with ``--clock-hosts``; an asynchronous job of
``programs/cluster_task.py``: a parameter server and worker 0 on host 0, worker 1, which is slower, on host 1. Each case
asks on host 0, by ``stepscope trace``, and has something happen: before the request, or some seconds after it. What is
printed is what the command says; and how long worker 0 and its collector took meanwhile, by its count of steps.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import _hosts
import _left_behind
import _story_bed
import _whole_hosts
from _hosts import Network, OneWay
from _story_bed import STEPSCOPE, Machine, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "far-captures.md"
PROGRAM = ROOT / "bench" / "programs" / "cluster_task.py"
PORT, CLOCKS = 5000, 7331
ONE_WAY_S = 0.0005
LOSS = 0.1
SLOWER_MS = 40
"""By which worker 1 pauses longer after each step."""
TAKEN_S, MENDED_S, RECORDS_S = 0.5, 8.0, 4.0
"""After it was said that the capture begins: the other host has taken it; is to be reached again; both record."""
BEGINS = b"begins in"
STEPS_SEEN = 30
HEAD = """# A joint capture, and another host that is not well

Printed by `make bench-far-captures ARGS=--write` (by root). Two hosts, namespaces with networks, processes, boot ids
and clocks of their own (100 s apart), 1 ms of round trip between them; a parameter server and worker 0 on host 0,
worker 1 on host 1, TensorFlow, asynchronous: worker 1 pauses 40 ms longer. Each row is one `stepscope trace` of worker
0, once. The step of worker 0 is the mean over the time that the command took, and, in brackets, over ten seconds
before all. A host whose last collector ended with its task answers no more, as one that is cut off.
"""


@dataclass(slots=True, kw_only=True)
class Job:
    """The hosts, and what runs on them."""

    hosts: list[Machine]
    network: Path
    key: Path

    def start(self) -> None:
        """Both hosts enabled, and the job started with plain python."""
        self.key.write_bytes(secrets.token_bytes(32))
        self.key.chmod(0o600)
        places = [one.place.host.address for one in self.hosts]
        for host in self.hosts:
            options = ["--clock-hosts", ",".join(places), "--key-file", str(self.key)]
            host.tool("enable", "--python", host.python, *options)
        for role, number in (("ps", 0), ("worker", 0), ("worker", 1)):
            self._task(role, number)
        wait_for(lambda: min(self.steps(n) for n in (0, 1)) >= STEPS_SEEN, "steps of both workers")

    def _task(self, role: str, number: int) -> None:
        places, host = [one.place.host.address for one in self.hosts], self.hosts[number]
        cluster = {"ps": [f"{places[0]}:{PORT}"], "worker": [f"{places[0]}:{PORT + 1}", f"{places[1]}:{PORT}"]}
        words = [host.python, str(PROGRAM), "--job", role, "--task", str(number)]
        words += ["--cluster", json.dumps(cluster), "--until", str(host.disk / "until")]
        words += ["--side", "256", "--batch", "512", "--layers", "4", "--pause-ms", str(5 + SLOWER_MS * number)]
        host.start(words, f"{role}-{number}")

    def _job(self, number: int) -> dict[str, object]:
        jobs = json.loads(self.hosts[number].tool("ps", "--json"))["jobs"]
        return next((job for job in jobs if job["member"] == f"worker {number}"), {})

    def steps(self, number: int) -> int:
        """Steps that a worker has made, by its collector."""
        return int(str(self._job(number).get("steps", 0)))

    def pid(self, number: int) -> int:
        """Of a worker, in its own host's numbers."""
        return int(str(self._job(number).get("pid", 0)))

    def traced(self, meanwhile: Callable[[Job], object] | None) -> tuple[str, float, float]:
        """What the command says of worker 0, how long it took, and a step of worker 0 meanwhile."""
        host, began, steps = self.hosts[0], time.monotonic(), self.steps(0)
        asked = host.start([str(STEPSCOPE), "trace", str(self.pid(0)), "--force"], "trace")
        if meanwhile is not None:
            wait_for(lambda: BEGINS in host.place.out("trace").read_bytes() or asked.poll() is not None, "a begin")
            meanwhile(self)
        asked.wait(_story_bed.PATIENCE_S)
        took = time.monotonic() - began
        text = host.place.out("trace").read_text(errors="replace")
        found = re.search(r"^note +(.+)$", text, re.MULTILINE)
        return found[1] if found is not None else text.strip(), took, took / max(1, self.steps(0) - steps)

    # -- what happens --

    def cut(self) -> None:
        """Host 1 is cut off."""
        _hosts.order(self.network, "cut", 1)

    def mend(self) -> None:
        """It is not any more."""
        _hosts.order(self.network, "mend", 1)

    def kill_worker(self) -> None:
        """SIGKILL of worker 1."""
        self.hosts[1].tool("ps")
        self.hosts[1].start(["kill", "-KILL", str(self.pid(1))], "kill").wait()

    def start_worker(self) -> None:
        """Worker 1 again."""
        self._task("worker", 1)
        wait_for(lambda: self.steps(1) >= STEPS_SEEN, "steps of worker 1")

    def kill_collector(self) -> None:
        """SIGKILL of the collector of worker 1."""
        pid = int(str(self._job(1).get("sidecar_pid", 0)))
        self.hosts[1].start(["kill", "-KILL", str(pid)], "kill").wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something that happens."""

    what: str
    before: Callable[[Job], object] | None = None
    meanwhile: Callable[[Job], object] | None = None
    after: Callable[[Job], object] | None = None


def _then(*acts: Callable[[Job], object] | float) -> Callable[[Job], None]:
    """Some acts, with pauses in seconds between them."""

    def all_of(job: Job) -> None:
        for act in acts:
            if callable(act):
                act(job)
            else:
                time.sleep(act)

    return all_of


def _lose(share: float) -> Callable[[Job], None]:
    return lambda job: _hosts.lose(job.network, 1, share)


CASES = {
    "well": Case(what="nothing"),
    "loss": Case(what=f"{LOSS:.0%} of the packets of host 1 are lost", before=_lose(LOSS), after=_lose(0.0)),
    "away": Case(what="host 1 is cut off before the request", before=Job.cut, after=Job.mend),
    "short": Case(
        what=f"host 1 is cut off once it has taken the request, for {MENDED_S:g} s",
        meanwhile=_then(TAKEN_S, Job.cut, MENDED_S, Job.mend),
    ),
    "long": Case(what="the same, for good", meanwhile=_then(TAKEN_S, Job.cut), after=Job.mend),
    "task": Case(
        what=f"SIGKILL of worker 1, {RECORDS_S - TAKEN_S:g} s after it has taken the request",
        meanwhile=_then(RECORDS_S, Job.kill_worker),
        after=Job.start_worker,
    ),
    "collector": Case(
        what="SIGKILL of worker 1's collector, once it has taken the request",
        meanwhile=_then(TAKEN_S, Job.kill_collector),
    ),
}


def rows(names: list[str]) -> list[str]:
    """The rows of the table."""
    network = Network(paths={"*": OneWay(delay_s=ONE_WAY_S)})
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="far-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryDirectory(prefix="far-net-") as net,
        _hosts.hosts(2, network, Path(net)) as hosts,
        _story_bed.machines([_whole_hosts.made(host, Path(scratch)) for host in hosts]) as machines,
    ):
        job = Job(hosts=machines, network=Path(net), key=Path(scratch) / "key")
        job.start()
        steps, began = job.steps(0), time.monotonic()
        time.sleep(10)
        usual = (time.monotonic() - began) / max(1, job.steps(0) - steps)
        for name in names:
            case = CASES[name]
            if case.before is not None:
                case.before(job)
            said, took, step = job.traced(case.meanwhile)
            if case.after is not None:
                case.after(job)
                wait_for(lambda: job.steps(1), "worker 1")
            found.append(f"| {case.what} | {said} | {took:.0f} | {1000 * step:.1f} ({1000 * usual:.1f}) |")
            print(found[-1], file=sys.stderr, flush=True)
        for host in machines:
            (host.disk / "until").touch()
    return found


@_left_behind.nothing_stays()
def main() -> int:
    """Make the cases and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    why = _hosts.why_not()
    if why:
        print(f"not here: {why}")
        return 0
    lines = [HEAD, "| what happens | what is said | s | step of worker 0, ms |", "|---|---|---:|---:|"]
    lines += rows(options.cases.split(","))
    lines += ["", f"{os.cpu_count()} cores; load {os.getloadavg()[1]:.1f} in the last five minutes, in part the job."]
    text = "\n".join([*lines, ""])
    print(text)
    if options.write:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
