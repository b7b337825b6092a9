"""Counters of processes killed for lack of memory, in both versions of control groups, and whose kill it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.native.cgroups import memory_kills
from stepscope.native.cgroups.kill_watch import LATE_NS, KillWatch
from stepscope.native.kernel import kernel_log
from stepscope.native.kernel.kernel_log import KilledProcess

JOB, OTHER = 4321, 77
S = 1_000_000_000
V1 = "sys/fs/cgroup/memory/job/memory.oom_control"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def kills(root: Path, *, host: int, group: int | None = None) -> None:
    """The counters of a host, and of a group of version 1 that the job and its launcher are in."""
    put(root / "proc/vmstat", f"nr_free_pages 7\noom_kill {host}\n")
    if group is not None:
        for pid in ("self", JOB):
            put(root / f"proc/{pid}/cgroup", "4:memory:/job\n")
        put(root / V1, f"oom_kill_disable 0\nunder_oom 0\noom_kill {group}\n")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[KilledProcess]:
    """What the kernel's log says: its last entry; at first it may not be read."""
    said = [KilledProcess()]
    monkeypatch.setattr(kernel_log, "killed", lambda _: said[-1])
    return said


def test_nothing_is_readable(tmp_path: Path) -> None:
    """A host without any of the files has no counter."""
    assert memory_kills.counters("self", tmp_path) == {}


def test_version_1(tmp_path: Path) -> None:
    """The group itself counts its processes, none above it."""
    kills(tmp_path, host=2, group=1)
    put(tmp_path / "sys/fs/cgroup/memory/memory.oom_control", "oom_kill 9\n")
    assert memory_kills.counters("self", tmp_path) == {str(tmp_path / V1): 1, str(tmp_path / "proc/vmstat"): 2}


def test_version_2(tmp_path: Path) -> None:
    """The memory of a group without the controller is charged to the next above it that has one."""
    put(tmp_path / "proc/self/cgroup", "0::/job/inner\n")
    put(tmp_path / "sys/fs/cgroup/cgroup.controllers", "memory\n")
    put(tmp_path / "sys/fs/cgroup/job/memory.events", "low 0\noom 3\noom_kill 3\noom_group_kill 9\n")
    put(tmp_path / "sys/fs/cgroup/job/inner/cgroup.procs", "1\n")
    assert memory_kills.counters("self", tmp_path) == {str(tmp_path / "sys/fs/cgroup/job/memory.events"): 3}


def watched(root: Path, *, ended_ns: int, host: int, group: int | None = None, counted: bool = True) -> str:
    """What a kill is laid to that the counters of a job show, which stood at 12 and 0 when it began."""
    kills(root, host=12, group=None if group is None else 0)
    watch = KillWatch(memory_kills.counters("self", root), 0, root)
    watch.look(S, {JOB})
    kills(root, host=host, group=group)
    watch.look(2 * S, {JOB})
    return watch.basis(ended_ns, {JOB}, counted=counted)


def test_the_group_of_the_job_says_whose_kill_it_was(tmp_path: Path, log: list[KilledProcess]) -> None:
    """A kill in another group of the host is not the job's; in its own it is, or may be, if just before the end."""
    del log
    assert watched(tmp_path, ended_ns=3 * S, host=12, group=0) == ""
    assert watched(tmp_path, ended_ns=3 * S, host=13, group=0) == ""
    assert watched(tmp_path, ended_ns=3 * S, host=13, group=1) == "group"
    assert watched(tmp_path, ended_ns=2 * S + LATE_NS + 1, host=13, group=1) == ""
    assert watched(tmp_path, ended_ns=3 * S, host=13, group=1, counted=False) == ""


def test_only_where_no_group_counts_the_host_does(tmp_path: Path, log: list[KilledProcess]) -> None:
    """A process in the root group of version 2 has no counter of its own."""
    del log
    assert watched(tmp_path, ended_ns=3 * S, host=13) == "host"
    assert watched(tmp_path, ended_ns=2 * S + LATE_NS + 1, host=13) == ""


def test_the_kernels_log_decides(tmp_path: Path, log: list[KilledProcess]) -> None:
    """It names the job, or it is whole and names only others; a log with holes leaves it to the counters."""
    for said, expected in (
        (KilledProcess(frozenset({JOB}), whole=False), "log"),
        (KilledProcess(frozenset({OTHER}), whole=True), ""),
        (KilledProcess(frozenset({OTHER}), whole=False), "group"),
    ):
        log.append(said)
        assert watched(tmp_path, ended_ns=3 * S, host=13, group=1) == expected


def test_a_group_that_is_first_seen_while_the_job_runs(tmp_path: Path, log: list[KilledProcess]) -> None:
    """A job that was moved to another group counts there, not in that of its launcher, and from when it was seen."""
    del log
    kills(tmp_path, host=12, group=0)
    put(tmp_path / f"proc/{JOB}/cgroup", "4:memory:/moved\n")
    put(tmp_path / "sys/fs/cgroup/memory/moved/memory.oom_control", "oom_kill 5\n")
    watch = KillWatch(memory_kills.counters("self", tmp_path), 0, tmp_path)
    watch.look(S, {JOB})
    kills(tmp_path, host=13, group=1)
    put(tmp_path / f"proc/{JOB}/cgroup", "4:memory:/moved\n")
    watch.look(2 * S, {JOB})
    assert watch.basis(3 * S, {JOB}) == ""
    put(tmp_path / "sys/fs/cgroup/memory/moved/memory.oom_control", "oom_kill 6\n")
    watch.look(3 * S, ())
    assert watch.basis(3 * S, {JOB}) == "group"
