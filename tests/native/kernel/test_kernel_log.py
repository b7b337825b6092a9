"""The kernel's log of kills for lack of memory; the records are of Linux 6.18 but for the last, which is of 4.18."""

from __future__ import annotations

import pytest

from stepscope.native.kernel.kernel_log import KilledProcess, read

FIRST = "5,0,0,-;Linux version 6.18.44\n"
SUMMARY = (
    "6,1732,8667963874,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/test,task_memcg=/test,task=python,pid=20417,uid=0\n"
)
IN_GROUP = (
    "3,1733,8667963904,-;Memory cgroup out of memory: Killed process 20417 (python) total-vm:2415768kB, "
    "anon-rss:1404280kB, file-rss:399160kB, shmem-rss:0kB, UID:0 pgtables:3972kB oom_score_adj:0\n"
)
ON_HOST = (
    "3,2078,11799350578,-;Out of memory: Killed process 29909 (my (odd) name) total-vm:2423772kB, "
    "anon-rss:1412040kB, file-rss:419420kB, shmem-rss:0kB, UID:0 pgtables:3984kB oom_score_adj:0\n"
)
OLDER = (
    "3,2100,11900000000,-;Killed process 812 (python) total-vm:9000kB, anon-rss:800kB, file-rss:0kB, shmem-rss:0kB\n"
)
FORGED = "12,2101,11900000001,-;Out of memory: Killed process 5 (python) total-vm:1kB\n"
"""Written to /dev/kmsg by a process: the kernel gives it the facility of users."""


def at(seconds: float) -> int:
    return int(seconds * 1e9)


@pytest.mark.parametrize(
    ("records", "since", "expected"),
    [
        ([FIRST, SUMMARY, IN_GROUP, ON_HOST, OLDER], 0.0, {20417, 29909, 812}),
        ([FIRST, IN_GROUP, ON_HOST, OLDER], 11_700.0, {29909, 812}),
        ([FIRST, FORGED], 11_700.0, set()),
        ([IN_GROUP, ON_HOST], 11_700.0, {29909}),
    ],
    ids=["all", "since a time", "a forged line", "it begins before that time"],
)
def test_who_was_killed(records: list[str], since: float, expected: set[int]) -> None:
    """Every kill since a time is named, and the log has all of that time."""
    assert read(records, at(since)) == KilledProcess(frozenset(expected), whole=True)


@pytest.mark.parametrize(
    "records", [[], [IN_GROUP, ON_HOST], [FIRST, "", ON_HOST]], ids=["none", "begins later", "overwritten meanwhile"]
)
def test_a_log_with_holes(records: list[str]) -> None:
    """Who is not named may still have been killed."""
    assert not read(records, at(8_000.0)).whole
