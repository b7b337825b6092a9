"""The cost of viewers: ten pages on a running job, replayed, and the CPU time of its sidecar and its server.

Usage: viewers.py [--rounds N] [--seconds S] [--write]

Starts a Keras fit under ``run --ui`` and, in turn, lets nobody look and lets ten viewers look: each asks over HTTP and
listens to server-sent events as the page does that it stands for (two hubs, five overviews, three task lists), with
tags and compression, as a browser. What counts is CPU time as the kernel has it in /proc, of these two processes
alone, so that the load of the machine does not matter much; the viewers' own is not in it. What must hold: at most 2 %
of a core more than without viewers. ``--write`` puts the table into docs/benchmarks/viewers.md.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "viewers.md"
PROGRAM = ROOT / "tests" / "run" / "programs" / "long_fit.py"
TOKEN = "0123456789abcdef0123456789abcdef"
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 0.02
SETTLE_S = 20.0
"""Seconds to settle before each part: imports and the first opening of a session cost once, however many look."""
HUB_S, SESSIONS_S, BRIEF_S = 5.0, 15.0, 20.0
"""Polling intervals of the page (frontend/src/pages): jobs, sessions, the session's brief."""
HEAD = """# Viewers

Printed by `make bench-viewers ARGS=--write`: CPU time of the sidecar and of the server of `stepscope run --ui` beside a
Keras fit, as a share of one core, with nobody looking and with ten pages open (two hubs, five overviews, three task
lists), in turn. The server's part without viewers is what it takes to be there. Opening the session, which costs once
however many look, is not in it.

```text
"""


@dataclass
class Viewer:
    """One open page."""

    port: int
    key: str
    pid: int
    stop: threading.Event
    asked: int = 0
    new: int = 0
    """Number of answers other than 304."""
    events: int = 0
    problems: list[str] = field(default_factory=list)
    _tags: dict[str, str] = field(default_factory=dict)
    _connection: http.client.HTTPConnection | None = None

    def get(self, path: str) -> None:
        """Send a request as fetch does with the browser's cache."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"}
        if path in self._tags:
            headers["If-None-Match"] = self._tags[path]
        try:
            answer = self._ask(path, headers)
        except (http.client.HTTPException, OSError):  # the server closes connections that stand idle
            self._connection = None
            answer = self._ask(path, headers)
        answer.read()
        self.asked += 1
        if answer.status not in {200, 304}:
            self.problems.append(f"{path}: {answer.status}")
        self.new += answer.status == http.HTTPStatus.OK
        self._tags[path] = answer.headers.get("ETag") or ""

    def _ask(self, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._connection.request("GET", path, headers=headers)
        return self._connection.getresponse()

    def hub(self) -> None:
        """Load the list of jobs and sessions."""
        at = 0
        while not self.stop.is_set():
            self.get("/api/v1/jobs?limit=1000")
            if at % int(SESSIONS_S / HUB_S) == 0:
                self.get("/api/v1/sessions?q=&state=&offset=0&limit=50")
            at += 1
            self.stop.wait(HUB_S)

    def session(self, resources: tuple[str, ...]) -> None:
        """Follow a page of the session: requests again when its stream announces something new."""
        base = f"/api/v1/sessions/{self.key}"
        stream = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        stream.request("GET", f"/api/v1/jobs/{self.pid}/events", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = stream.getresponse()
        stamp: object = None
        brief_s = 0.0
        while not self.stop.is_set():
            line = answer.readline()
            if line.startswith(b"data: "):
                self.events += 1
                status = json.loads(line[6:]).get("status", {})
                done = [capture for capture in status.get("captures", ()) if capture["state"] == "done"]
                if stamp != (stamp := (status.get("analysed_unix_s"), len(done))):
                    for name in resources:
                        self.get(f"{base}/{name}")
            if time.monotonic() - brief_s > BRIEF_S:
                brief_s = time.monotonic()
                self.get(base)
        stream.close()


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def process_of(*words: bytes) -> int:
    """The process whose command line contains all ``words``."""
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if all(word in line for word in words):
            return int(entry.name)
    raise RuntimeError(f"no process with {words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Share of one core over one part of a round."""

    sidecar: float
    server: float


def measured(pids: tuple[int, int], seconds: float) -> Share:
    """Shares of both processes from now on."""
    began, before = time.monotonic(), [cpu_s(pid) for pid in pids]
    time.sleep(seconds)
    wall = time.monotonic() - began
    sidecar, server = ((cpu_s(pid) - first) / wall for pid, first in zip(pids, before, strict=True))
    return Share(sidecar=sidecar, server=server)


def watched(pids: tuple[int, int], seconds: float, port: int, key: str, job: int) -> tuple[Share, list[Viewer]]:
    """Shares of both processes while ten viewers look."""
    stop = threading.Event()
    viewers = [Viewer(port, key, job, stop) for _ in range(10)]
    overview, tasks = ("summary", "findings", "series"), ("tasks?limit=1000", "captures")
    threads = [threading.Thread(target=one.hub) for one in viewers[:2]]
    threads += [threading.Thread(target=one.session, args=(overview,)) for one in viewers[2:7]]
    threads += [threading.Thread(target=one.session, args=(tasks,)) for one in viewers[7:]]
    for thread in threads:
        thread.start()
    time.sleep(SETTLE_S)
    share = measured(pids, seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return share, viewers


def main() -> int:
    """Measure, print; 1 when viewers cost too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part of a round")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lines, extra = _measure(Path(name), options.rounds, options.seconds)
    print("\n".join(lines))
    if options.write:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n```\n")
    return 0 if extra <= LIMIT else 1


def _measure(folder: Path, rounds: int, seconds: float) -> tuple[list[str], float]:
    session = folder / "fit.stepscope"
    job = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "run", "-q", "--ui", "0", "--session", str(session), str(PROGRAM), "told"],
        cwd=folder,
        env={**os.environ, "STEPSCOPE_TOKEN": TOKEN, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if job.stderr is None or job.stdout is None:
        raise RuntimeError("no pipes")
    try:
        address = job.stderr.readline().strip().removeprefix("stepscope: ")
        base, _, key = address.partition("/sessions/")
        job.stdout.readline()
        pids = (
            process_of(b"stepscope.sidecar.sidecar", os.fsencode(session)),
            process_of(b"beside_server", os.fsencode(session)),
        )
        return _rounds(rounds, seconds, pids, int(base.rpartition(":")[2]), key)
    finally:
        (folder / "told").touch()
        job.communicate(timeout=300)


def _rounds(rounds: int, seconds: float, pids: tuple[int, int], port: int, key: str) -> tuple[list[str], float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/api/v1/sessions/{key}", headers={"Authorization": f"Bearer {TOKEN}"})
    job = int(json.loads(connection.getresponse().read())["pid"])
    connection.close()
    lines = ["                      sidecar    server   requests   304   events"]
    alone, looked = [], []
    for _ in range(rounds):
        time.sleep(SETTLE_S)
        alone.append(measured(pids, seconds))
        lines.append(f"nobody looks          {alone[-1].sidecar:7.2%}   {alone[-1].server:7.2%}")
        share, viewers = watched(pids, seconds, port, key, job)
        looked.append(share)
        asked, new = sum(v.asked for v in viewers), sum(v.new for v in viewers)
        shares = f"{share.sidecar:7.2%}   {share.server:7.2%}"
        events = sum(v.events for v in viewers)
        lines.append(f"ten look              {shares}   {asked:8}   {asked - new:3}   {events:6}")
        lines += sorted({problem for viewer in viewers for problem in viewer.problems})
    both = [fmean(one.sidecar + one.server for one in shares) for shares in (alone, looked)]
    extra = both[1] - both[0]
    said = "holds" if extra <= LIMIT else "does not hold"
    lines += ["", f"ten viewers cost {extra:.2%} of a core more than none; at most {LIMIT:.0%}: {said}"]
    return lines, extra


if __name__ == "__main__":
    sys.exit(main())
