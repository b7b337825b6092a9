"""System calls of a real process, counted one by one."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.native.kernel.descriptors import Descriptors, address
from stepscope.native.kernel.system_call_names import names
from stepscope.native.windows.call_window import CallWindow
from stepscope.tables.errors import CaptureError

WRITES = 300
SIZE = 4096
READ = next((number for number, name in names(platform.machine()).items() if name == "read"), 0)
PROGRAM = f"""
import os, sys, threading, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
waiting = threading.Thread(target=os.read, args=(os.pipe()[0], 1), daemon=True)
print("begun", flush=True)
sys.stdin.readline()
waiting.start()
while not open(f"/proc/self/task/{{waiting.native_id}}/syscall").read().startswith("{READ} "):
    time.sleep(0.001)
for _ in range({WRITES}):
    os.pwrite(file, b"x" * {SIZE}, 0)
for _ in range(7):
    try:
        os.stat("/no/such/file")
    except OSError:
        pass
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, before its calls."""
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "data")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


def go_on(job: subprocess.Popen[str]) -> None:
    """Let it make its calls, and wait until it has."""
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdin.write("\n")
    job.stdin.flush()
    assert job.stdout.readline() == "done\n"


def window_of(job: subprocess.Popen[str]) -> CallWindow:
    """A window of it that has begun."""
    try:
        window = CallWindow(job.pid, time.monotonic_ns(), 60.0)
    except CaptureError as error:
        pytest.skip(str(error))
    assert not window.poll(time.monotonic_ns())
    assert not window.problem
    return window


def test_every_call_is_counted(job: subprocess.Popen[str], tmp_path: Path) -> None:
    """By thread, call and file, with bytes, errors, and a wait that was not over."""
    window = window_of(job)
    go_on(job)
    window.stop()
    found = window.take(origin_ns=window.began_ns)
    window.close()
    assert (found.pid, found.at_ns) == (job.pid, 0)
    mine = {(one.call, one.target): one for one in found.calls if one.native == job.pid}
    written = mine["pwrite64", str(tmp_path / "data")]
    assert (written.count, written.bytes, written.failed) == (WRITES, WRITES * SIZE, 0)
    assert 0 < written.longest_ns <= written.total_ns < found.wall_ns
    assert mine["newfstatat", ""].failed == 7
    others = [one for one in found.calls if one.native != job.pid]
    assert [(one.call, one.target, one.count) for one in others if one.unfinished_ns] == [("read", "pipe", 0)]
    assert sum(one.total_ns + one.unfinished_ns for one in found.calls if one.native == job.pid) <= found.wall_ns


def test_a_process_that_ends_ends_its_window(job: subprocess.Popen[str]) -> None:
    """What it did until then is told; what its descriptors stood for is no longer known."""
    window = window_of(job)
    go_on(job)
    job.kill()
    job.wait()
    assert window.poll(time.monotonic_ns())
    found = window.take(origin_ns=0)
    window.close()
    assert [(one.target, one.count) for one in found.calls if one.call == "pwrite64"] == [("closed", WRITES)]


def test_a_window_that_never_began_has_a_reason(job: subprocess.Popen[str]) -> None:
    """Its process ended first."""
    window_of(job).close()
    window = CallWindow(job.pid, time.monotonic_ns() + 10**12)
    job.kill()
    job.wait()
    assert window.poll(time.monotonic_ns())
    assert window.problem == "the process ended before the window began"
    window.close()


def test_only_root_may_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what is missing."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(CaptureError, match="cannot be counted on riscv64; expected x86-64 or aarch64"):
        CallWindow(os.getpid(), 0)


def test_names_are_the_kernels() -> None:
    """Runs of numbers, of two processors."""
    x86, arm = names("x86_64"), names("aarch64")
    assert [x86[number] for number in (0, 17, 202, 257, 334, 424)] == [
        *("read", "pread64", "futex", "openat", "rseq", "pidfd_send_signal")
    ]
    assert [arm[number] for number in (29, 67, 98, 222, 424)] == [
        "ioctl",
        "pread64",
        "futex",
        "mmap",
        "pidfd_send_signal",
    ]
    assert names("riscv64") == {}


def test_what_descriptors_stand_for(tmp_path: Path) -> None:
    """Files, pipes, peers, and what is closed."""
    with (tmp_path / "file").open("w") as file, socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        reads, writes = os.pipe()
        with socket.create_connection((host, port)) as client:
            asked = Descriptors(os.getpid())
            assert asked.target(file.fileno()) == str(tmp_path / "file")
            assert asked.target(reads) == "pipe"
            assert asked.target(client.fileno()) == f"127.0.0.1:{port}"
        os.close(reads)
        os.close(writes)
        assert Descriptors(os.getpid()).target(reads) == "closed"


@pytest.mark.skipif(sys.byteorder != "little", reason="the kernel prints words in the machine's order")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0700000A:18EB", "10.0.0.7:6379"),
        ("0000000000000000FFFF00000700000A:18EB", "10.0.0.7:6379"),
        ("00000000000000000000000001000000:0050", "[::1]:80"),
    ],
)
def test_addresses(text: str, expected: str) -> None:
    """Of both families; one that is mapped reads as what it is."""
    assert address(text) == expected
