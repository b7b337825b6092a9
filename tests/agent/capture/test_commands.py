"""The channel by which a process is asked: what is taken, what is ignored, and that looking costs nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.agent.capture.commands import LOOK_NS, Commands
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.agent.core.lines import AgentLog


def put(folder: Path, name: str, text: str) -> None:
    """Write a file as somebody else might."""
    (folder / name).write_text(text)


def test_a_command_arrives_once_and_whole(tmp_path: Path) -> None:
    """What was sent is taken with its id, oldest first, and is gone then."""
    inbox = commands.Inbox(str(tmp_path / "in"))
    ids = [commands.send(str(tmp_path / "in"), {"kind": "ops", "steps": n}, f"00{n}-a") for n in (2, 1)]
    assert inbox.changed()
    found, problems = inbox.take()
    assert [c["steps"] for c in found] == [1, 2]
    assert [c["id"] for c in found] == sorted(ids)
    assert problems == []
    assert list((tmp_path / "in").iterdir()) == []
    assert inbox.take() == ([], [])


def test_ids_are_distinct_and_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids made later sort later."""
    now = 1_700_000_000_000_000_000
    made = []
    for step in (0, 5_000_000, 60_000_000_000):
        monkeypatch.setattr("stepscope.wire.commands.time.time_ns", lambda step=step: now + step)
        made.append(commands.new_id())
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_quiet_folder_is_not_listed(tmp_path: Path) -> None:
    """Once the folder's time is old, nothing has changed until something comes."""
    folder = tmp_path / "in"
    inbox = commands.Inbox(str(folder))
    os.utime(folder, ns=(1, 1_000_000_000))
    assert inbox.changed()
    assert not inbox.changed()
    commands.send(str(folder), {"kind": "ops"})
    assert inbox.changed()


def test_what_comes_within_the_clock_s_grain_is_seen(tmp_path: Path) -> None:
    """A folder that changed just now is looked at again: its time may stand still."""
    inbox = commands.Inbox(str(tmp_path / "in"))
    commands.send(str(tmp_path / "in"), {"kind": "ops"})
    assert inbox.changed()
    assert inbox.changed()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.json", "{", "Expecting"),
        ("a.json", "[]", "JSON object"),
        ("a.json", '{"id": "b"}', "its id"),
        ("A b.json", '{"id": "A b"}', "not an id"),
        ("a.json", json.dumps({"id": "a", "x": "y" * commands.MAX_BYTES}), "larger"),
        ("a.json", "[" * 100_000, "larger"),
        ("a.json", "[" * 8_000, "recursion"),
    ],
)
def test_hostile_files_are_ignored_and_told(tmp_path: Path, name: str, text: str, why: str) -> None:
    """What is no command is deleted, with a reason; the good one beside it is taken."""
    inbox = commands.Inbox(str(tmp_path))
    put(tmp_path, name, text)
    commands.send(str(tmp_path), {"kind": "ops"}, "z")
    found, (problem,) = inbox.take()
    assert [c["id"] for c in found] == ["z"]
    assert why in problem
    assert list(tmp_path.iterdir()) == []


def test_links_pipes_and_folders_are_not_opened(tmp_path: Path) -> None:
    """Nothing is followed, and nothing waits for a writer."""
    folder = tmp_path / "in"
    inbox = commands.Inbox(str(folder))
    (tmp_path / "secret").write_text('{"id": "a"}')
    (folder / "a.json").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "b.json")
    (folder / "c.json").mkdir()
    found, problems = inbox.take()
    assert found == []
    assert len(problems) == 3
    assert list(folder.iterdir()) == []
    assert (tmp_path / "secret").exists()


def test_files_of_another_user_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the reader's own user, and root, may ask."""
    inbox = commands.Inbox(str(tmp_path))
    commands.send(str(tmp_path), {"kind": "ops"}, "a")
    if os.geteuid() == 0:
        os.chown(tmp_path / "a.json", 12_345, -1)
    else:
        monkeypatch.setattr("stepscope.wire.commands.os.geteuid", lambda: os.getuid() + 1)
    found, (problem,) = inbox.take()
    assert found == []
    assert "belongs to user" in problem


def test_a_flood_is_taken_in_parts(tmp_path: Path) -> None:
    """No look takes more than a few; the rest is not forgotten."""
    inbox = commands.Inbox(str(tmp_path))
    for number in range(commands.MAX_FILES + 3):
        commands.send(str(tmp_path), {"kind": "ops"}, f"{number:03d}")
    os.utime(tmp_path, ns=(1, 1_000_000_000))
    assert inbox.changed()
    assert len(inbox.take()[0]) == commands.MAX_FILES
    assert inbox.changed()
    assert len(inbox.take()[0]) == 3


def test_too_large_a_command_is_not_sent(tmp_path: Path) -> None:
    """The sender hears it, and leaves nothing."""
    with pytest.raises(ValueError, match="at most"):
        commands.send(str(tmp_path), {"x": "y" * commands.MAX_BYTES})
    assert list(tmp_path.iterdir()) == []


class Process:
    """What ``Commands`` needs of an agent's lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.said: list[tuple[str, str]] = []

    def diagnostic(self, code: str, text: str) -> None:
        """Keep it."""
        self.said.append((code, text))


def test_the_agent_looks_twice_a_second_and_hands_on(tmp_path: Path) -> None:
    """A known kind reaches its handler, any other is told; between two looks the folder is left alone."""
    process = Process(tmp_path)
    taken: list[dict[str, object]] = []
    ticking = Commands(cast("AgentLog", process), {"ops": taken.append})
    folder = str(tmp_path / commands.COMMANDS_NAME)
    commands.send(folder, {"kind": "ops", "steps": 3}, "a")
    commands.send(folder, {"kind": "dance"}, "b")
    ticking.tick(10 * LOOK_NS)
    assert [c["steps"] for c in taken] == [3]
    assert process.said == [("DX915", "ignored a command of unknown kind 'dance'")]
    commands.send(folder, {"kind": "ops", "steps": 4}, "c")
    ticking.tick(10 * LOOK_NS + LOOK_NS // 2)
    assert len(taken) == 1
    ticking.tick(11 * LOOK_NS)
    assert [c["steps"] for c in taken] == [3, 4]
