"""Samplers of CPUs, links, disks, memory and connections agree with independent readings of /proc.

Counters are read independently right before and right after each sample, so the growth that a sampler saw lies between
the least and the most that the two readings allow, whatever the machine does meanwhile; both are within 2 % of it.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepscope.collector.samplers import sockets
from stepscope.collector.samplers.base import TICK_NS, Targets
from stepscope.collector.samplers.cores import CoreSampler
from stepscope.collector.samplers.disks import DiskSampler, read_limits
from stepscope.collector.samplers.links import LinkSampler, link_speed
from stepscope.collector.samplers.memory import MemorySampler
from stepscope.collector.samplers.names import NameNumbers
from stepscope.collector.samplers.sockets import SocketSampler
from stepscope.native.cgroups.cgroup import folders

TOLERANCE = 0.02
ME = Targets(job_pid=os.getpid(), measured=frozenset({os.getpid()}), own=frozenset())


def text(path: str) -> bytes:
    """A file of /proc."""
    return Path(path).read_bytes()


def agree(before: list[int], sampled: list[int], after: list[int]) -> None:
    """Two samples lie between the readings around them, and their growth is that of the readings within 2 %."""
    for low, value, high in zip(before, sampled, after, strict=True):
        assert low <= value <= high
    seen = sampled[1] - sampled[0]
    least, most = before[1] - after[0], after[1] - before[0]
    assert least * (1 - TOLERANCE) <= seen <= most * (1 + TOLERANCE)


def watch(look: Callable[[], None], read: Callable[[], int], work: Callable[[], None]) -> tuple[list[int], list[int]]:
    """Two looks with work between them, and the independent readings before and after each."""
    before, after = [], []
    for part in (work, lambda: None):
        before.append(read())
        look()
        after.append(read())
        part()
    return before, after


def cpu_ticks(cpu: int) -> int:
    """Busy time of a CPU, read by hand. Nanoseconds."""
    line = next(w for row in text("/proc/stat").splitlines() if (w := row.split())[0] == f"cpu{cpu}".encode())
    return sum(int(line[i]) for i in (1, 2, 3, 6, 7)) * TICK_NS


def burn() -> None:
    """Half a second of CPU time of this thread."""
    until = time.thread_time() + 0.5
    while time.thread_time() < until:
        pass


def test_cores_agree_with_proc_stat() -> None:
    """The busy time of a CPU is what /proc/stat says, and only the job's CPUs have rows."""
    cpu = min(os.sched_getaffinity(0))
    sampler = CoreSampler(0)
    os.sched_setaffinity(0, {cpu})
    try:
        look = lambda: sampler.sample(1, text("/proc/stat"), frozenset({cpu}))
        before, after = watch(look, lambda: cpu_ticks(cpu), burn)
    finally:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    table = sampler.rows.table()
    assert set(table.cpu.tolist()) == {cpu}
    agree(before, table.busy_ns.tolist(), after)
    assert table.busy_ns[1] - table.busy_ns[0] >= 300_000_000


def move(amount: int) -> None:
    """Send bytes through the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = threading.Thread(target=lambda: _send(server.getsockname(), amount))
        sender.start()
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 16):
                pass
        sender.join()


def _send(address: tuple[str, int], amount: int) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(bytes(amount))


def received(name: str) -> int:
    """Bytes that an interface received, read by hand."""
    line = next(row for row in text("/proc/net/dev").splitlines() if row.strip().startswith(f"{name}:".encode()))
    return int(line.partition(b":")[2].split()[0])


def test_links_agree_with_net_dev() -> None:
    """Bytes of an interface are what /proc/net/dev says; the loopback is marked and left out of totals."""
    names = NameNumbers()
    sampler = LinkSampler(0, names)
    move(1000)
    look = lambda: sampler.sample(1, text("/proc/net/dev"), ME)
    before, after = watch(look, lambda: received("lo"), lambda: move(20_000_000))
    table = sampler.rows.table()
    mine = table.take(table.name == names.waiting.index("net:lo"))
    agree(before, mine.rx_bytes.tolist(), after)
    assert mine.rx_bytes[1] - mine.rx_bytes[0] >= 20_000_000
    assert mine.loopback.tolist() == [1, 1]
    assert mine.speed_bits_s.tolist() == [-1, -1]
    others = [received(n.removeprefix("net:")) for n in names.waiting if n != "net:lo"]
    assert sampler.totals(text("/proc/net/dev"))[0] == pytest.approx(sum(others), rel=TOLERANCE)
    assert link_speed("no-such-interface") == -1


def sectors(name: str, at: int) -> int:
    """A count of /proc/diskstats, read by hand."""
    return next(int(w[at]) for row in text("/proc/diskstats").splitlines() if (w := row.split())[2] == name.encode())


def test_disks_agree_with_diskstats(tmp_path: Path) -> None:
    """Bytes of a device are what /proc/diskstats says."""
    names = NameNumbers()
    sampler = DiskSampler(0, names)
    sampler.sample(0, text("/proc/diskstats"), ME)
    if not names.waiting:
        pytest.skip("no block device has moved anything")
    name = names.waiting[0].removeprefix("disk:")
    sampler.rows.clear()

    def work() -> None:
        with (tmp_path / "data").open("wb") as file:
            file.write(os.urandom(4_000_000))
            file.flush()
            os.fsync(file.fileno())

    look = lambda: sampler.sample(1, text("/proc/diskstats"), ME)
    before, after = watch(look, lambda: 512 * sectors(name, 9), work)
    table = sampler.rows.table()
    mine = table.take(table.name == 0)
    agree(before, mine.write_bytes.tolist(), after)
    assert (np.diff(mine.busy_ns) >= 0).all()


def test_limits_of_a_cgroup_are_the_tightest(tmp_path: Path) -> None:
    """Both versions' files are read; of a group and its ancestors the least counts, no limit is none."""
    inner, outer = tmp_path / "a" / "b", tmp_path / "a"
    inner.mkdir(parents=True)
    (inner / "io.max").write_text("254:0 rbps=8000000 wbps=max riops=max wiops=max\n8:0 rbps=max wbps=1\n")
    (outer / "io.max").write_text("254:0 rbps=5000000 wbps=max\n")
    (outer / "blkio.throttle.read_bps_device").write_text("7:0 1048576\n")
    assert read_limits([inner, outer]) == {"254:0": 5_000_000, "7:0": 1_048_576}


def test_memory_agrees_with_meminfo() -> None:
    """Total and available memory are what /proc/meminfo says; the cgroup's use is what its file says."""
    sampler = MemorySampler(0)
    sampler.sample(1, text("/proc/meminfo"), ME)
    table = sampler.rows.table()
    words = text("/proc/meminfo").split()
    assert table.total_bytes[0] == int(words[words.index(b"MemTotal:") + 1]) * 1024
    available = int(words[words.index(b"MemAvailable:") + 1]) * 1024
    assert table.available_bytes[0] == pytest.approx(available, rel=TOLERANCE)
    group = folders(os.getpid(), "memory")
    if not group:
        assert table.cgroup_bytes[0] == -1
        return
    assert table.cgroup_bytes[0] > 0
    assert table.cgroup_limit_bytes[0] == -1 or table.cgroup_limit_bytes[0] > 0


@pytest.mark.alone
def test_connections_count_what_arrived_and_what_lies_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of a process's connections are what it received, to the byte; what it has not read is queued."""
    monkeypatch.setattr(sockets, "is_local", lambda *_: False)
    sampler = SocketSampler(0, NameNumbers())
    mine = os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        connection, _ = server.accept()
        with sender, connection:
            start = sampler.sample(1, frozenset({mine}), sockets.MIN_BYTES)
            if not start:
                pytest.skip("the kernel does not diagnose sockets here")
            first = start[mine].received
            sender.sendall(bytes(40_000))
            assert sampler.sample(2, frozenset({mine}), 2 * sockets.MIN_BYTES - 1)[mine].queued == -1
            traffic = sampler.sample(3, frozenset({mine}), 2 * sockets.MIN_BYTES)[mine]
            assert traffic.received - first == 40_000
            assert 0 < traffic.sent <= 40_000
            assert traffic.queued == 40_000
    sampler.close()


@pytest.mark.parametrize(
    ("source", "target", "local"),
    [
        ("127.0.0.1", "127.0.0.53", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("::1", "::1", True),
        ("::ffff:10.0.0.1", "::ffff:127.0.0.1", True),
        ("2001:db8::1", "2001:db8::2", False),
        ("7f00::1", "7f00::2", False),
    ],
)
def test_what_stays_on_the_host(source: str, target: str, local: bool) -> None:
    """A connection within the host is told from one that leaves it, in both families."""

    def packed(address: str) -> bytes:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.inet_pton(family, address).ljust(16, b"\0")

    assert sockets.is_local(packed(source), packed(target)) is local
