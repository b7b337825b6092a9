"""What documents, help and messages say of installing works today: nobody has published stepscope on an index."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from stepscope.tables.errors import EXTRAS, install_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
TOLD = (
    "*.md",
    "docs/**/*.md",
    "examples/**/*",
    ".pre-commit-hooks.yaml",
    "src/**/*.py",
    "frontend/src/**/*.ts*",
    "bench/**/*.md",
)
INSTALLS = re.compile(
    r"(?:\bpip3?\s+install|\bpipx\s+(?:install|run)|\buvx|\buv\s+(?:tool\s+(?:install|run)|pip\s+install|add))\b"
)
"""A command that installs; what it installs follows, on the next line too where a text is wrapped."""
FROM_AN_INDEX = re.compile(r"(?<![\w./-])stepscope(?:\[[\w, ]*\])?(?![\w-]|[./]\w)(?!\s*@)")


def commands(text: str) -> Iterator[str]:
    """What commands that install are told to install: the rest of the line, or the next where a text is wrapped."""
    for found in INSTALLS.finditer(text):
        rest, _, more = text[found.end() :].partition("\n")
        rest = rest if rest.strip("\"' \\") else more.partition("\n")[0]
        yield re.split(r"[;&|]|\. |, | from | #", rest, maxsplit=1)[0]


def test_nobody_is_told_to_install_from_an_index() -> None:
    """A package of this name on an index would be somebody else's."""
    wrong = [
        f"{path.relative_to(ROOT)}: {command}"
        for pattern in TOLD
        for path in sorted(ROOT.glob(pattern))
        if path.is_file() and path.suffix in {".md", ".py", ".ts", ".tsx", ".yml", ".yaml"}
        for command in commands(path.read_text(encoding="utf-8"))
        if FROM_AN_INDEX.search(command)
    ]
    assert wrong == []


def test_what_is_wrong_is_found() -> None:
    """The patterns of the test above tell an index from a clone, a wheel and a repository."""
    for wrong in (
        "pip install stepscope",
        "`pip install\n'stepscope[ui]'`",
        "uvx stepscope check",
        "pip install -U stepscope.",
    ):
        assert [one for one in commands(wrong) if FROM_AN_INDEX.search(one)], wrong
    for right in (
        'pip install "stepscope @ git+ADDRESS@COMMIT"',
        "pip install ./stepscope",
        "pip install stepscope-0.1.0-py3-none-any.whl",
    ):
        assert list(commands(right)), right
        assert [one for one in commands(right) if FROM_AN_INDEX.search(one)] == [], right


def test_messages_name_the_packages_of_the_extras() -> None:
    """The command that a message prints installs what the extra holds, and help prints the same command."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {name: [Requirement(one).name for one in held] for name, held in extras.items()} == {
        name: list(held) for name, held in EXTRAS.items()
    }
    for name, command in (("lsp", "check/cli/lsp"), ("mcp", "cli/mcp"), ("ui", "cli/view")):
        help_text = (ROOT / "src" / "stepscope" / f"{command}.py").read_text(encoding="utf-8")
        assert f"{install_command(name)}." in " ".join(help_text.split())
