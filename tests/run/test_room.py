"""A job that fills its control group: the collector gives its memory back, and the report says so."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stepscope.sessions.bundle import open_session

from .conftest import Project, environment, spans

LIMIT_MIB = 300
GROUPS = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")

FILLS = """
import glob, os, sys, time, onnxruntime, stepscope
run = os.environ["STEPSCOPE_RUN"]
kept, spans = [], 0

def work():
    global spans
    with stepscope.span("work"):
        time.sleep(0.002)
    spans += 1

def given_back():
    rings = [os.stat(path) for path in glob.glob(os.path.join(run, "procs/*/ring"))]
    return bool(rings) and all(512 * ring.st_blocks < ring.st_size // 2 for ring in rings)

until = time.monotonic() + 60
while not os.path.exists(os.path.join(run, "status.json")) and time.monotonic() < until:
    work()
while not given_back() and time.monotonic() < until:
    if len(kept) < 200 and spans % 8 == 0 and not os.path.exists(os.path.join(run, "gave-way.json")):
        kept.append(bytearray(b"x") * (1 << 20))
    work()
for _ in range(1000):
    work()
print(spans, given_back(), flush=True)
"""
"""Takes up to 200 MiB until the collector has left with the rings' memory, then works on."""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with a limit."""
    folder = None
    for base, name in GROUPS:
        made = Path(base) / f"stepscope-test-{os.getpid()}"
        try:
            made.mkdir()
            (made / name).write_text(str(LIMIT_MIB << 20))
        except OSError:
            with contextlib.suppress(OSError):
                made.rmdir()
            continue
        folder = made
        break
    if folder is None:
        pytest.skip("needs the right to make control groups")
    yield folder
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            folder.rmdir()
        except OSError:  # something in it still ends
            os.sched_yield()
        else:
            break


def test_the_collector_gives_way(project: Project, group: Path) -> None:
    """The job lives and works on unrecorded; what was recorded is whole, and the report says when that ended."""
    project.script("onnxruntime.py", "")
    project.script("fills.py", FILLS)
    enter = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid())); "
    command = project.command("run", "--session", "s.stepscope", "fills.py")
    done = subprocess.run(
        [sys.executable, "-c", f"{enter}os.execv({command[0]!r}, {command!r})"],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "DX102 nothing was recorded from " in done.stderr
    session = open_session(project.root / "s.stepscope")
    manifest = session.manifest
    (said,) = (d.text for d in manifest.diagnostics if d.code == "DX102")
    assert f"were left in the job's control group ({LIMIT_MIB} MiB), less than the" in said
    assert (manifest.state, manifest.exit_code, manifest.sidecar_starts) == ("finished", 0, 2)
    assert not any(d.code == "DX101" for d in manifest.diagnostics)
    (worker,) = session.workers
    made, given_back = done.stdout.split()
    assert given_back == "True"
    assert 0 < spans(session) <= int(made) - 1000
    assert worker.info.lost_records == 0
    assert np.array_equal(np.sort(worker.records.seq), 1 + np.arange(len(worker.records)))
