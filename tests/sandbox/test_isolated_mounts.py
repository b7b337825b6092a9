"""The table of mounts is read, and what must be covered separately is found."""

import os
from pathlib import Path

import pytest

from stepscope.sandbox import isolated_mounts


@pytest.mark.parametrize(
    ("line", "point", "kind", "options"),
    [
        (
            "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard",
            "/",
            "ext4",
            {"rw", "relatime"},
        ),
        (
            "28 27 0:25 / /mnt/my\\040disk rw,nosuid,nodev - fuse.sshfs host:/a ro,user_id=0",
            "/mnt/my disk",
            "fuse.sshfs",
            {"rw", "nosuid", "nodev", "ro"},
        ),
        ("29 27 0:26 /a\\134b /a\\134b rw master:2 propagate_from:3 - tmpfs - rw", "/a\\b", "tmpfs", {"rw"}),
    ],
)
def test_line_of_the_table(line: str, point: str, kind: str, options: set[str]) -> None:
    """Escapes, optional fields and a file system that is read-only as a whole."""
    assert isolated_mounts.parse(line) == (point, kind, frozenset(options))


def test_own_table() -> None:
    """The table of this process has its root and its kernel's file systems."""
    mounts = isolated_mounts.read_mounts()
    assert mounts["/proc"].kind == "proc"
    assert "/" in mounts


@pytest.mark.parametrize(
    ("path", "points", "expected"),
    [
        ("/", ["/", "/proc", "/home", "/home/a", "/home/a/b"], ["/home", "/proc"]),
        ("/home", ["/", "/home", "/home/a", "/home/a/b", "/home/a-b", "/homes"], ["/home/a", "/home/a-b"]),
        ("/home/a", ["/home", "/home/a-b", "/home/ab"], []),
    ],
)
def test_what_is_mounted_below(path: str, points: list[str], expected: list[str]) -> None:
    """Only the uppermost mounts, only below, names as a whole."""
    assert isolated_mounts.below(path, points) == expected


@pytest.mark.parametrize("name", ["plain", "a,b:c", "back\\slash", "ümlaut and space"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    """What is given as an option of an overlay is escaped where the kernel would split it."""
    path = str(tmp_path / name)
    escaped = isolated_mounts._escaped(path)
    assert escaped.replace("\\,", ",").replace("\\:", ":").replace("\\\\", "\\") == path
    assert escaped == path or set(name) & set(",:\\")


def test_a_folder_looks_like_another(tmp_path: Path) -> None:
    """Mode and time are those of the other."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a").chmod(0o750)
    os.utime(tmp_path / "a", ns=(1_000_000_000, 2_000_000_000))
    isolated_mounts._look_like(str(tmp_path / "a"), str(tmp_path / "b"))
    seen = (tmp_path / "b").stat()
    assert (seen.st_mode & 0o777, seen.st_mtime_ns) == (0o750, 2_000_000_000)
