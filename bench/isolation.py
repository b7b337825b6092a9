"""Do trials leave nothing behind? 200 trials of programs that write, a third of them killed, as root and as a user.

Each program of ``programs/leaves_things.py`` runs as a trial of ``whatif`` does, in a home, a working folder (a git
repository) and a project of its own; some run under ``stepscope whatif`` itself. Every third is killed at a random
moment: launcher, job or sidecar by SIGKILL, or all of them by Ctrl-C. Then all files must be as before (kind, mode,
owner, times, links, extended attributes, content), and no process, mount, file elsewhere, System V or abstract name may
be left. What has been run is kept in ``--results`` for each state of ``src``. To be run by root.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import _left_behind
from stepscope.tables import layout
from whatif import ROOT, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _left_behind import Held

PAGE = ROOT / "docs" / "benchmarks" / "isolation.md"
RESULTS = ROOT / "build" / "isolation.jsonl"
PROGRAM = ROOT / "bench" / "programs" / "leaves_things.py"
STARTER = ROOT / "bench" / "_isolated_trial.py"
UID = 54321
"""A normal user without name, files and other processes."""
KINDS = (
    *("plain", "append", "rename_over", "delete", "truncate", "modes", "links", "attributes", "mapped", "temporary"),
    *("system_v", "posix_memory", "daemon", "children", "lock", "relative_append", "inherited", "of_children"),
    *("commit", "unix_socket", "fifo", "database", "compiled", "home_of_tools", "sparse", "whole_tree", "keras"),
)
VICTIMS = ("launcher", "job", "sidecar", "Ctrl-C")
KILLED = 1 / 3
"""Share of the trials that are killed."""
BY_WHATIF = 10
"""One in so many trials runs under ``stepscope whatif``."""
LOOP_S = 2.0
"""A killed trial writes again and again for so long."""
MOMENT_S = 2.5
"""The latest moment of a kill, from the start of the launcher."""
EARLY_S = 0.6
TIMEOUT_S = 300.0
FAILED = "the program failed"
SETTLE_S = 60.0
"""Time in which a sidecar whose launcher was killed has to finish the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is run."""

    number: int
    kind: str
    uid: int
    victim: str = ""
    """Who is killed; "": nobody."""
    after_s: float = 0.0
    by_whatif: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of it."""

    trial: Trial
    code: int
    """Exit code of the launcher."""
    written: bool
    """Whether the program has written before it ended or was killed."""
    left: tuple[str, ...]
    """What is left, in words, and that the program failed, if it did."""
    settled_s: float = 0.0
    """Time from the launcher's end to that of the last process."""
    said: str = ""
    """Last line of the standard error, unless all is well."""

    @property
    def remains(self) -> tuple[str, ...]:
        """What is left."""
        return tuple(text for text in self.left if not text.startswith(FAILED))


def trials(number: int, seed: int) -> list[Trial]:
    """The list of trials, the same for the same seed."""
    chance = random.Random(seed)
    killed = set(chance.sample(range(number), round(number * KILLED)))
    found = []
    for at in range(number):
        trial = Trial(number=at, kind=KINDS[at % len(KINDS)], uid=(0, UID)[at // len(KINDS) % 2])
        trial = replace(trial, by_whatif=at % BY_WHATIF == BY_WHATIF - 1 and trial.kind != "keras")
        if at in killed:
            trial = replace(trial, victim=chance.choice(VICTIMS), after_s=chance.uniform(0.0, MOMENT_S))
        found.append(trial)
    return found


@functools.cache
def python_of(uid: int) -> str:
    """A Python that a user may run."""
    command = ["sh", "-c", 'exec "$1" -c ""', "sh", sys.executable]
    own = subprocess.run([*as_user(uid), *command], cwd="/", stderr=subprocess.DEVNULL, check=False)
    return f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}" if own.returncode else sys.executable


def as_user(uid: int) -> list[str]:
    """The beginning of a command line of a user."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []


def early(number: int, seed: int) -> list[Trial]:
    """Trials whose launcher is killed while it starts."""
    chance = random.Random(seed)
    moments = [chance.uniform(0.0, EARLY_S) for _ in range(number)]
    return [
        Trial(number=at, kind=KINDS[at % len(KINDS)], uid=(0, UID)[at % 2], victim="launcher", after_s=moment)
        for at, moment in enumerate(moments)
    ]


class Place:
    """Folders of a user for one trial."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.token = f"trial-{os.urandom(6).hex()}"
        self.base = Path(tempfile.mkdtemp(prefix="isolation-"))
        self.base.chmod(0o755)
        for name in ("home", "work", "project", "sessions"):
            (self.base / name).mkdir()
        self._fill()
        subprocess.run(["chown", "-R", f"{trial.uid}:{trial.uid}", *self.folders, self.sessions], check=True)
        self._write("work/of-root.txt", "belongs to root")
        self._call("git", "init", "-q")

    @property
    def folders(self) -> tuple[Path, ...]:
        """What must be as before."""
        return (self.base / "home", self.base / "work", self.base / "project")

    @property
    def sessions(self) -> Path:
        """Holds the session."""
        return self.base / "sessions"

    def _fill(self) -> None:
        for name in ("old.txt", "config.json", "log.csv", "out", "runs/events.1", "data/x", "inherited.log"):
            self._write(f"work/{name}", f"{name} as it was\n" * 3)
        for name in ("home/.history", "home/.bashrc", "project/notes.txt", "project/package/module.py"):
            self._write(name, "# as it was\n")
        work = self.base / "work"
        for name in ("big.bin", "inherited.bin"):
            (work / name).write_bytes(os.urandom(1 << 17))
        os.link(work / "old.txt", work / "twin.txt")
        (work / "latest").symlink_to("out")
        os.setxattr(work / "config.json", "user.kept", b"before")

    def _write(self, name: str, text: str) -> None:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _call(self, *words: str) -> None:
        command = [*as_user(self.trial.uid), *words]
        subprocess.run(command, cwd=self.base / "work", env=self._environment(), check=True)

    def _environment(self) -> dict[str, str]:
        own = {"HOME": str(self.base / "home"), "PATH": "/usr/local/bin:/usr/bin:/bin", "TRIAL": self.token}
        paths = os.pathsep.join([str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))])
        return {**own, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "2"}

    def start(self) -> subprocess.Popen[bytes]:
        """Start the trial, with descriptors that a shell has opened."""
        seconds = str(LOOP_S if self.trial.victim else 0.0)
        python = python_of(self.trial.uid)
        job = [python, str(PROGRAM), self.trial.kind, self.token, seconds]
        if self.trial.by_whatif:
            ours = ["-m", "stepscope", "whatif", "--folder", f"{self.sessions}/s", "--rounds", "3"]
            ours += ["--try", "glibc-keep", "--"]
        else:
            ours = [str(STARTER), f"{self.sessions}/s{layout.SUFFIX}", "quiet"]
        shell = ["sh", "-c", 'exec "$@" 7>>inherited.log 8<>inherited.bin 9<.', "sh"]
        with (self.base / "out").open("wb") as out, (self.base / "err").open("wb") as err:
            return subprocess.Popen(
                [*shell, *as_user(self.trial.uid), python, *ours, *job],
                cwd=self.base / "work",
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def output(self) -> str:
        """What the program has printed."""
        logs = sorted(self.sessions.glob("s/*.log"))
        return "".join(path.read_text(errors="replace") for path in (self.base / "out", *logs))


def children(pid: int) -> dict[int, str]:
    """Children of a process with their command lines."""
    found: dict[int, str] = {}
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found[int(child)] = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
    except OSError:
        return found
    return found


def victim(launcher: int, name: str) -> int:
    """The process to kill now; 0: it is not there."""
    if name == "launcher":
        return launcher
    found = children(launcher)
    sidecars = [pid for pid, line in found.items() if "sidecar" in line]
    jobs = [pid for pid, line in found.items() if PROGRAM.name in line] or sorted(found.keys() - sidecars)
    return next(iter(sidecars if name == "sidecar" else jobs), 0)


def watch(process: subprocess.Popen[bytes], held: Held, until: float) -> None:
    """Hold the trial's namespaces as soon as there are any, until a moment or the end."""
    while process.poll() is None and time.monotonic() < until:
        for pid, line in children(process.pid).items():
            if "sidecar" not in line and held.hold(pid):
                break
        time.sleep(0.02)


def kill(process: subprocess.Popen[bytes], name: str) -> None:
    """Kill the victim; if it is not there, it has ended, or does not exist yet."""
    try:
        if name == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
        elif pid := victim(process.pid, name):
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def run(trial: Trial) -> Row:
    """One trial."""
    place = Place(trial)
    uid = trial.uid or None
    before, segments, mounts = _left_behind.tree(*place.folders), _left_behind.system_v(), mount_table()
    there = set(_left_behind.named(place.token, uid))
    with _left_behind.held() as held:
        process = place.start()
        began = time.monotonic()
        if trial.victim:
            watch(process, held, began + trial.after_s)
            kill(process, trial.victim)
        watch(process, held, began + TIMEOUT_S)
        slow = process.poll() is None
        if slow:
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        ended = time.monotonic()
        settled, remaining = settle(place.token, uid, held)
        left = [*(["the launcher did not end"] if slow else []), *remaining]
    left += _left_behind.differences(before, _left_behind.tree(*place.folders), place.base)
    left += [one for one in _left_behind.named(place.token, uid) if one not in there]
    left += _left_behind.sockets(place.token)
    left += [f"left {name}" for name in sorted(_left_behind.system_v() - segments)]
    left += [f"left mount {line}" for line in sorted(mount_table() - mounts)] + sessions(place.sessions)
    written = "done" in place.output() if not trial.victim else "written" in place.output()
    if not trial.victim and (code or not written):
        left.append(f"{FAILED}: exit code {code}")
    row = Row(
        trial=trial,
        code=code,
        written=written,
        left=tuple(left),
        settled_s=round(settled - ended, 2),
        said=(place.base / "err").read_text(errors="replace")[-400:] if left or not trial.victim else "",
    )
    shutil.rmtree(place.base)
    return row


def mount_table() -> frozenset[str]:
    """The mounts of this process."""
    return frozenset(Path("/proc/self/mountinfo").read_text().splitlines())


def settle(token: str, uid: int | None, held: Held) -> tuple[float, list[str]]:
    """(when the last process has ended, what does not end)."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        left = _left_behind.processes(token, uid) + [f"process {pid} in its namespaces" for pid in held.within()]
        now = time.monotonic()
        if not left or now > deadline:
            return now, left
        time.sleep(0.05)


def sessions(folder: Path) -> list[str]:
    """What is wrong where the session is: a file too many, a run directory that is still there."""
    found = [f"left {path.name} beside the session" for path in folder.iterdir() if not path.name.startswith("s")]
    for manifest in folder.rglob(layout.MANIFEST):
        run_dir = json.loads(manifest.read_text()).get("run_dir", "")
        found += [f"left run directory {run_dir}"] if run_dir and Path(run_dir).exists() else []
    return found


def known(results: Path, state: str) -> Iterator[Row]:
    """Rows of a state of ``src`` that were measured before."""
    for line in results.read_text().splitlines() if results.exists() else ():
        entry = json.loads(line)
        if entry["tree"] == state:
            row = entry["row"]
            yield Row(**{**row, "trial": Trial(**row["trial"]), "left": tuple(row["left"])})


def report(rows: list[Row]) -> str:
    """The page's tables."""
    lines = ["| killed | trials | left nothing | had written before | longest time until the last process ended |"]
    lines.append("|---|---:|---:|---:|---:|")
    for name in ("", *VICTIMS):
        for uid in (0, UID):
            some = [row for row in rows if row.trial.victim == name and row.trial.uid == uid]
            clean, written = sum(not row.remains for row in some), sum(row.written for row in some)
            longest = max((row.settled_s for row in some), default=0.0)
            who = f"{name or 'nobody'}, {'root' if not uid else 'normal user'}"
            lines.append(f"| {who} | {len(some)} | {clean} | {written} | {longest:.1f} s |")
    left = [row for row in rows if row.remains]
    failed = [row for row in rows if row.left and not row.remains]
    sums = f"{len(rows) - len(left)} of {len(rows)} trials left nothing."
    sums += f" {len(failed)} programs failed in a trial, which then is not possible." if failed else ""
    kinds = Counter(row.trial.kind for row in rows)
    told = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
    return "\n".join([sums, "", *lines, "", f"Programs: {told}.", "", *map(failure, left + failed), ""])


def failure(row: Row) -> str:
    """A line for what is left."""
    trial = row.trial
    how = f"{trial.victim} killed after {trial.after_s:.2f} s" if trial.victim else "not killed"
    more = f" and {len(row.left) - 6} more" if len(row.left) > 6 else ""
    who = "root" if not trial.uid else "normal user"
    return f"- {trial.number}, {trial.kind}, {who}, {how}: {'; '.join(row.left[:6])}{more}"


def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="kinds of programs")
    parser.add_argument("--early", action="store_true", help="kill each launcher while it starts")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    if os.getuid():
        sys.exit("to be run by root, who can be a normal user as well")
    state = tree()
    rows = {row.trial: row for row in known(wanted.results, state)}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    listed = early(wanted.trials, wanted.seed) if wanted.early else trials(wanted.trials, wanted.seed)
    chosen = [one for one in listed if not wanted.only or one.kind in wanted.only]
    for trial in chosen:
        if trial not in rows:
            rows[trial] = run(trial)
            with wanted.results.open("a") as stream:
                stream.write(json.dumps({"tree": state, "row": asdict(rows[trial])}) + "\n")
            print(failure(rows[trial]), rows[trial].code, rows[trial].said[-200:], file=sys.stderr, flush=True)
    text = report([rows[trial] for trial in chosen])
    print(text)
    if wanted.write:
        before = PAGE.read_text("utf-8").partition("<!-- figures -->")[0]
        PAGE.write_text(f"{before}<!-- figures -->\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
