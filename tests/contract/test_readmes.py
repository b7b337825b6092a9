"""READMEs of packages: each package has one, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stepscope
from stepscope.agent.probes.registry import PROBES
from stepscope.cli.main import COMMANDS

SRC = Path(stepscope.__file__).parent
ROOT = SRC.parents[1]
PACKAGES = sorted(path.parent for path in SRC.glob("*/__init__.py") if path.parent.name != "assets")
NAMED = re.compile(r"(?<!`)`([a-z_][\w./]*[\w*])`(?!`)")
SIZE = re.compile(r"records of (\d+) bytes")


@pytest.mark.parametrize("folder", [*PACKAGES, ROOT / "frontend"], ids=lambda folder: folder.name)
def test_what_a_readme_names_exists(folder: Path) -> None:
    """A module by its path in the package, in ours or in the repository; a function of one; or a command."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMED.findall(text) if not _exists(folder, name)] == []
    assert "Begin with " in text
    assert "Tests: " in text


def _exists(folder: Path, name: str) -> bool:
    if name in COMMANDS:
        return True
    parts = name.split(".")
    spelled = [name, name.replace(".", "/"), "/".join(parts[:-1]) or name]
    if any(_is_there(root / path) for root in (folder, SRC, ROOT, folder / "src") for path in spelled):
        return True
    words = re.compile(rf"^(?:\s*(?:async )?def|\s*class|export function) {re.escape(parts[-1])}\b", re.MULTILINE)
    return any(words.search(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))


def _is_there(path: Path) -> bool:
    """A file, a folder, modules of one pattern, or a module without its suffix."""
    if "*" in path.name:
        return any(path.parent.glob(path.name + ".py"))
    return path.exists() or any(path.with_name(path.name + suffix).exists() for suffix in (".py", ".ts", ".tsx"))


def test_where_to_look_names_what_exists() -> None:
    """Files and folders, below ours or in the repository."""
    text = (ROOT / "docs" / "where-to-look.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w-]+(?:/[\w.-]+)+|[a-z_]+/?)`", text)
    assert len(paths) > 60
    missing = [path for path in paths if not any((root / path).exists() for root in (SRC, ROOT))]
    assert set(missing) <= COMMANDS.keys()


def test_every_probe_has_its_row() -> None:
    """In the page of probes, under the name of its file."""
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "probes.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {path.rpartition(".")[2] for path in PROBES} - named == set()


def test_the_size_of_a_record_is_said_right() -> None:
    from stepscope.wire.ring import RECORD_BYTES

    found = SIZE.findall((SRC / "wire" / "README.md").read_text(encoding="utf-8"))
    assert found == [str(RECORD_BYTES)]
