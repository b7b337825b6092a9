"""What the docs say is what the code does."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from stepscope.tables import errors

ROOT = Path(__file__).resolve().parents[2]


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout here: the list of files is not known")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_generated_pages_are_fresh() -> None:
    """docs/detectors.md and docs/cli.md are what ``make docs`` would write."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_documented() -> None:
    """Every command that can be typed has a section in docs/cli.md."""
    module = importlib.import_module("stepscope.cli.main")
    group = next(value for value in vars(module).values() if isinstance(value, click.Group))
    page = (ROOT / "docs" / "cli.md").read_text()
    names = group.list_commands(click.Context(group))
    assert names
    assert [name for name in names if f"## stepscope {name}\n" not in page] == []


def test_every_exit_code_is_documented() -> None:
    """Every exit code of tables/errors.py stands in docs/exit-codes.md."""
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.StepscopeError)
    ]
    assert [kind.__name__ for kind in kinds if f"| {kind.exit_code} " not in page] == []


def test_readme_names_the_two_commands() -> None:
    """A newcomer finds ``make demo`` and ``make test`` in the README."""
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of README and docs names a file that exists."""
    broken = []
    for page in [path for path in _tracked() if path.suffix == ".md"]:
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
        broken += [f"{page.relative_to(ROOT)}: {link}" for link in missing]
    assert broken == []


def test_every_decision_is_in_the_index_with_its_status() -> None:
    """Once, by its title; what has a successor says which."""
    folder = ROOT / "docs/decisions"
    rows = re.findall(
        r"^\| \[(\d{4})\]\(([^)]*)\) \| (.*) \| (.*) \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(name for _, name, *_ in rows) == sorted(path.name for path in folder.glob("[0-9]*.md"))
    for number, name, title, status in rows:
        text = (folder / name).read_text("utf-8")
        assert text.startswith((f"# {number}. {title}\n", f"# {number}: {title}\n"))
        successor = re.search(r"^Status: (?:superseded|taken back) by \[(\d{4})\]", text, re.MULTILINE)
        assert (successor is None) == status.startswith("in force"), name
        assert successor is None or f"[{successor[1]}]" in status
