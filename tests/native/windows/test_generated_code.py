"""Code without a file and without tables, called from Python: it has a name and callers, and is never whole."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.native.kernel import perf
from stepscope.native.windows.native_decode import CPU, UNREADABLE_MEMORY
from stepscope.native.windows.native_window import NativeWindow, WindowResult
from stepscope.tables.stacks import FrameKind, StackFlag

PROGRAM = """
import ctypes, mmap, os, sys, threading

pushes = bytes.fromhex("55 53 41 54 41 55 41 56 41 57")  # rbp rbx r12 r13 r14 r15, as oneDNN's kernels do
pops = bytes.fromhex("41 5f 41 5e 41 5d 41 5c 5b 5d")
count = bytes.fromhex("b9 00 00 00 04 ff c9 75 fc")  # mov ecx, 1 << 26; dec ecx; jnz
room = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
room.write(pushes + count + pops + b"\\xc3")
address = ctypes.addressof(ctypes.c_char.from_buffer(room))
kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
caller = threading.Thread(target=threading.Event().wait, daemon=True)
caller.start()
variable = caller.ident - 4096 if sys.argv[1:] == ["waited-for"] else 0  # on the other thread's stack
if sys.argv[1:] == ["told"]:
    with open(f"/tmp/perf-{os.getpid()}.map", "w") as map:
        map.write(f"{address:x} 40 counting_kernel\\n")

def step():
    kernel(variable)

print("up", threading.get_ident(), caller.ident, flush=True)
while True:
    step()
"""


def sampled(tmp_path: Path, *arguments: str) -> tuple[WindowResult, list[int]]:
    """A window over the program, and what ``pthread_self()`` is in its two threads."""
    can = perf.abilities()
    if not can.perf or platform.machine() != "x86_64":
        pytest.skip("no perf, or code of another machine")
    script = tmp_path / "work.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, "-S", str(script), *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        words = process.stdout.readline().split()
        if words[:1] != [b"up"]:
            pytest.skip("no memory may be written and run")
        window = NativeWindow(process.pid, tmp_path / "w", can, perf.Rates(cores=1.0, faults_per_s=0.0), 2.0)
        try:
            while not window.poll(time.monotonic_ns()):
                time.sleep(0.05)
            return window.take(origin_ns=0, window=1), [int(word) for word in words[1:]]
        finally:
            window.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("arguments", "name"), [((), "[generated code]"), (("told",), "counting_kernel")])
def test_generated_code_is_attached_and_named(tmp_path: Path, arguments: tuple[str, ...], name: str) -> None:
    """As the program tells perf, else as what it is; below the Python function that calls it."""
    taken, _ = sampled(tmp_path, *arguments)
    profile = next(profile for profile in taken.profiles if profile.event == CPU)
    all_rights = not taken.diagnostics
    within = 0
    for stack, flags in zip(profile.samples.stack.tolist(), profile.samples.flags.tolist(), strict=True):
        frames = profile.frames_of(stack)
        inner = next(frame for frame in reversed(frames) if frame.kind is not FrameKind.KERNEL)
        if inner.kind is not FrameKind.GENERATED:
            continue
        within += 1
        assert inner.function == name
        assert flags & StackFlag.ATTACHED
        assert not flags & (StackFlag.WHOLE | StackFlag.TRUNCATED)
        assert len(frames) > 10
        assert not all_rights or "step" in [frame.function for frame in frames if frame.kind is FrameKind.PYTHON]
    assert within >= 0.9 * len(profile.samples) > 5


@pytest.mark.timeout(180)
@pytest.mark.parametrize("arguments", [(), ("waited-for",)])
def test_generated_code_works_for_the_thread_that_its_callers_refer_to(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """As a pool's closures do; without such a reference for its own."""
    taken, (own, other) = sampled(tmp_path, *arguments)
    if any(one.code == UNREADABLE_MEMORY for one in taken.diagnostics):
        pytest.skip("the process's memory is not ours to read")
    profile = next(profile for profile in taken.profiles if profile.event == CPU)
    found = profile.samples.op_thread[(profile.samples.flags & StackFlag.ATTACHED) != 0]
    assert len(found) > 5
    assert set(found.tolist()) == {other if arguments else own}
