"""One run of ``bench-faults``, in private namespaces of mounts and System V objects.

Usage: unshare -m -i _faults_cell.py SPEC.json RESULT.json

The specification has the fields of a ``Fault``, and: folder, command (of the job), launcher (in front of it; empty
without stepscope). /tmp, /var/tmp and /dev/shm are empty file systems of the run's own: all that is left there is seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import _faults_limits as limits
import _left_behind
from _faults_data import About, Ran, Said, Spec

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 300
"""Far more than a run takes, also on full cores."""
PLACES = {"shm": "/dev/shm", "tmp": "/tmp"}
SIDECAR = b"stepscope.sidecar.sidecar"
TOOLS = {"strace": ["strace", "-f", "-qq"], "perf": ["perf", "record", "-q", "-g", "-F", "99"]}
LAUNCHER = b"\0-m\0stepscope\0run\0"


def mount(*arguments: str) -> None:
    """Mount something in this namespace."""
    subprocess.run(["mount", *arguments], check=True)


def tmpfs(path: str, size: str) -> None:
    """A new file system; size "ro": one that cannot be written."""
    mount("-t", "tmpfs", "-o", "ro" if size == "ro" else f"size={size},mode=1777", "tmpfs", path)


class Cell:
    """The places of a run, the fault, and the processes."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.folder = Path(spec.folder)
        self.token = self.folder.name
        self.sessions = self.folder / "sessions"
        self.out = self.folder / "out"
        self.moment = self.folder / "moment"
        self.groups: list[Path] = []
        self.denied: tuple[int, ...] = ()
        self.happened = False

    def prepare(self) -> None:
        """Make the places and what is around the run."""
        for name in ("out", "sessions", "scratch"):
            (self.folder / name).mkdir()
        mount("--make-rprivate", "/")
        mount("--bind", str(self.folder), str(self.folder))
        wanted = dict(word.split("=", 1) for word in self.spec.around)
        self.make_places(wanted)
        if "owner" in wanted:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, int(wanted["owner"]), int(wanted["owner"]))
        if "pids" in wanted:
            self.groups.append(limits.pids(self.token, int(wanted["pids"])))
        if "memory" in wanted:
            self.groups.append(limits.memory(self.token, int(wanted["memory"][:-1])))
        self.denied = limits.DENIED.get(wanted.get("deny", ""), ())
        if wanted.get("root") == "ro":
            mount("-o", "remount,bind,ro", "/")

    def make_places(self, wanted: dict[str, str]) -> None:
        """File systems of the run's own, as the fault wants them."""
        kept = self.folder / "kept"
        kept.mkdir()
        mount("--bind", "/tmp", str(kept))
        tmpfs("/var/tmp", "ro" if wanted.get("tmp") == "ro" else "1g")
        tmpfs("/tmp", wanted.get("tmp", "1g").replace("ro", "1g"))
        for path in self.spec.keep:
            Path(path).mkdir(parents=True)
            mount("--bind", str(kept / path.removeprefix("/tmp/")), path)
        subprocess.run(["umount", str(kept)], check=True)
        kept.rmdir()
        if wanted.get("tmp") == "ro":
            mount("-o", "remount,ro", "/tmp")
        tmpfs("/dev/shm", wanted.get("shm", "4g"))
        if "sessions" in wanted:
            tmpfs(str(self.sessions), wanted["sessions"])
        if "fill" in wanted:
            fill(PLACES[wanted["fill"]])

    def start(self) -> subprocess.Popen[bytes]:
        """Start launcher and job, or the job alone."""
        command = [*self.spec.before, *self.spec.launcher, *self.spec.job, *self.spec.command]

        def limited() -> None:
            for group in () if self.spec.job else self.groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            if self.denied:
                limits.deny(self.denied)

        # A program that dies is not measured the next time: each run has a state of its own.
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state"), **self.spec.environment}
        environment.update(FAULT_OUT=str(self.out), FAULT_TMP=str(self.folder / "scratch"))
        environment.update(FAULT_INSIDE=self.spec.inside, FAULT_CLOCK=str(self.folder / "clock"))
        environment.update(FAULT_PIDS=str(self.groups[0]) if self.groups else "")
        environment["FAULT_MOMENT"] = str(self.moment) if self.spec.moment else ""
        environment = {name: value for name, value in environment.items() if value or name.startswith("FAULT_")}
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as errors:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                preexec_fn=limited,
            )

    def run(self) -> int | None:
        """Run to the end; the exit code, or None: it did not end."""
        process = self.start()
        stopped = 0
        until = time.monotonic() + TIMEOUT_S
        while process.poll() is None and time.monotonic() < until:
            if self.moment.exists() and self.moment.stat().st_size and not self.happened:
                stopped = self.happen(process.pid, int(self.moment.read_text()))
                self.happened = True
                self.moment.unlink()
            if stopped and self.over():
                resume(stopped)
                stopped = 0
            time.sleep(0.02)
        while self.others() and time.monotonic() < until:  # a job whose launcher is dead, a report
            time.sleep(0.1)
        return process.poll()

    def over(self) -> bool:
        """Whether the job's last process has ended: the sidecar and the launcher, which waits for it, do not count."""
        script = self.spec.command[-1].encode()
        found = [words for words in commands(self.token) if script in words]
        return all(SIDECAR in words or LAUNCHER in words for words in found)

    def others(self) -> list[str]:
        """Processes of the run that are there."""
        return _left_behind.processes(self.token, None)

    def happen(self, first: int, inside: int) -> int:
        """Let the fault happen, the program waiting; a process that is to be resumed after the job."""
        what, _, whom = self.spec.moment.partition(" ")
        if whom == "sidecar":
            return self.meet_sidecar(first, what)
        if whom == "launcher" and self.spec.launcher:
            os.kill(first, signal.SIGKILL)
        elif whom == "job":
            self.meet_job(self.job_of(first, inside), what)
        elif what == "attach":
            self.attach(whom, self.job_of(first, inside))
        elif what == "fill":
            for place in (*PLACES.values(), "/var/tmp", str(self.sessions))[-1 if whom == "sessions" else 0 :]:
                fill(place)
        elif what == "set":
            (self.folder / "clock").touch()
        elif what == "limit":
            (self.groups[0] / "pids.max").write_text("0")
        return 0

    def meet_sidecar(self, first: int, what: str) -> int:
        """Kill or stop the sidecar; its pid if it is to be resumed."""
        found = [pid for pid in descendants(first) if SIDECAR in command_of(pid)]
        if self.spec.launcher and not found:
            raise SystemExit("there is no sidecar to stop")
        for pid in found:
            os.kill(pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
        return found[0] if found and what == "stop" else 0

    def meet_job(self, job: int, what: str) -> None:
        """Kill or end the job, or stop it for a second."""
        os.kill(job, {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "pause": signal.SIGSTOP}[what])
        if what == "pause":
            time.sleep(1.0)
            os.kill(job, signal.SIGCONT)

    def attach(self, tool: str, job: int) -> None:
        """Let a tool follow the job until it ends; back when the tool has begun."""
        out = self.folder / "tool"
        subprocess.Popen(
            [*TOOLS[tool], "-o", str(out), "-p", str(job)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not out.exists():
            time.sleep(0.02)
        time.sleep(0.5)

    def job_of(self, first: int, inside: int) -> int:
        """The job's process, as this namespace numbers it."""
        script = self.spec.command[-1].encode()
        found = [p for p in [first, *descendants(first)] if script in command_of(p) and b"launch" not in command_of(p)]
        return inside if inside in found else found[-1]

    def result(self, code: int | None) -> Ran:
        """All that is compared, and what the report says."""
        left = [] if code is not None else ["it did not end"]
        left += [f"process {words}" for words in self.others()]
        for pid in pids(self.token):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        sessions = list(self.session_folders())
        known = {str(path) for path in sessions}
        for place in ("/dev/shm", "/tmp", "/var/tmp", str(self.folder)):
            left += [path for path in entries(place) if path not in known and not self.expected(path)]
        left += sorted(_left_behind.system_v())
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Ran(
            code=code,
            happened=self.happened,
            reached=(self.folder / "scratch" / "reached").exists(),
            stdout=read(self.folder / "stdout"),
            stderr=read(self.folder / "stderr")[-6000:],
            files={str(path.relative_to(self.out)): about(path) for path in sorted(self.out.rglob("*"))},
            left=left,
            mounts=mounts_after(self.token),
            sessions=[session_says(path) for path in sessions],
            cpu_s=round(used.ru_utime + used.ru_stime, 2),
        )

    def expected(self, path: str) -> bool:
        """Whether we, or the harness, made this entry."""
        ours = {
            "out",
            "sessions",
            "scratch",
            "state",
            "stdout",
            "stderr",
            "clock",
            "filler",
            "spec.json",
            "moment",
            "tool",
        }
        return Path(path).name in {*ours, self.token} or any(kept.startswith(path) for kept in self.spec.keep)

    def session_folders(self) -> Iterator[Path]:
        """Sessions where the run can have put them."""
        for place in (self.sessions, self.folder, *map(Path, ("/dev/shm", "/tmp", "/var/tmp"))):
            yield from sorted(place.glob("*.stepscope"))

    def close(self) -> None:
        """Remove the groups."""
        for group in self.groups:
            limits.remove(group)


def fill(place: str) -> None:
    """Write a file into a file system until it is full."""
    with contextlib.suppress(OSError), Path(place, "filler").open("ab", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def resume(pid: int) -> None:
    """Let a stopped process go on, if it is there."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGCONT)


def command_of(pid: int) -> bytes:
    """The command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def pids(token: str) -> list[int]:
    """Processes of the run."""
    mark, found = token.encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes() or mark in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def commands(token: str) -> list[bytes]:
    """Command lines of the run's processes."""
    return [command_of(pid) for pid in pids(token)]


def descendants(pid: int) -> list[int]:
    """Children of a process, theirs, and so on."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def entries(place: str) -> list[str]:
    """What is in a folder."""
    try:
        return sorted(str(path) for path in Path(place).iterdir())
    except OSError:
        return []


def read(path: Path) -> str:
    """Output, byte by byte."""
    return path.read_bytes().decode("latin-1")


def about(path: Path) -> About:
    """Mode, owner and content of a file."""
    found = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(found.st_mode) else ""
    return About(found.st_mode, found.st_uid, found.st_gid, found.st_size if content else 0, content)


def mounts_after(token: str) -> list[str]:
    """Mount points that the run has left, apart from its own."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if "stepscope-" in point and token not in point]


def session_says(path: Path) -> Said:
    """The diagnostics of a session, its findings, how its job ended, and how many processes were measured."""
    try:
        report = json.loads((path / "report.json").read_text())
        manifest = json.loads((path / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        return Said(problem=f"{error}; there: {entries(str(path))}")
    said = [f"{d['code']} {d['text']}" for d in (*report["diagnostics"], *manifest["diagnostics"])]
    said.append(f"ended with {manifest['exit_code']}")
    said += [f"{finding['code']} {finding['title']}" for finding in report["findings"]]
    return Said(said=sorted(set(said)), processes=len(manifest["workers"]))


def main() -> None:
    """Run the cell."""
    cell = Cell(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec))
    cell.prepare()
    try:
        code = cell.run()
        Path(sys.argv[2]).write_bytes(msgspec.json.encode(cell.result(code)))
    finally:
        cell.close()


if __name__ == "__main__":
    main()
