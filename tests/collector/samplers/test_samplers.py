"""The samplers see real processes as the kernel does."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.collector.samplers import rivals
from stepscope.collector.samplers.base import Targets
from stepscope.collector.samplers.host import HostSampler, cpu_clock
from stepscope.collector.samplers.process import ProcessSampler
from stepscope.collector.samplers.rivals import RivalSampler
from stepscope.collector.samplers.threads import ThreadSampler
from stepscope.tables.records import CHILD, GROUP

BUSY = "print('ready', flush=True)\nwhile True: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
BURN_NS = 60_000_000


def start(code: str) -> subprocess.Popen[str]:
    """A Python process that has said that it is ready."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    """A process that uses a CPU."""
    process = start(BUSY)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.communicate()


def burn(pid: int, amount_ns: int = BURN_NS) -> None:
    """Wait until a process has used some CPU time more."""
    until = cpu_clock(pid) + amount_ns
    while cpu_clock(pid) < until:
        time.sleep(0.005)


def targets(job: int, *own: int) -> Targets:
    """A job that is measured."""
    return Targets(job_pid=job, measured=frozenset({job}), own=frozenset(own))


def test_process_and_threads_agree(busy: subprocess.Popen[str]) -> None:
    """A process's run time is that of its threads, and grows by what it uses."""
    threads, processes = ThreadSampler(0), ProcessSampler(0)
    before = cpu_clock(busy.pid)
    for now in (1, 2):
        processes.sample(now, threads.sample(now, frozenset({busy.pid})))
        burn(busy.pid)
    table = processes.rows.table()
    assert table.at_ns.tolist() == [1, 2]
    assert before <= table.run_ns[0] < table.run_ns[1] <= cpu_clock(busy.pid)
    assert table.run_ns[1] - table.run_ns[0] >= BURN_NS - 20_000_000
    assert (table.threads == 1).all()
    assert (table.rss_bytes > 1_000_000).all()
    assert (table.vm_bytes > table.rss_bytes).all()
    assert ((table.shared_bytes > 0) & (table.shared_bytes < table.rss_bytes)).all()
    assert (table.minor_faults > 100).all()
    rows = threads.rows.table()
    assert set(rows.native.tolist()) == {busy.pid}
    assert rows.run_ns.tolist() == table.run_ns.tolist()


def test_threads_that_end_stay_in_the_total() -> None:
    """The run time of a thread that has ended is not taken back."""
    code = (
        "import threading, time, sys\n"
        "def burn():\n    t = time.thread_time()\n    while time.thread_time() < t + 0.05: pass\n"
        "t = threading.Thread(target=burn); t.start()\n"
        "while t.is_alive() and time.thread_time() < 1: time.sleep(0.01)\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    sampler = ThreadSampler(0)
    most = 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        totals = sampler.sample(1, frozenset({process.pid}))[process.pid]
        assert totals.run_ns >= most
        most = max(most, totals.run_ns)
        if totals.threads == 1 and most >= 50_000_000:
            break
    process.communicate()
    assert sampler.sample(1, frozenset()) == {}


def test_dead_process_gives_no_row(busy: subprocess.Popen[str]) -> None:
    """A process that has gone is left out; files of it are closed."""
    threads, processes = ThreadSampler(0), ProcessSampler(0)
    busy.kill()
    busy.communicate()
    processes.sample(1, threads.sample(1, frozenset({busy.pid})))
    assert len(processes.rows) == 0
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    processes.sample(2, threads.sample(2, frozenset()))
    assert len(list(Path("/proc/self/fd").iterdir())) <= open_files


def test_host_splits_cpu_time(busy: subprocess.Popen[str]) -> None:
    """Totals never fall; the job's is its process's clock; what neither it nor we used is the others'."""
    host = HostSampler(0)
    other = start(BUSY)
    try:
        for now in (1, 2):
            host.sample(now, targets(busy.pid, os.getpid()))
            burn(busy.pid)
            burn(other.pid)
    finally:
        os.killpg(other.pid, 9)
        other.communicate()
    table = host.rows.table()
    assert table.job_cpu_ns[1] - table.job_cpu_ns[0] >= BURN_NS - 20_000_000
    assert table.own_cpu_ns[0] > 0
    assert (table.take(slice(1, 2)).others_cpu_ns >= table.take(slice(0, 1)).others_cpu_ns).all()
    assert table.cpus[0] == len(os.sched_getaffinity(busy.pid))  # whatever quota there is besides
    assert table.busy_ns[1] >= table.busy_ns[0] > 0
    assert table.available_bytes[0] > 0


def test_host_goes_on_after_a_restart(busy: subprocess.Popen[str]) -> None:
    """A new sidecar's totals continue the old one's instead of counting the job again."""
    host = HostSampler(0, (10**12, 2 * 10**12, 3 * 10**12))
    host.sample(1, targets(busy.pid, os.getpid()))
    table = host.rows.table()
    assert table.job_cpu_ns[0] == 10**12
    assert table.others_cpu_ns[0] == 2 * 10**12


def test_rivals_and_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy processes are listed with their use; those that the job started, at any depth, are marked."""
    monkeypatch.setattr(rivals, "_KEEP", 10_000)  # however many others the machine has that are busier
    job = start(PARENT)
    rival = start(BUSY)
    sampler = RivalSampler(0)
    try:
        sampler.sample(1, targets(job.pid))
        child = next(int(c) for c in Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split())
        burn(child)
        burn(rival.pid)
        sampler.sample(10**9, targets(job.pid))
    finally:
        for process in (job, rival):
            os.killpg(process.pid, 9)
            process.communicate()
    table = sampler.rows.table()
    rows = {
        int(p): (int(c), int(u), sampler.names[int(n)])
        for p, c, u, n in zip(table.pid, table.child, table.cpu_ns, table.name, strict=True)
    }
    assert rows[child][0] == 1
    assert rows[rival.pid][0] == 0
    assert rows[child][1] >= 20_000_000
    assert rows[rival.pid][2].startswith(sys.executable)
    assert job.pid not in rows


def test_what_the_collector_starts_is_no_rival(busy: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as perf for a window; it is not a rival itself, either."""
    monkeypatch.setattr(rivals, "_KEEP", 10_000)
    sampler = RivalSampler(0)
    sampler.sample(1, targets(0, os.getpid()))
    burn(busy.pid)
    sampler.sample(10**9, targets(0, os.getpid()))
    assert not {os.getpid(), busy.pid} & set(sampler.rows.table().pid.tolist())


def marks(sampler: RivalSampler) -> dict[int, int]:
    """What the newest row of each process says of its origin."""
    table = sampler.rows.table()
    return dict(zip(table.pid.tolist(), table.child.tolist(), strict=True))


def children_of(pid: int) -> list[int]:
    """In the order in which it started them."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("neighbour", [BUSY, PARENT])
def test_processes_of_the_jobs_group_are_no_children_of_it(neighbour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell starts the job and another program in one group: neither is the other's, nor what the other starts."""
    monkeypatch.setattr(rivals, "_KEEP", 10_000)
    words = ["sh", "-c", '"$0" -c "$1" & "$0" -c "$2" & wait', sys.executable, PARENT, neighbour]
    shell = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    sampler = RivalSampler(0)
    try:
        assert shell.stdout is not None
        assert shell.stdout.read(2 * len("ready\n")).count("ready") == 2
        job, other = children_of(shell.pid)
        (mine,), (its,) = children_of(job), children_of(other) or [other]
        for now in (1, 10**9):
            sampler.sample(now, targets(job))
            burn(mine)
            burn(its)
    finally:
        os.killpg(shell.pid, 9)
        shell.communicate()
    found = marks(sampler)
    assert (found[mine], found[its]) == (CHILD, GROUP)
    assert sampler.children == {mine}


def test_before_the_job_is_known_nothing_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector may look before the launcher has said which process it is: its children are marked then."""
    monkeypatch.setattr(rivals, "_KEEP", 10_000)
    job, rival = start(PARENT), start(BUSY)
    sampler = RivalSampler(0)
    try:
        (child,) = children_of(job.pid)
        for now, known in ((1, 0), (2, 0), (10**9, job.pid)):
            sampler.sample(now, targets(known))
            burn(child)
            burn(rival.pid)
        sampler.sample(2 * 10**9, targets(job.pid))
    finally:
        for process in (job, rival):
            os.killpg(process.pid, 9)
            process.communicate()
    found = marks(sampler)
    assert (found[child], found[rival.pid]) == (CHILD, 0)
    assert sampler.children == {child}


COMPUTING = """
import hashlib, sys, threading
def work():
    data = bytes(1 << 24)
    while True: hashlib.sha256(data)
for _ in range(int(sys.argv[1])): threading.Thread(target=work).start()
print("ready", flush=True)
"""
"""Threads that compute in C, without the interpreter's lock."""


@pytest.mark.parametrize(("count", "most"), [(1, 128), (3, 128), (3, 2)])
def test_threads_of_the_jobs_processes_that_could_run(count: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look: those that wait for a CPU as well; of a process with too many threads it is not known."""
    monkeypatch.setattr(rivals, "_KEEP", 10_000)
    monkeypatch.setattr(rivals, "_MOST_THREADS", most)
    words = [sys.executable, "-c", COMPUTING, str(count)]
    job = start(f"import subprocess; subprocess.run({words!r})")
    sampler = RivalSampler(0)
    try:
        child = next(int(c) for c in Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split())
        for second in range(1, 8):
            sampler.sample(second * 10**9, targets(job.pid))
            burn(child)
    finally:
        os.killpg(job.pid, 9)
        job.communicate()
    table = sampler.rows.table()
    found = table.runnable[table.pid == child]
    assert found.max() == (count if most > count else -1)  # between two calls a thread waits for the interpreter's lock
    assert (table.runnable[table.child == 0] == -1).all()


def test_the_busiest_rivals_are_kept(busy: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """So many a second."""
    monkeypatch.setattr(rivals, "_KEEP", 1)
    sampler = RivalSampler(0)
    other = start(BUSY)
    try:
        sampler.sample(1, targets(0))
        burn(busy.pid)
        burn(other.pid)
        sampler.sample(10**9, targets(0))
    finally:
        os.killpg(other.pid, 9)
        other.communicate()
    (used,) = sampler.rows.table().cpu_ns.tolist()
    assert used >= BURN_NS - 20_000_000


def test_cpu_clock_of_nobody() -> None:
    """A pid without a process has no clock."""
    assert cpu_clock(2**22 + 1) == -1
    assert abs(cpu_clock(os.getpid()) - time.process_time_ns()) < 10**9
