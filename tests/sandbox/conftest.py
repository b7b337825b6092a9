"""Jobs that are started isolated, by root and by a normal user."""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import pytest

import stepscope

SOURCE = Path(stepscope.__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("programs") / "start_isolated.py"
UID = 54321
"""A normal user without name, files and other processes."""
PATIENCE_S = 60.0
IMPORTS = "import sys; assert sys.version_info >= (3, 10); from stepscope.sandbox import isolation; "


class Said(TypedDict, total=False):
    """A line of ``start_isolated.py``."""

    errno: int
    pid: int
    guard: int
    namespaces: list[str]
    code: int
    stuck: list[str]
    notes: list[str]
    children: str
    mounts_same: bool


@dataclass
class Trials:
    """Jobs of one user in folders of their own."""

    uid: int
    python: str
    base: Path
    """Belongs to root; in it are the user's ``home`` and ``work``."""
    said: list[Said] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def home(self) -> Path:
        return self.base / "home"

    def command(self, *argv: str, **options: object) -> list[str]:
        return [*as_user(self.uid), self.python, str(PROGRAM), json.dumps(options), *argv]

    def process(self, *argv: str, **options: object) -> subprocess.Popen[str]:
        """Start ``start_isolated.py``."""
        return subprocess.Popen(
            self.command(*argv, **options),
            cwd=self.work,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(SOURCE), "HOME": str(self.home), "PATH": "/usr/bin:/bin"}

    def run(self, *argv: str, **options: object) -> str:
        """Run a job to its end; return its own output. ``said`` has what its starter said."""
        process = self.process(*argv, **options)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        lines = out.splitlines()
        ours = [line for line in lines if line.startswith('{"')]
        self.said = [json.loads(line) for line in ours]
        return "\n".join(line for line in lines if line not in ours) + err

    def run_code(self, code: str, *argv: str, **options: object) -> str:
        """Run Python code as the job."""
        return self.run(self.python, "-c", code, *argv, **options)

    def file(self, name: str, text: str) -> Path:
        """A file of the user's."""
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for each in (path, path.parent):
            os.chown(each, self.uid, self.uid)
        return path

    def tree(self) -> dict[str, tuple[object, ...]]:
        """All that is below ``base``: kind, mode, owner, time, content."""
        return {str(path): _seen(path) for path in sorted(self.base.rglob("*"))}


def _seen(path: Path) -> tuple[object, ...]:
    seen = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime_ns, seen.st_ino, content)


def as_user(uid: int) -> list[str]:
    """The beginning of a command line of a user."""
    return [] if uid == os.getuid() else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


@functools.cache
def _answer(python: str, uid: int) -> str | None:
    """What a user's Python says about isolation; None: the user cannot run it."""
    code = IMPORTS + "print(isolation.problem())"
    command = [*as_user(uid), python, "-c", code]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(SOURCE)}, cwd="/", capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def python_for(uid: int) -> str:
    """A Python that a user may run; skip the test if there is none, or if it cannot isolate."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        answer = _answer(python, uid)
        if answer is not None:
            if answer:
                pytest.skip(answer)
            return python
    pytest.skip("no Python (3.10 or later) that a normal user may run")


def base_for(uid: int) -> Path:
    """A folder of root's with a home and a work folder of a user; in /tmp, since pytest's are private."""
    base = Path(tempfile.mkdtemp(prefix="isolation-"))
    base.chmod(0o755)
    for name in ("home", "work"):
        (base / name).mkdir()
        os.chown(base / name, uid, uid)
    return base


@pytest.fixture(params=["self", "normal user"])
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    """Jobs of the user who runs the tests, and of a normal one if that is root."""
    uid = os.getuid() if request.param == "self" else UID
    if uid == UID and os.getuid():
        pytest.skip("only root can become another user")
    python = python_for(uid)
    base = base_for(uid)
    yield Trials(uid=uid, python=python, base=base)
    shutil.rmtree(base)
