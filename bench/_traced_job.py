"""The job of ``capture.py``: ``programs/traced.py`` under ``stepscope run``, its own notes, and whether it listens."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stepscope.model.session.session import CaptureInfo
from stepscope.store.manifests import read_manifest

PROGRAM = Path(__file__).resolve().parent / "programs" / "traced.py"
PATIENCE_S = 1_800
LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp. Source: proc_net_tcp(5), include/net/tcp_states.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One profile, CLOCK_MONOTONIC: recording from ``began`` to ``stopped``, written at ``written``."""

    began: int
    stopped: int
    written: int
    cpu_ns: int = 0
    """CPU time of the thread that wrote it; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The program's own notes, CLOCK_MONOTONIC."""

    ends: list[int]
    gaps: list[tuple[int, int]]
    own: list[tuple[int, int, int, int]]
    """Times (began, stopped, written) of its own profiles, and CPU time of the writing thread if not the training's."""
    calls: int
    """Number of small calls per step; 0 if it makes none."""

    def profiles(self) -> list[Window]:
        """Its own profiles."""
        return [Window(began=began, stopped=stop, written=end, cpu_ns=cpu) for began, stop, end, cpu in self.own]


class Ears(threading.Thread):
    """Watches repeatedly which sockets of a process listen."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._process = Path(f"/proc/{pid}")
        self._over = threading.Event()
        self.most, self.looks = 0, 0

    def run(self) -> None:
        """Watch every 20 ms."""
        while not self._over.wait(0.02):
            try:
                self.most = max(self.most, self._listening())
            except FileNotFoundError:
                return
            self.looks += 1

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()
        self.join()

    def _listening(self) -> int:
        rows = [row for name in ("tcp", "tcp6") for row in (self._process / "net" / name).read_text().splitlines()[1:]]
        open_ = {f"socket:[{row.split()[9]}]" for row in rows if row.split()[3] == LISTEN}
        return len(open_ & self._descriptors()) if open_ else 0

    def _descriptors(self) -> set[str]:
        found = set()
        for link in (self._process / "fd").iterdir():
            try:
                found.add(str(link.readlink()))
            except FileNotFoundError:  # closed meanwhile
                continue
        return found


class Job:
    """The program under ``stepscope run``, from the end of its warm-up."""

    def __init__(self, folder: Path, python: Sequence[str], *words: str, budget: str = "1%") -> None:
        self.folder = folder
        own = ["run", "--quiet", "--budget", budget, "--session", str(folder / "s.stepscope"), "--keep-raw", "--"]
        program = [*python, str(PROGRAM), *words, "--until", str(folder / "until"), "--out", str(folder / "out.json")]
        with (folder / "stderr").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stepscope", *own, *program], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        stdout = self._process.stdout
        if stdout is None or stdout.readline() != "ready\n":
            raise RuntimeError((folder / "stderr").read_text()[-2000:])

    def trace(self, *options: str) -> None:
        """Request captures."""
        for _ in range(60):
            command = [sys.executable, "-m", "stepscope", "trace", str(self.folder / "s.stepscope"), *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not done.returncode:
                return
            time.sleep(1)
        raise RuntimeError(done.stderr)

    def captures(self) -> list[CaptureInfo]:
        """Captures made so far."""
        manifest = read_manifest(self.folder / "s.stepscope")
        return [capture for capture in manifest.captures if capture.outcome == "done"]

    def origin(self) -> int:
        """Zero of the session's times."""
        return read_manifest(self.folder / "s.stepscope").origin_monotonic_ns

    def share(self) -> float:
        """Share of the job's wall time that captures cost."""
        manifest = read_manifest(self.folder / "s.stepscope")
        return sum(capture.cost_ns for capture in manifest.captures) / max(1, manifest.ended_ns)

    def profiled(self) -> int:
        """Number of traces that the program has written itself."""
        return len(list((self.folder / "own").rglob("*.xplane.pb")))

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Wait until ``what`` holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"{self.folder}: it took too long, or the job ended")
            time.sleep(1)

    def pid(self) -> int:
        """Pid of the program."""
        return read_manifest(self.folder / "s.stepscope").job_pid

    def end(self, *, by_itself: bool = False) -> Noted:
        """Let it end, or wait until it does; what it noted."""
        if not by_itself:
            (self.folder / "until").touch()
        self._process.communicate(timeout=300)
        return msgspec.json.decode((self.folder / "out.json").read_bytes(), type=Noted)
