"""Runs programs with the agent armed, and reads back what it wrote, with a reader of its own."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import stepscope
from stepscope.agent import state as agent_state
from stepscope.agent.payload import PAYLOAD
from stepscope.model.log.events import AnyEvent, ProcessStarted, decode

PACKAGE = Path(stepscope.__file__).parent
NODES = b'{"t":"nodes"'
"""How a block of nodes begins; every other line of the log is an event."""
_RECORD = struct.Struct("<qqqIHHHHI")
_HEADER_BYTES = 4096


class Record(NamedTuple):
    """One record as it lies in the ring."""

    start_ns: int
    dur_ns: int
    arg: int
    name: int
    kind: int
    flags: int
    thread: int
    reserved: int
    seq: int


def read_ring(path: Path) -> list[Record]:
    """Complete records of a ring, oldest first."""
    data = path.read_bytes()
    magic, version, size, slots = struct.unpack_from("<8sIIQ", data)
    assert (magic, version, size) == (b"STEPRING", 3, _RECORD.size)
    records = [Record(*_RECORD.unpack_from(data, _HEADER_BYTES + i * size)) for i in range(slots)]
    return sorted((r for i, r in enumerate(records) if r.seq and (r.seq - 1) % slots == i), key=lambda r: r.seq)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One process directory, read."""

    folder: Path
    records: list[Record]
    lines: list[AnyEvent]

    @property
    def started(self) -> ProcessStarted:
        """The first line."""
        first = self.lines[0]
        assert isinstance(first, ProcessStarted)
        return first

    def of(self, kind: type[Any]) -> list[Any]:
        """The log's lines of one type."""
        return [line for line in self.lines if isinstance(line, kind)]

    def kinds(self, kind: int) -> list[Record]:
        """The records of one kind."""
        return [record for record in self.records if record.kind == kind]


@dataclass(frozen=True, kw_only=True)
class Armed:
    """A run directory and the means to start programs in it."""

    folder: Path
    python: str = sys.executable
    extra: dict[str, str] = field(default_factory=dict)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of the job."""
        dropped = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH")
        plain = {key: value for key, value in os.environ.items() if key not in dropped}
        path = os.pathsep.join(filter(None, (str(self.folder / "arm"), more.pop("PYTHONPATH", ""))))
        return {**plain, "PYTHONPATH": path, "STEPSCOPE_RUN": str(self.folder), **self.extra, **more}

    def configure(self, **values: object) -> None:
        """Change the run's configuration."""
        path = self.folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    def start(self, program: str | Path, *flags: str, env: dict[str, str] | None = None, **options: Any) -> Any:
        """Run a program (a script's path, or source) to its end."""
        what = [str(program)] if isinstance(program, Path) else ["-c", textwrap.dedent(program)]
        return subprocess.run(
            [self.python, *flags, *what],
            env=self.environment(**(env or {})),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **options,
        )

    def processes(self) -> list[Measured]:
        """What the measured processes left, in the order in which they started."""
        found = [read_process(folder) for folder in (self.folder / "procs").iterdir()]
        return sorted(found, key=lambda process: process.lines[0].at if process.lines else 0)


def read_process(folder: Path) -> Measured:
    """The ring and the log of one process."""
    lines = [line for log in sorted(folder.glob("log-*.jsonl")) for line in log.read_bytes().splitlines()]
    ring = folder / "ring"
    return Measured(
        folder=folder,
        records=read_ring(ring) if ring.exists() else [],
        lines=[decode(line) for line in lines if not line.startswith(NODES)],
    )


def make_run(folder: Path, **config: object) -> Armed:
    """A run directory as the launcher makes it."""
    for source, destination in PAYLOAD:
        target = folder / "arm" / destination
        if source.endswith("/"):
            shutil.copytree(PACKAGE / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / source, target)
    (folder / "procs").mkdir()
    values: dict[str, object] = {"version": 1, "session": "", "origin_ns": time.monotonic_ns(), "sample_hz": 20}
    values.update({"ring_dirs": [str(folder)], "slots": 65_536}, **config)
    (folder / "config.json").write_text(json.dumps(values))
    return Armed(folder=folder)


@pytest.fixture
def armed(tmp_path: Path) -> Armed:
    """A run directory with the agent's payload."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return make_run(folder)


@pytest.fixture
def opened(armed: Armed) -> Any:
    """An open state inside this very process, gone afterwards."""
    current = agent_state.AgentState(str(armed.folder))
    assert current.open("exec")
    yield current
    current.uninstall()
    current.lines.out = True


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    """No test leaves this process measured, or a finder of ours behind."""
    before = list(sys.meta_path)
    yield
    assert agent_state.CURRENT is None
    assert sys.meta_path == before
