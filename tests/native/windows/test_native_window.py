"""A window over a real process: what it does is what is seen. Where perf may do nothing, that is said."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.memory_events import COPY, kernel, profile

from stepscope.derive.machine import fault_causes
from stepscope.model.session.session import Manifest, Session
from stepscope.native.cpython import bpf_program
from stepscope.native.formats import perf_data
from stepscope.native.formats.perf_data import Sample
from stepscope.native.kernel import bpf, perf
from stepscope.native.kernel.release_calls import ReleaseCalls
from stepscope.native.windows import native_window
from stepscope.native.windows.memory_window import MemoryWindow
from stepscope.native.windows.native_window import NativeWindow, WindowResult
from stepscope.tables.errors import CaptureError
from stepscope.tables.records import MemoryEvent
from stepscope.tables.stacks import StackFlag

REFAULTING = """
import mmap, sys
block = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_NOHUGEPAGE)
page = b"x" * (8 << 20)
print("up", flush=True)
while True:
    block[:] = page
    block.madvise(mmap.MADV_DONTNEED)
"""
RATES = perf.Rates(cores=1.0, faults_per_s=50_000)
needs_perf = pytest.mark.skipif(not perf.abilities().perf, reason="perf is not installed, or may not sample")


@pytest.fixture(name="pid")
def _pid() -> Iterator[int]:
    """A process that gives 8 MiB back and faults them in again, for as long as the test lasts."""
    process = subprocess.Popen([sys.executable, "-S", "-c", REFAULTING], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def taken(pid: int, folder: Path, seconds: float) -> WindowResult:
    return taken_by(NativeWindow(pid, folder, perf.abilities(), RATES, seconds))


def taken_by(window: NativeWindow) -> WindowResult:
    try:
        deadline = time.monotonic() + 60
        while not window.poll(time.monotonic_ns()) and time.monotonic() < deadline:
            time.sleep(0.05)
        window.stop()
        return window.take(origin_ns=0, window=1)
    finally:
        window.close()


@needs_perf
@pytest.mark.timeout(180)
def test_a_process_that_faults_its_memory_in_again(pid: int, tmp_path: Path) -> None:
    """Faults are seen in whole stacks of the interpreter, and their addresses lie in what was given back."""
    seen = taken(pid, tmp_path / "w", 2.0)
    profiles = {profile.event: profile for profile in seen.profiles}
    assert {"cpu", "page-faults"} <= set(profiles)
    faults = profiles["page-faults"]
    whole = (faults.samples.flags & StackFlag.WHOLE) != 0
    assert whole.mean() > 0.9
    names = {frame.function for frame in faults.frames}
    assert any("_PyEval_EvalFrameDefault" in name or "Py_" in name for name in names) or not any(
        frame.resolved for frame in faults.frames
    )
    rows = seen.events.take(seen.events.kind == MemoryEvent.FAULT)
    assert len(rows) > 20
    assert seen.perf_cpu_ns > 0
    if perf.abilities().calls:
        given = seen.events.take(seen.events.kind == MemoryEvent.MADVISE)
        assert set(given.detail.tolist()) == {4}
        start, size = int(given.address[0]), int(given.bytes[0])
        inside = (rows.address >= start) & (rows.address < start + size)
        assert inside.mean() > 0.9


@needs_perf
@pytest.mark.timeout(180)
@pytest.mark.parametrize("permitted", [True, False])
def test_calls_are_seen_without_tracefs(
    pid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, permitted: bool
) -> None:
    """By a program of ours, where it is permitted; what is lacking is said."""
    monkeypatch.setattr(perf, "_TRACING", tmp_path)
    refused = OSError(1, "Operation not permitted")
    if not permitted:
        monkeypatch.setattr(native_window, "ReleaseCalls", Mock(side_effect=refused))
    elif not may_follow(pid):
        pytest.skip("BPF is not permitted")
    found = taken(pid, tmp_path / "w", 2.0)
    said = [one.text for one in found.diagnostics if one.code == perf.NO_CALLS]
    given = found.events.take(found.events.kind == MemoryEvent.MADVISE)
    if not permitted:
        assert len(given) == 0
        assert ["do not record the calls that return memory" in text for text in said] == [True]
        return
    assert bool(said) is not native_window._shown(found.profiles)  # there are few samples on a busy machine
    assert set(given.detail.tolist()) == {4}
    assert set(given.native.tolist()) == {pid}
    assert (np.diff(found.events.at_ns) >= 0).all()
    assert (given.at_ns >= found.began_ns).all()
    rows = found.events.take(found.events.kind == MemoryEvent.FAULT)
    start, size = int(given.address[0]), int(given.bytes[0])
    assert ((rows.address >= start) & (rows.address < start + size)).mean() > 0.9
    causes = fault_causes.build(Session(manifest=Manifest(), memory_events=found.events, stacks=found.profiles))
    assert causes is not None
    assert causes.main[0] == "MADV_DONTNEED"


@needs_perf
@pytest.mark.timeout(180)
def test_calls_whose_stacks_no_sample_shows_are_said_to_lack_them(
    pid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without frames of the kernel, or where they are too quick for samples of the CPU."""
    monkeypatch.setattr(perf, "_TRACING", tmp_path)
    if not may_follow(pid):
        pytest.skip("BPF is not permitted")
    window = NativeWindow(pid, tmp_path / "w", replace(perf.abilities(), kernel=False), RATES, 2.0)
    found = taken_by(window)
    (said,) = (one.text for one in found.diagnostics if one.code == perf.NO_CALLS)
    assert "do not show what makes the calls that return memory" in said
    assert (found.events.kind == MemoryEvent.MADVISE).any()


@pytest.mark.parametrize(
    ("function", "shown"), [("__x64_sys_munmap", True), ("do_madvise", True), ("__x64_sys_mmap", False)]
)
def test_samples_of_the_cpu_show_what_makes_the_calls(function: str, shown: bool) -> None:
    """If one lies in such a call."""
    stacks = [(COPY, 9.0), ([*COPY, *kernel(function)], 1.0)]
    assert native_window._shown([profile("page-faults", stacks[:1]), profile("cpu", stacks)]) is shown


def may_follow(pid: int) -> bool:
    """Whether a program may see a process's calls."""
    try:
        ReleaseCalls(pid, perf.CALLS).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("faults", "kind"), [(1.0, NativeWindow), (50_000.0, MemoryWindow)])
def test_no_calls_are_followed_without_need(
    pid: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: float, kind: type[NativeWindow]
) -> None:
    """Nothing is lacking then: of a process that does not fault, and in a window that shows whose pages it holds."""
    monkeypatch.setattr(native_window, "ReleaseCalls", Mock(side_effect=AssertionError))
    can = perf.Abilities(perf="true")
    window = kind(pid, tmp_path / "w", can, replace(RATES, faults_per_s=faults), 1.0)
    window.close()
    assert [one.code for one in window._missing if one.code == perf.NO_CALLS] == []


@needs_perf
@pytest.mark.timeout(180)
def test_the_process_may_end_first(pid: int, tmp_path: Path) -> None:
    """A window whose process ends is over then, and what it saw until then is named."""
    window = NativeWindow(pid, tmp_path / "w", perf.abilities(), RATES, 50.0)
    try:
        until = time.monotonic() + 30
        while window.began_ns == 0 and time.monotonic() < until:
            window.poll(time.monotonic_ns())
            time.sleep(0.05)
        window.stop()
        assert window.poll(time.monotonic_ns())
    finally:
        window.close()


@needs_perf
def test_a_process_that_is_gone_is_one_clear_line(tmp_path: Path) -> None:
    """It names the process and what was expected."""
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(CaptureError, match=f"process {process.pid}: .*expected a running process of yours"):
        NativeWindow(process.pid, tmp_path / "w", perf.abilities(), RATES)


@needs_perf
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("failures", "works"), [(2, True), (8, False)])
def test_perf_that_fails_at_once_is_started_again(pid: int, tmp_path: Path, failures: int, works: bool) -> None:
    """A thread that ends while perf opens its counters makes it fail; after eight times that is said."""
    can = perf.abilities()
    script = tmp_path / "perf"
    script.write_text(
        f"""#!/bin/sh
for i in $(seq {failures}); do
  [ "$1" = record ] && mkdir {tmp_path}/failed$i 2>/dev/null && exit 255
done
exec {can.perf} "$@"
"""
    )
    script.chmod(0o755)
    window = NativeWindow(pid, tmp_path / "w", replace(can, perf=str(script)), RATES, 1.0)
    try:
        until = time.monotonic() + 60
        while not window.poll(time.monotonic_ns()) and time.monotonic() < until:
            time.sleep(0.05)
        if works:
            assert window.take(origin_ns=0, window=1).profiles
        else:
            with pytest.raises(CaptureError, match="perf recorded nothing"):
                window.take(origin_ns=0, window=1)
    finally:
        window.close()


def busy(*words: str) -> subprocess.Popen[bytes]:
    """A process that says that it is up, then uses a CPU until it is killed."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n"
    return process


def quiet_window(pid: int, folder: Path, can: perf.Abilities) -> tuple[WindowResult, list[Sample]]:
    """A window of CPU time alone, and all samples that perf wrote."""
    window = NativeWindow(pid, folder, can, perf.Rates(cores=1.0, faults_per_s=0.0), 1.5)
    try:
        until = time.monotonic() + 60
        while not window.poll(time.monotonic_ns()) and time.monotonic() < until:
            time.sleep(0.05)
        return window.take(origin_ns=0, window=1), perf_data.read(folder / "perf.data").samples
    finally:
        window.close()


SPIN_PYTHON = (sys.executable, "-S", "-c", "print('up', flush=True)\nwhile True: pass")
SPIN_SHELL = ("sh", "-c", "echo up; while :; do :; done")


@pytest.fixture(name="gate")
def _gate() -> None:
    """A host where programs may choose samples."""
    try:
        bpf.Program(bpf_program.samples_of(os.getpid())).close()
    except OSError as error:
        pytest.skip(f"no BPF: {error}")


@needs_perf
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize("words", [SPIN_PYTHON, SPIN_SHELL], ids=["python", "shell"])
def test_counters_of_cpus_tell_nothing_of_others(words: tuple[str, ...], tmp_path: Path) -> None:
    """No sample of another process is written, though these run as much; those of this one have whole stacks."""
    ours, other = busy(*words), busy(*words)
    try:
        seen, samples = quiet_window(ours.pid, tmp_path / "w", perf.abilities())
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
    assert {sample.pid for sample in samples} == {ours.pid}
    assert time.monotonic_ns() - 60e9 < seen.began_ns <= min(sample.at_ns for sample in samples)
    (cpu,) = seen.profiles
    assert ((cpu.samples.flags & StackFlag.WHOLE) != 0).mean() > 0.9
    assert cpu.threads[0].name


@needs_perf
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("gate")
def test_a_program_that_cannot_choose_leaves_counters_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it runs at some of perf's counters only, nothing of other processes is sampled before that is known."""
    attach = bpf.Program.attach
    refused: list[int] = []

    def once_refused(self: bpf.Program, pid: int) -> tuple[set[int], set[int]]:
        found, attached = attach(self, pid)
        if not refused:
            refused.append(pid)
            attached = attached - {max(attached)}
        return found, attached

    monkeypatch.setattr(bpf.Program, "attach", once_refused)
    ours, other = busy(*SPIN_PYTHON), busy(*SPIN_PYTHON)
    try:
        seen, samples = quiet_window(ours.pid, tmp_path / "w", perf.abilities())
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
    assert refused
    assert {sample.pid for sample in samples} == {ours.pid}
    assert len(seen.profiles) == 1


@needs_perf
@pytest.mark.timeout(180)
def test_a_perf_that_takes_no_commands(tmp_path: Path) -> None:
    """It records as it can, and what is missing is said."""
    can = perf.abilities()
    script = tmp_path / "perf"
    script.write_text(f'#!/bin/sh\ncase "$*" in *--control*) exit 129;; esac\nexec {can.perf} "$@"\n')
    script.chmod(0o755)
    ours = busy(*SPIN_PYTHON)
    try:
        seen, samples = quiet_window(ours.pid, tmp_path / "w", replace(can, perf=str(script)))
    finally:
        ours.kill()
        ours.wait()
    assert {sample.pid for sample in samples} == {ours.pid}
    assert ((seen.profiles[0].samples.flags & StackFlag.WHOLE) != 0).mean() > 0.9
    assert [missing.code for missing in seen.diagnostics] == ["DX149"]


@needs_perf
@pytest.mark.timeout(60)
def test_a_perf_that_cannot_be_started_is_one_clear_line(pid: int, tmp_path: Path) -> None:
    """It says which program."""
    script = tmp_path / "perf"
    script.write_text("#!/bin/sh\nexit 127\n")
    script.chmod(0o755)
    with pytest.raises(CaptureError, match=f"perf recorded nothing of process {pid}"):
        quiet_window(pid, tmp_path / "w", replace(perf.abilities(), perf=str(script)))
