"""The library that lays out memory is built here, and does what its remedies say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.launcher import apply, layouts
from stepscope.tables.errors import UsageError

ALLOCATES = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
at = [libc.malloc(3 << 20) for _ in range(4)]
print(*[one % (2 << 20) for one in at], *[b - a for a, b in zip(at, at[1:])], libc.prctl(42, 0, 0, 0, 0))
"""
PAGES, HOLES = "3145728", "4194304"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def said(remedy: str) -> list[str]:
    """What the program says with a remedy."""
    environment = apply.environment([remedy], os.environ)
    done = subprocess.run(
        [sys.executable, "-S", "-c", ALLOCATES], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_layouts() -> None:
    """One lies on boundaries with holes, the other lies close together."""
    assert said("layout-aligned") == ["0"] * 4 + [HOLES] * 3 + ["0"]
    assert said("layout-packed")[4:] == [PAGES] * 3 + ["0"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_no_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has the kernel's flag."""
    monkeypatch.setattr(layouts, "problem", lambda _pages: "")
    assert said("thp-off")[-1] == "1"


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says what is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"--apply layout-packed: not possible: no C compiler"):
        apply.environment(["layout-packed"], {})


@pytest.mark.parametrize(
    ("mode", "pages", "word"),
    [
        ("always [madvise] never", "advised", "so already"),
        ("[always] madvise never", "always", "so already"),
        ("always madvise [never]", "off", "not possible"),
        ("always [madvise] never", "off", ""),
    ],
)
def test_what_this_machine_gives(
    mode: str, pages: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that changes nothing, or cannot be, is refused."""
    (tmp_path / "enabled").write_text(mode)
    monkeypatch.setattr(layouts, "MODE", tmp_path / "enabled")
    found = layouts.problem(pages)
    assert word in found
    assert bool(found) == bool(word)
