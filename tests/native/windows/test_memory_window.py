"""A window of memory over a real process: growth and the highest moment have the lines that touched the pages."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.derive.stacks import memory_stacks
from stepscope.native.kernel import perf
from stepscope.native.windows.memory_window import ROUGH, MemoryWindow
from stepscope.native.windows.native_window import WindowResult
from stepscope.tables import made_frames
from stepscope.tables.errors import CaptureError

GROWS = """
import mmap
def block(size):
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    made.madvise(mmap.MADV_NOHUGEPAGE)
    made[:] = b"x" * size
    return made
def churn():
    block(8 << 20).close()
def keep():
    kept.append(block(1 << 20))
kept = []
print("up", flush=True)
while len(kept) < 2000:
    churn()
    keep()
    churn()
"""
RATES = perf.Rates(cores=1.0, faults_per_s=8_000)
needs_perf = pytest.mark.skipif(not perf.abilities().perf, reason="perf is not installed, or may not sample")


@pytest.fixture(name="pid")
def _pid(tmp_path: Path) -> Iterator[int]:
    """A process that keeps 1 MiB and passes 16 MiB through, again and again."""
    script = tmp_path / "grows.py"
    script.write_text(GROWS)
    process = subprocess.Popen([sys.executable, "-S", str(script)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def taken(pid: int, folder: Path) -> tuple[MemoryWindow, WindowResult]:
    window = MemoryWindow(pid, folder, perf.abilities(), RATES, 3.0)
    try:
        deadline = time.monotonic() + 60
        while not window.poll(time.monotonic_ns()) and time.monotonic() < deadline:
            time.sleep(0.05)
        window.stop()
        return window, window.take(origin_ns=0, window=1)
    finally:
        window.close()


def callers(seen: WindowResult, event: str) -> dict[str, float]:
    """Bytes by the function of the user that called ``block``."""
    (profile,) = (one for one in seen.profiles if one.event == event)
    found: dict[str, float] = {}
    for stack, weight in zip(profile.samples.stack.tolist(), profile.samples.weight.tolist(), strict=True):
        names = [frame.function for frame in profile.frames_of(stack)]
        known = next((name for name in names if name in {"keep", "churn", "[there before the capture]"}), "other")
        found[known] = found.get(known, 0.0) + weight
    return found


@needs_perf
@pytest.mark.timeout(180)
def test_growth_is_of_who_keeps_not_of_who_touches_most(pid: int, tmp_path: Path) -> None:
    """One in seventeen pages is kept: growth names the line that keeps them, and sums to what the looks show."""
    window, seen = taken(pid, tmp_path / "w")
    amounts = window.amounts
    assert amounts is not None
    if not window.exact:
        pytest.skip("pages cannot be followed one by one here")
    grown = callers(seen, made_frames.GROWTH)
    assert sum(grown.values()) == pytest.approx(amounts.came)
    assert grown.get("keep", 0.0) > 0.5 * (amounts.came - (16 << 20))
    assert grown["keep"] > grown.get("churn", 0.0)  # though 16 of 17 faults are churn's
    peak = callers(seen, made_frames.HIGHEST)
    assert sum(peak.values()) == pytest.approx(amounts.highest)
    assert peak["[there before the capture]"] > 1 << 20
    places = dict(memory_stacks.places(seen.profiles[0]))
    assert any(place.startswith("grows.py:6 block") for place in places)


@needs_perf
@pytest.mark.timeout(180)
def test_without_a_program_every_kth_fault_is_sampled(
    pid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total is exact all the same; whose pages are whose is less sure, which is said."""
    monkeypatch.setattr(MemoryWindow, "_bare_gate", lambda _: None)
    monkeypatch.setattr(MemoryWindow, "_watch_frames", lambda _: None)
    window, seen = taken(pid, tmp_path / "w")
    assert not window.exact
    assert window.amounts is not None
    assert [one.code for one in seen.diagnostics] == [ROUGH]
    growth = next(one for one in seen.profiles if one.event == made_frames.GROWTH)
    assert growth.total == pytest.approx(window.amounts.came)
    assert growth.unit == "bytes"


@needs_perf
@pytest.mark.timeout(60)
def test_a_process_that_is_gone_is_said(tmp_path: Path) -> None:
    """No window over nothing."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(CaptureError, match="expected a running process of yours"):
        MemoryWindow(gone.pid, tmp_path / "w", perf.abilities(), RATES, 1.0)
