"""Runs real TensorFlow programs with the agent armed, once each, and reads back what the probes wrote.

The programs lie in ``programs/``; lines that a test asks for end in a comment that names them. They run under this
interpreter, or under the one that STEPSCOPE_TEST_PYTHON names.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests import copies, recordings

import stepscope
from stepscope.agent.payload import PAYLOAD
from stepscope.collector.agent_files import graph_blocks
from stepscope.collector.agent_files.ring import RECORD_DTYPE
from stepscope.model.log.events import AnyEvent, Name, decode
from stepscope.model.log.graph import GraphTable, assemble
from stepscope.wire.kinds import SHAPE_SHIFT, Flag, Kind
from stepscope.wire.ring import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parent / "programs"
PACKAGE = Path(stepscope.__file__).parent
NODES = b'{"t":"nodes"'
"""How a block of nodes begins; every other line of the log is an event."""
RESULTS = "results.json"
"""Exit code, output and error output of the plain and of the armed run."""
PYTHON = os.environ.get("STEPSCOPE_TEST_PYTHON", sys.executable)


class Record(NamedTuple):
    """One record with its name resolved."""

    kind: Kind
    start: int
    dur: int
    arg: int
    name: Name
    flags: Flag
    thread: int
    shape: int = 0
    """Number of the shape that the call was given."""

    @property
    def end(self) -> int:
        """When it ended."""
        return self.start + self.dur

    def inside(self, other: Record) -> bool:
        """Whether ``other`` encloses it on the same thread."""
        return self.thread == other.thread and other.start <= self.start and self.end <= other.end


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A program's run under the agent, and its plain run."""

    source: Path
    result: subprocess.CompletedProcess[str]
    plain: subprocess.CompletedProcess[str]
    records: list[Record]
    counts: list[Record]
    """COUNTS records; ``kind`` is the kind that they stand for."""
    events: list[AnyEvent]
    graphs: GraphTable

    def line(self, mark: str) -> int:
        """Number of the line that ends in ``# mark``."""
        lines = self.source.read_text().splitlines()
        found = [number for number, line in enumerate(lines, 1) if line.endswith("# " + mark)]
        assert len(found) == 1, (mark, found)
        return found[0]

    def of(self, kind: Kind, text: str | None = None, *, role: str | None = None) -> list[Record]:
        """Records of a kind, by name."""
        return [
            r
            for r in self.records
            if r.kind == kind and (text is None or r.name.text == text) and (role is None or r.name.role == role)
        ]

    def called(self, kind: Kind, mark: str) -> list[Record]:
        """Records of a kind that the marked line called."""
        line = self.line(mark)
        return [r for r in self.of(kind) if r.name.call_line == line]

    def loop(self, mark: str) -> Record:
        """The one LOOP that the marked line called, without those that it called itself."""
        every = self.called(Kind.LOOP, mark)
        (found,) = [r for r in every if not any(r is not other and r.inside(other) for other in every)]
        return found

    def within(self, outer: Record, kind: Kind, text: str | None = None) -> list[Record]:
        """Records of a kind inside another one."""
        return [r for r in self.of(kind, text) if r.inside(outer)]

    def all(self, kind: type[Any]) -> list[Any]:
        """Lines of the log of one type."""
        return [e for e in self.events if isinstance(e, kind)]


@pytest.fixture(scope="session")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """A program of ``programs/``, run once plainly and once armed, whoever asks (``tests.recordings``)."""
    if sys.executable == PYTHON and importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed in this environment")
    made_by = recordings.key_of([PACKAGE / "agent", PACKAGE / "wire", Path(__file__)], PYTHON, _packages())
    kept = recordings.Recordings(recordings.root(request.config, tmp_path_factory.getbasetemp()), made_by)
    known: dict[str, Recorded] = {}

    def run(name: str) -> Recorded:
        if name not in known:
            source = PROGRAMS / (name + ".py")
            folder = kept.folder(f"{name}-{recordings.key_of([source])}", lambda folder: _run(source, folder))
            known[name] = _read(folder, source)
        return known[name]

    return run


@functools.cache
def _packages() -> str:
    """The packages of the interpreter that runs the programs, with their versions."""
    listed = "import importlib.metadata as m; print(sorted(f'{d.name} {d.version}' for d in m.distributions()))"
    return subprocess.run([PYTHON, "-c", listed], capture_output=True, text=True, check=True).stdout


def _run(source: Path, folder: Path) -> bool:
    """Run a program; False if it did not end as it does without the agent: that is looked at, and not kept."""
    run = _make_run(folder / "run")
    plain_environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STEPSCOPE"))}
    plain_environment.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    armed = {**plain_environment, "PYTHONPATH": str(run / "arm"), "STEPSCOPE_RUN": str(run)}
    results = {}
    for name, environment in (("plain", plain_environment), ("armed", armed)):
        (folder / name).mkdir()
        if name == "plain" and sys.executable == PYTHON:
            done = copies.run(source, environment, folder, str(folder / name))
        else:
            done = subprocess.run(
                [PYTHON, str(source), str(folder / name)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
        results[name] = [done.returncode, done.stdout, done.stderr]
    (folder / RESULTS).write_text(json.dumps(results))
    return results["plain"][0] == results["armed"][0]


def _make_run(run: Path) -> Path:
    for origin, destination in PAYLOAD:
        target = run / "arm" / destination
        if origin.endswith("/"):
            shutil.copytree(PACKAGE / origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / origin, target)
    (run / "procs").mkdir()
    config = {"version": 1, "session": "", "origin_ns": time.monotonic_ns(), "ring_dirs": [str(run)]}
    (run / "config.json").write_text(
        json.dumps({**config, "sample_hz": 20, "slots": 65_536, "duty_cycle": False, "graph_settle_ns": 200_000_000})
    )
    return run


def _read(folder: Path, source: Path) -> Recorded:
    (process,) = (folder / "run" / "procs").iterdir()
    plain, armed = (
        subprocess.CompletedProcess([PYTHON, str(source)], *result)
        for result in json.loads((folder / RESULTS).read_text()).values()
    )
    logs = sorted(process.glob("log-*.jsonl"))
    lines = [line for log in logs for line in log.read_bytes().splitlines()]
    blocks = [line for line in lines if line.startswith(NODES)]
    events = [decode(line) for line in lines if not line.startswith(NODES)]
    graphs = assemble([graph_blocks.decode(block) for block in blocks])
    names = {e.id: e for e in events if isinstance(e, Name)}
    rows = np.frombuffer((process / "ring").read_bytes()[HEADER_BYTES:], RECORD_DTYPE)
    rows = rows[rows["seq"] != 0]
    records: list[Record] = []
    counts: list[Record] = []
    for row in rows:
        kind, flags = Kind(int(row["kind"])), int(row["flags"])
        if kind in (Kind.SAMPLE, Kind.TICK):
            continue
        counted = kind == Kind.COUNTS
        record = Record(
            kind=Kind(flags >> 8) if counted else kind,
            start=int(row["start_ns"]),
            dur=int(row["dur_ns"]),
            arg=int(row["arg"]),
            name=names.get(int(row["name"]), Name(id=0, text="")),
            flags=Flag(flags & 0xFF),
            shape=0 if counted else flags >> SHAPE_SHIFT,
            thread=int(row["thread"]),
        )
        (counts if counted else records).append(record)
    return Recorded(
        source=source, result=armed, plain=plain, records=records, counts=counts, events=events, graphs=graphs
    )
