"""When a job's memory is looked at, and that it costs what it may."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from stepscope.collector.recorder import Recording
from stepscope.collector.recording import look_schedule
from stepscope.collector.recording.look_schedule import CPU_RATIO, FIRST_NS, LATEST_NS, PAUSE_NS, LookSchedule
from stepscope.launcher.rundir import JobFacts
from stepscope.native.memory import hardware_counters, memory_look
from stepscope.store import memory_looks
from stepscope.tables.address_space import MemoryLook
from stepscope.tables.errors import FormatError

S = 1_000_000_000


class Recorder:
    """What a recording is for looks, and where they went."""

    def __init__(self, folder: Path, mode: str = "run", pids: tuple[int, ...] = (os.getpid(),)) -> None:
        self.notes: list[str] = []
        self.session = folder
        self.manifest = SimpleNamespace(mode=mode, origin_monotonic_ns=0)
        self.job: JobFacts | None = None
        self.drainer = SimpleNamespace(alive_pids=lambda: frozenset(pids))

    def note(self, code: str, text: str) -> None:
        self.notes.append(f"{code} {text}")


def looks_at(recorder: Recorder, until_s: int) -> list[int]:
    """Seconds at which looks came, ticked once a second."""
    looks = LookSchedule(cast("Recording", recorder), 0)
    seen = []
    for second in range(until_s):
        before = len(list(recorder.session.rglob("*.parquet")))
        looks.tick(second * S)
        if len(list(recorder.session.rglob("*.parquet"))) > before:
            seen.append(second)
    return seen


def fake(cost_ns: int) -> Callable[[int, int], MemoryLook]:
    """A look that costs so much."""
    real = memory_look.look(os.getpid(), 0)

    def look(pid: int, origin_ns: int) -> MemoryLook:
        return MemoryLook(
            pid=pid,
            at_ns=0,
            page_bytes=4096,
            huge_page_bytes=0,
            mappings=real.mappings,
            names=real.names,
            cpu_ns=cost_ns,
        )

    return look


def test_looks_come_further_and_further_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day has a dozen of them."""
    monkeypatch.setattr(memory_look, "look", fake(1000))
    first, pause = FIRST_NS["run"] // S, PAUSE_NS // S
    expected = [first, first + pause, first + 3 * pause, first + 7 * pause]
    assert looks_at(Recorder(tmp_path), first + 8 * pause) == expected


def test_a_dear_look_has_a_long_pause_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second one on, which tells what each costs, looks stay within their share of a core."""
    monkeypatch.setattr(memory_look, "look", fake(S // 2))
    first, pause = FIRST_NS["run"] // S, PAUSE_NS // S
    each = int(0.5 / CPU_RATIO)
    assert looks_at(Recorder(tmp_path), 4 * each) == [first, first + pause, 2 * each, 3 * each]


def test_what_the_first_look_does_once_is_no_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow processor the first one takes longer than its share of the pause allows; the next ones do not."""
    looks = itertools.chain([fake(S // 5)], itertools.repeat(fake(S // 50)))

    def look(pid: int, origin_ns: int) -> MemoryLook:
        return next(looks)(pid, origin_ns)

    monkeypatch.setattr(memory_look, "look", look)
    first, pause = FIRST_NS["run"] // S, PAUSE_NS // S
    assert looks_at(Recorder(tmp_path), first + 4 * pause) == [first, first + pause, first + 3 * pause]


def test_jobs_that_are_always_measured_are_looked_at_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under enable only what costs next to nothing is measured: the first look is after ten minutes."""
    monkeypatch.setattr(memory_look, "look", fake(1000))
    assert looks_at(Recorder(tmp_path, mode="enable"), 700) == [600, 660]
    assert looks_at(Recorder(tmp_path / "other", mode="import"), 700) == []


class Counted:
    """Counters that take three ticks."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.ticks = 3
        assert seconds == hardware_counters.SECONDS

    @property
    def running(self) -> bool:
        self.ticks -= 1
        return self.ticks > 0

    def result(self) -> dict[str, int]:
        return {"cycles": 5, "cpu_ns": 7}


def test_hardware_counts_before_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look waits for the counters of the largest process, and holds them."""
    monkeypatch.setattr(memory_look, "look", fake(1000))
    monkeypatch.setattr(hardware_counters, "possible", lambda: True)
    monkeypatch.setattr(look_schedule, "Counting", Counted)
    first = FIRST_NS["run"] // S
    assert looks_at(Recorder(tmp_path), first + 10) == [first + 3]
    (path,) = tmp_path.rglob("*.parquet")
    assert memory_looks.decode(path.read_bytes()).hardware == {"cycles": 5, "cpu_ns": 7}


def test_counters_that_do_not_end_hold_up_no_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten seconds the look is made."""
    monkeypatch.setattr(memory_look, "look", fake(1000))
    monkeypatch.setattr(hardware_counters, "possible", lambda: True)
    monkeypatch.setattr(look_schedule, "Counting", Counted)
    monkeypatch.setattr(Counted, "running", True)
    first = FIRST_NS["run"] // S
    assert looks_at(Recorder(tmp_path), first + 15) == [first + LATEST_NS // S]


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FormatError("no smaps")])
def test_what_cannot_be_looked_at_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A process of somebody else's, or a kernel that nobody knows, costs a line."""

    def fails(pid: int, origin_ns: int) -> MemoryLook:
        raise error

    monkeypatch.setattr(memory_look, "look", fails)
    recorder = Recorder(tmp_path)
    assert looks_at(recorder, FIRST_NS["run"] // S + 2) == []
    assert len(recorder.notes) == 1
    assert recorder.notes[0].startswith(f"DX160 no memory snapshot of process {os.getpid()}")


def test_a_process_that_has_ended_is_no_loss(tmp_path: Path) -> None:
    """It says nothing."""
    recorder = Recorder(tmp_path, pids=(2**22 + 5,))
    assert looks_at(recorder, FIRST_NS["run"] // S + 2) == []
    assert recorder.notes == []


def test_no_room_costs_a_line(tmp_path: Path) -> None:
    """A look that cannot be stored is said, and the recording goes on."""
    (tmp_path / "captures").write_text("in the way")
    recorder = Recorder(tmp_path)
    assert looks_at(recorder, FIRST_NS["run"] // S + 2) == []
    assert "could not be stored" in recorder.notes[0]


def test_a_trial_of_memory_is_looked_at_every_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs are short; what a look costs counts in all of them alike."""
    monkeypatch.setattr(memory_look, "look", fake(10 * S))
    recorder = Recorder(tmp_path)
    recorder.job = JobFacts(pid=1, start_ticks=1, launcher_pid=0, command=("x",), memory_looks_ns=3 * S)
    assert looks_at(recorder, 12) == [3, 6, 9]
