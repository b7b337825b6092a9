"""Recordings are made once for what made them, and again for anything else."""

from __future__ import annotations

import functools
import multiprocessing
from typing import TYPE_CHECKING

import pytest
from tests.recordings import DONE, KEPT, Recordings, key_of

if TYPE_CHECKING:
    from pathlib import Path


def make(folder: Path, *, good: bool = True) -> bool:
    """Count the makers of a recording in a file of its parent."""
    with (folder.parent / "made").open("a") as file:
        file.write("x")
    return good


def made(root: Path, key: str) -> int:
    """How often recordings of a key were made."""
    return len((root / key / "made").read_text())


def test_made_once(tmp_path: Path) -> None:
    """Several processes share a recording: one of them makes it."""
    context = multiprocessing.get_context("spawn")
    every = [context.Process(target=ask, args=(tmp_path,)) for _ in range(3)]
    for one in every:
        one.start()
    for one in every:
        one.join(60)
    assert made(tmp_path, "key") == 1


def ask(root: Path) -> None:
    """Ask for a recording, in another process."""
    Recordings(root, "key").folder("program", make)


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """What is not whole is made again."""

    def fails(folder: Path) -> bool:
        (folder / "half").touch()
        raise OSError("no room")

    kept = Recordings(tmp_path, "key")
    with pytest.raises(OSError, match="no room"):
        kept.folder("program", fails)
    found = kept.folder("program", make)
    assert {one.name for one in found.iterdir()} == {DONE}


def test_a_bad_run_is_not_kept(tmp_path: Path) -> None:
    """A program that failed under load runs again for the next test, and for the next run of the tests."""
    kept = Recordings(tmp_path, "key")
    for good in (False, False, True, True):
        kept.folder("program", functools.partial(make, good=good))
    assert made(tmp_path, "key") == 3


def test_a_changed_byte_is_another_key(tmp_path: Path) -> None:
    """Of the sources that measure, of their names, and of the words."""
    probe = tmp_path / "agent" / "probe.py"
    probe.parent.mkdir()
    probe.write_text("RATE = 1\n")
    before = key_of([probe.parent], "3.11")
    assert key_of([probe.parent], "3.11") == before
    assert key_of([probe.parent], "3.12") != before
    probe.write_text("RATE = 2\n")
    changed = key_of([probe.parent], "3.11")
    assert changed != before
    probe.rename(probe.with_name("other.py"))
    assert key_of([probe.parent], "3.11") not in {before, changed}


def test_old_keys_are_forgotten(tmp_path: Path) -> None:
    """The newest few are kept."""
    for number in range(KEPT + 2):
        Recordings(tmp_path, f"key{number}").folder("program", make)
    assert len(list(tmp_path.iterdir())) == KEPT
