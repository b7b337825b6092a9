"""Memory of a process over time, and which of its limits is the nearest."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MS, Job, S, filled
from tests.detectors.jobs import train_loop

from stepscope.derive.machine import memory_use
from stepscope.derive.machine.memory_use import MemoryUse
from stepscope.model.log.memory import MemoryHeld
from stepscope.tables.records import MemoryTable

MB = 1 << 20


def job(*, group: int = -1, used: int = -1, cache: int = 0, available: int = 5000 * MB) -> Job:
    """A process with 400 to 800 MiB of its own, on a host with 10,000 MiB."""
    made = train_loop(80 * MS)
    made.machine(4)
    own = np.array([400, 500, 600, 700, 800], np.int64) * MB
    made.processes = msgspec.structs.replace(made.processes, rss_bytes=own + 50 * MB, shared_bytes=own * 0 + 50 * MB)
    at = made.processes.at_ns
    flat = np.zeros(len(at), np.int64)
    made.resources["memory"] = filled(
        MemoryTable,
        len(at),
        at_ns=at,
        total_bytes=flat + 10_000 * MB,
        available_bytes=flat + available,
        cgroup_bytes=flat + used,
        cgroup_limit_bytes=flat + group,
        cgroup_file_bytes=flat + cache,
    )
    return made


def use_of(made: Job) -> MemoryUse:
    """The memory of its process."""
    session = made.session()
    return memory_use.build(session, session.workers[0])


def test_the_host_bounds_where_nothing_else_does() -> None:
    """Without a control group what the host has left counts."""
    use = use_of(job())
    assert use.limit is not None
    assert (use.limit.kind, use.limit.bytes, use.limit.left) == ("host", 10_000 * MB, 5000 * MB)
    assert use.peak() == 800 * MB
    assert use.before(2 * S) == 600 * MB
    assert use.before(-1) is None


def test_page_cache_is_no_use() -> None:
    """In a control group the kernel takes page cache back first."""
    limit = use_of(job(group=1000 * MB, used=990 * MB, cache=90 * MB)).limit
    assert limit is not None
    assert (limit.kind, limit.used, limit.left) == ("control group", 900 * MB, 100 * MB)


@pytest.mark.parametrize(("space", "kind"), [(9_950 * MB, "address space"), (1_000 * MB, "control group")])
def test_the_limit_with_least_left_counts(space: int, kind: str) -> None:
    """Of a group and an address space the one that is nearer."""
    made = job(group=1000 * MB, used=900 * MB)
    made.event(MemoryHeld(at=4 * S, own_bytes=800 * MB, space_bytes=space, space_limit=10_000 * MB))
    limit = use_of(made).limit
    assert limit is not None
    assert limit.kind == kind


def test_looks_fill_in_what_samples_miss() -> None:
    """A process that dies before its first sample is known by the agent's looks alone."""
    made = train_loop(80 * MS)
    series = ((300, 400 << 10), (100, 600 << 10))
    made.event(
        MemoryHeld(
            at=S,
            own_bytes=900 * MB,
            group_limit=2000 * MB,
            group_bytes=1100 * MB,
            group_cache=50 * MB,
            host_limit=9000 * MB,
            series=series,
        )
    )
    use = use_of(made)
    assert use.at_ns.tolist() == [700 * MS, 900 * MS, S]
    assert use.own.tolist() == [400 * MB, 600 * MB, 900 * MB]
    assert use.limit is not None
    assert (use.limit.bytes, use.limit.used, use.limit.others) == (2000 * MB, 1050 * MB, 150 * MB)


def test_nothing_known() -> None:
    """A session without samples and looks has no limit."""
    use = use_of(train_loop(80 * MS))
    assert (use.limit, use.peak()) == (None, 0.0)
