"""One run of the endings benchmark: how the job's own process ended, when, and what it printed, wrote and left.

The job's process is watched itself, through a descriptor of it: what the launcher does when the job has ended is no
part of the job. A shell, which becomes the job, writes its number and sends its output into files, so that the lines of
stepscope's launcher are not among them.
"""

from __future__ import annotations

import hashlib
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import _left_behind
from stepscope import store
from stepscope.model.log.memory import MemoryHeld
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _endings_plan import Pair

PROGRAMS = Path(__file__).resolve().parent / "programs" / "endings"
PATIENCE_S = 150.0
"""Time from the last line after which a process is said not to end. TensorFlow itself may take up to a minute to let go
of an iterator (findings/tf-data-iterator-deletion-sleeps-out-autotuning.sh), with and without stepscope."""
START_S = 400.0
"""The same from its start."""
SETTLE_S = 30.0
"""Time in which processes of a run have to end once the program has ended and the session stands."""
REPORT_S = 300.0
_SHELL = (
    'ulimit -c 0; echo $$ >"$1.part"; mv "$1.part" "$1"; out=$2; err=$3; shift 3; exec "$@" >"$out" 2>"$err" </dev/null'
)
_VOLATILE = re.compile(
    r"^[A-Z]?\d{4}[- ][\d:. -]+\d+ [\w.]+:\d+\]|^\d{4}-\d\d-\d\d [\d:., ]+|0x[0-9a-f]{6,}|(?<=pid=)\d+", re.MULTILINE
)
"""What differs between two runs of a program without stepscope: times and addresses in frameworks' messages."""
_CHANCE = re.compile(r"[a-z0-9_]{8}(?=\.|$)")
"""The part of the name of a temporary file that is drawn."""
_MOST_TEXT = 1500


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How one run ended."""

    code: int | None
    """Exit code, negative for a signal; None: it did not end."""
    out: str
    err: str
    """Standard output and error: a digest, and the text's end."""
    files: str
    """Digest of the files in its folder."""
    extra_ns: int | None
    """From its last line, or the signal, to the end of its process; None: it has no such line."""
    left: tuple[str, ...] = ()
    """What was left, in words."""
    looks: int = 0
    """Looks that stepscope took at its memory; -1: the session cannot be opened."""
    cpu_s: float = 0.0
    """CPU time of all its processes, stepscope's included."""
    wait_at: tuple[str, ...] = ()
    """Threads of a process that does not end, and in which call of the kernel they wait."""
    said: str = ""
    """What the launcher printed."""


def digest(text: str) -> str:
    """Digest and end of a text, without what differs between any two runs."""
    plain = _VOLATILE.sub("", text)
    return f"{hashlib.sha256(plain.encode()).hexdigest()[:16]} {plain[-_MOST_TEXT:]}"


class Run:
    """One run of a pair's program in a folder of its own."""

    def __init__(self, pair: Pair, stepscope: Sequence[str], folder: Path) -> None:
        self.pair, self.folder = pair, folder
        self.session = folder / "s.stepscope" if stepscope else None
        self.token = f"endings-{os.urandom(6).hex()}"
        for name in ("work", "tmp"):
            (folder / name).mkdir(parents=True)
        program, *words = (word.replace("{framework}", pair.framework) for word in pair.way.words)
        files = [str(folder / name) for name in ("pid", "out", "err")]
        job = ["/bin/sh", "-c", _SHELL, "sh", *files, pair.python, str(PROGRAMS / program), *words]
        ours = [*stepscope, "run", "--quiet", "--session", str(self.session), "--"] if stepscope else []
        self._terminal = pty.openpty() if pair.way.to == "terminal" else None
        controls = ["setsid", "--ctty"] if self._terminal else []
        with (folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [*controls, *ours, *job],
                cwd=folder / "work",
                env=self._environment(),
                stdin=self._terminal[1] if self._terminal else subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=not controls,
            )

    def _environment(self) -> dict[str, str]:
        own = {"ENDINGS_NOTES": str(self.folder / "notes"), "ENDINGS_TOKEN": self.token, "PYTHONHASHSEED": "1"}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1", "JAX_PLATFORMS": "cpu"}
        given = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
        # A program that dies is not measured the next time: each run has a state of its own.
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        return {**given, **own, **quiet, **state, "TMPDIR": str(self.folder / "tmp")}

    def ended(self) -> Ended:
        """Wait for the end of the job, of the launcher, and of what else there is; the facts."""
        pid = self._number()
        ended_ns, sent_ns, waits = self._watch(pid) if pid else (time.monotonic_ns(), 0, ())
        code, cpu_s = self._launcher()
        left = self._settle()
        notes = dict(line.split() for line in self._read("notes").splitlines())
        last_ns = int(notes.get("last") or notes.get("watchdog") or sent_ns)
        run_dir = self._run_directory()
        left += [f"run directory {run_dir}"] if run_dir and Path(run_dir).exists() else []
        left += [f"file {path.name}" for path in (self.folder / "tmp").glob("*stepscope*")]
        if self._terminal:
            for fd in self._terminal:
                os.close(fd)
        return Ended(
            code=None if waits else code,
            out=digest(self._read("out")),
            err=digest(self._read("err")),
            files=self._files(),
            extra_ns=ended_ns - last_ns if last_ns and not waits else None,
            left=tuple(left),
            looks=self._looks(),
            cpu_s=round(cpu_s, 2),
            wait_at=waits,
            said=self._read("said")[-_MOST_TEXT:],
        )

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def _number(self) -> int:
        """The job's process; 0: it has not started."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if text := self._read("pid").strip():
                return int(text)
            if self.process.poll() is not None:
                return 0
            time.sleep(0.01)
        return 0

    def _watch(self, pid: int) -> tuple[int, int, tuple[str, ...]]:
        """(when the process ended, when its signal was sent, where it waits if it does not end)."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return time.monotonic_ns(), 0, ()
        sent_ns, deadline, noted = 0, time.monotonic() + START_S, False
        watched = select.poll()
        watched.register(fd, select.POLLIN)
        try:
            while not watched.poll(50):
                notes = self._read("notes")
                if self.pair.way.sends and not sent_ns and "ready" in notes:
                    sent_ns = time.monotonic_ns()
                    self._send(pid)
                if not noted and ("last" in notes or sent_ns):
                    noted, deadline = True, time.monotonic() + PATIENCE_S
                if time.monotonic() > deadline:
                    waits = waiting(pid)
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                    watched.poll(60_000)
                    return time.monotonic_ns(), sent_ns, waits
            return time.monotonic_ns(), sent_ns, ()
        finally:
            os.close(fd)

    def _send(self, pid: int) -> None:
        way = self.pair.way
        if self._terminal:
            os.write(self._terminal[0], b"\x03")
        elif way.to == "group" and way.sends == signal.SIGKILL:
            os.kill(pid, way.sends)  # as the kernel does that lacks memory: the job alone
        elif way.to == "group":
            os.killpg(self.process.pid, way.sends)
        else:
            os.kill(self.process.pid, way.sends)

    def _launcher(self) -> tuple[int, float]:
        """(exit code, CPU time with all processes that were waited for) of what the bench started."""
        deadline = time.monotonic() + REPORT_S
        while time.monotonic() < deadline:
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return self.process.returncode, used.ru_utime + used.ru_stime
            time.sleep(0.02)
        self.process.kill()
        return self.process.wait(), 0.0

    def _settle(self) -> list[str]:
        """Processes of this run that do not end; they are ended."""
        deadline = time.monotonic() + SETTLE_S
        while (there := _left_behind.processes(self.token, None)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for entry in Path("/proc").iterdir() if there else ():
            try:
                if entry.name.isdigit() and self.token.encode() in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue
        return there

    def _files(self) -> str:
        found = sorted(path for path in (self.folder / "work").rglob("*") if path.is_file())
        lines = [f"{path.relative_to(self.folder)} {digest(path.read_text(errors='replace'))}" for path in found]
        return " ".join([*lines, *sorted(f"tmp/{_CHANCE.sub('*', p.name)}" for p in (self.folder / "tmp").iterdir())])

    def _looks(self) -> int:
        if self.session is None or not (self.session / layout.MANIFEST).exists():
            return 0
        try:
            return sum(len(worker.all(MemoryHeld)) for worker in store.open_session(self.session).workers)
        except SessionError:
            return -1

    def _run_directory(self) -> str:
        manifest = self.session / layout.MANIFEST if self.session else None
        text = manifest.read_text() if manifest and manifest.exists() else ""
        found = re.search(r'"run_dir": ?"([^"]+)"', text)
        return found[1] if found else ""


def waiting(pid: int) -> tuple[str, ...]:
    """Each thread of a process: name, state, call of the kernel, stack there; and its children."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
        try:
            state = re.search(r"State:\s+(\S)", (task / "status").read_text())
            parts = [(task / name).read_text().strip() for name in ("comm", "wchan", "syscall")]
            children = (task / "children").read_text().split()
        except OSError:
            continue
        found.append(" ".join([*parts[:2], parts[2].split(" ")[0], state[1] if state else "?", *children]))
    return tuple(found) or ("its threads are gone",)
