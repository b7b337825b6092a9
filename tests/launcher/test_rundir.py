"""The size of rings where the job's memory is limited."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.launcher import rundir
from stepscope.wire.ring import DEFAULT_SLOTS, MIN_SLOTS, RECORD_BYTES

MIB = 1 << 20


def host(root: Path, limits: dict[str, str]) -> Path:
    """A host's files with control groups (v1) that have these limits of memory."""
    groups = {"": "9223372036854771712", **limits}
    for inner, limit in groups.items():
        folder = root / "sys/fs/cgroup/memory" / inner
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.limit_in_bytes").write_text(limit)
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"4:memory:/{max(limits, key=len, default='')}\n")
    return root


@pytest.mark.parametrize(
    ("limits", "slots"),
    [
        ({}, DEFAULT_SLOTS),
        ({"job": str(64 << 30)}, DEFAULT_SLOTS),
        ({"job": str(850 * MIB)}, 850 * MIB // 64 // RECORD_BYTES),
        ({"pod": str(512 * MIB), "pod/job": str(850 * MIB)}, 512 * MIB // 64 // RECORD_BYTES),
        ({"job": str(4 * MIB)}, MIN_SLOTS),
    ],
    ids=["unlimited", "large", "small", "the pod's is smaller", "tiny"],
)
def test_a_ring_takes_a_small_part_of_the_limit(tmp_path: Path, limits: dict[str, str], slots: int) -> None:
    """The smallest limit counts, also that of a group around the job's; without one it has its usual size."""
    assert rundir.ring_slots(host(tmp_path, limits)) == slots


def test_without_control_groups_a_ring_is_whole(tmp_path: Path) -> None:
    assert rundir.ring_slots(tmp_path) == DEFAULT_SLOTS
