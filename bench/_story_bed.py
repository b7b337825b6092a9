"""A job on two hosts, and a third that gathers, each with processes, names, clock, memory files and page of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import _whole_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from playwright.sync_api import Browser, BrowserType

    from _whole_hosts import WholeHost

    Found = TypeVar("Found")

STEPSCOPE = Path(sys.executable).with_name("stepscope")
PATIENCE_S = 240.0
GATHER_PORT = 7332
KEPT = ("PATH", "LANG", "LC_ALL", "TERM")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


def wait_for(what: Callable[[], Found], why: str, patience_s: float = PATIENCE_S) -> Found:
    """Wait until ``what`` gives something true."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.2)
    raise TimeoutError(f"{patience_s:.0f} s without {why}")


@dataclass(slots=True, kw_only=True)
class Machine:
    """A host that is up, with the user's environment on its disk."""

    place: WholeHost
    shell: subprocess.Popen[bytes]
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def disk(self) -> Path:
        """Folder of the user."""
        return self.place.disk

    @property
    def python(self) -> str:
        """Python of the environment that is enabled."""
        return str(self.disk / "venv" / "bin" / "python")

    @property
    def sessions(self) -> Path:
        """Folder of the sessions."""
        return self.disk / "state" / "stepscope" / "sessions"

    def environment(self, **more: str) -> dict[str, str]:
        """Of the user: nothing of ours, and home and state on the host's disk."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        home = {"HOME": str(self.disk), "XDG_STATE_HOME": str(self.disk / "state")}
        home |= {"XDG_CACHE_HOME": str(self.disk / "cache")}
        return {**kept, **home, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", **more}

    def _inside(self, words: Sequence[str]) -> list[str]:
        first = _whole_hosts.first_process(self.shell)
        return ["nsenter", "--target", str(first), "--mount", "--uts", "--net", "--pid", "--time", "--", *words]

    def start(self, words: Sequence[str], name: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a program of the user; what it says is in ``NAME.out`` on the host's disk."""
        with self.place.out(name).open("wb") as said:
            one = subprocess.Popen(
                self._inside(words), cwd=self.disk, env=self.environment(**more), stdout=said, stderr=said
            )
        self.started[name] = one
        return one

    def tool(self, *words: str) -> str:
        """What a command of stepscope says."""
        done = subprocess.run(
            self._inside([str(STEPSCOPE), *words]),
            cwd=self.disk,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"stepscope {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout + done.stderr

    def page(self) -> str:
        """Address of the page that ``enable --ui`` serves."""
        found = re.search(r"^page\s+(http\S+)", self.tool("ps"), re.MULTILINE)
        return found[1] if found else ""

    def manifests(self) -> list[dict[str, object]]:
        """Manifests of the sessions of single jobs."""
        paths = sorted(self.sessions.glob("*.stepscope")) if self.sessions.is_dir() else []
        return [
            json.loads((path / "manifest.json").read_text())
            for path in paths
            if not path.name.endswith("-job.stepscope")
        ]

    def browser(self, chromium: BrowserType) -> Browser:
        """A browser that sees this host's network."""
        wrapper = self.disk / "chromium.sh"
        found = shutil.which("chromium") or shutil.which("chromium-browser")
        wrapper.write_text(f'#!/bin/sh\nexec nsenter --net=/run/netns/{self.place.host.namespace} {found} "$@"\n')
        wrapper.chmod(0o755)
        return chromium.launch(executable_path=str(wrapper), args=list(FLAGS))

    def stop(self) -> None:
        """End it with all of its processes."""
        first = _whole_hosts.first_process(self.shell)
        if first:
            _whole_hosts.kill(first)
        for one in (*self.started.values(), self.shell):
            one.wait()


@contextmanager
def machines(places: Sequence[WholeHost]) -> Iterator[list[Machine]]:
    """The hosts, each up, and with an environment that has the packages of this one."""
    found: list[Machine] = []
    try:
        for place in places:
            shell = place.started(["sleep", "infinity"], "shell", dict(os.environ))
            machine = Machine(place=place, shell=shell)
            found.append(machine)
            venv = place.disk / "venv"
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
            (site,) = venv.glob("lib/python*/site-packages")
            (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
            _up(shell)
        yield found
    finally:
        for machine in found:
            machine.stop()
            shutil.rmtree(machine.place.memory, ignore_errors=True)


def _up(shell: subprocess.Popen[bytes]) -> None:
    """Wait until a host is up."""
    wait_for(lambda: "sleep" in _words(shell), "a host")


def _words(shell: subprocess.Popen[bytes]) -> set[str]:
    return {words[0] for _, words in _whole_hosts.below(shell.pid) if words}
