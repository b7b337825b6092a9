"""Counters of processes killed for lack of memory, in both versions of control groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.cgroups import memory_kills

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nothing_is_readable(tmp_path: Path) -> None:
    """A host without any of the files has none."""
    assert memory_kills.count(tmp_path) == 0


def test_version_1(tmp_path: Path) -> None:
    """The counters of the host, of the group and of those above it; a kill raises one or more of them."""
    put(tmp_path / "proc/self/cgroup", "4:memory:/job\n")
    put(tmp_path / "proc/vmstat", "nr_free_pages 7\noom_kill 2\n")
    put(tmp_path / "sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    before = memory_kills.count(tmp_path)
    put(tmp_path / "sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert memory_kills.count(tmp_path) == before + 1 == 4


def test_version_2(tmp_path: Path) -> None:
    """memory.events of the group."""
    put(tmp_path / "proc/self/cgroup", "0::/job\n")
    put(tmp_path / "sys/fs/cgroup/cgroup.controllers", "memory\n")
    put(tmp_path / "sys/fs/cgroup/job/memory.events", "low 0\noom 3\noom_kill 3\noom_group_kill 9\n")
    assert memory_kills.count(tmp_path) == 3
