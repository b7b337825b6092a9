"""The room in a control group, from its files in both versions."""

from __future__ import annotations

from pathlib import Path

from stepscope.native.cgroups import room

MIB = 1 << 20


def version_1(root: Path, groups: dict[str, tuple[int, int, int]]) -> Path:
    """Groups, innermost last, by (limit, in use, files in the page cache), in MiB; a limit of 0 is none."""
    for inner, (limit, used, files) in groups.items():
        folder = root / "sys/fs/cgroup/memory" / inner
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.limit_in_bytes").write_text(str(limit * MIB or 9223372036854771712))
        (folder / "memory.usage_in_bytes").write_text(str(used * MIB))
        stat = f"inactive_file 0\nactive_file 0\ntotal_inactive_file {files * MIB - 4096}\ntotal_active_file 4096\n"
        (folder / "memory.stat").write_text(stat)
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"4:memory:/{max(groups, key=len)}\n")
    return root


def test_files_in_the_page_cache_are_room(tmp_path: Path) -> None:
    """What the kernel can take back is not held, also that of the groups below."""
    found = room.tightest(version_1(tmp_path, {"": (0, 9000, 1), "job": (850, 840, 300)}))
    assert found is not None
    assert (found.limit_bytes, found.left_bytes) == (850 * MIB, 310 * MIB)


def test_the_tightest_of_all_ancestors_counts(tmp_path: Path) -> None:
    """A pod that other containers fill has less room than the container."""
    groups = {"": (0, 9000, 1), "pod": (2000, 1990, 1), "pod/job": (850, 100, 1)}
    found = room.tightest(version_1(tmp_path, groups))
    assert found is not None
    assert (found.limit_bytes, found.left_bytes) == (2000 * MIB, 11 * MIB)


def test_a_group_over_its_limit_has_no_room(tmp_path: Path) -> None:
    """The kernel charges some memory beyond the limit."""
    found = room.tightest(version_1(tmp_path, {"job": (850, 860, 1)}))
    assert found is not None
    assert found.left_bytes == 0


def test_version_2(tmp_path: Path) -> None:
    """Its fields have other names, and include the kernel's caches."""
    folder = tmp_path / "sys/fs/cgroup/job"
    folder.mkdir(parents=True)
    (folder.parent / "cgroup.controllers").write_text("memory")
    (folder / "memory.max").write_text(str(500 * MIB))
    (folder / "memory.current").write_text(str(400 * MIB))
    stat = f"anon 1\nfile {99 * MIB}\nshmem {49 * MIB}\ninactive_file {20 * MIB}\nactive_file {30 * MIB}\n"
    (folder / "memory.stat").write_text(f"{stat}slab_reclaimable {5 * MIB}\nslab_unreclaimable {7 * MIB}\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    assert room.tightest(tmp_path) == room.Room(limit_bytes=500 * MIB, held_bytes=345 * MIB)


def test_without_a_limit_there_is_no_answer(tmp_path: Path) -> None:
    """Nor without control groups."""
    assert room.tightest(tmp_path) is None
    assert room.tightest(version_1(tmp_path, {"": (0, 9000, 1), "job": (0, 10, 1)})) is None
