"""The README is short, its sample is what the code prints of the example, and each sentence has its evidence."""

from __future__ import annotations

import ast
import hashlib
import re
import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from stepscope.cli.main import COMMANDS
from stepscope.model.report.report import Report
from stepscope.report import terminal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = ROOT / "tests" / "data" / "demo"
SESSION = "demo_train-1129-0155.stepscope"
MOST_LINES = 120
FIGURES = {
    "study.md": {"cause in 44;": r"top1 44 of 48", "2 of the 58": r"of 58 in 2022: TensorFlow's profiler 2,"},
    "other-tools.md": {"cause of 28;": r"xprof 28 of 48"},
    "strangers.md": {
        "4, 4, 8, 9, 5, 5 and 4 of 12": r"(?s)(top1 4 of 12.*){2}top1 8 of 12.*top1 9 of 12.*top1 5 of 12.*"
        r"first 5 of 12.*first \*\*4 of 12",
        "in 9 of the 16 threads": r"first \*\*9 of 16",
        "nothing false": r"(?s)(false alarms 0.*){5}1 useful, 3 true and irrelevant, 0 false.*1 useful, 1 true and "
        r"irrelevant, 0 false",
    },
    "overhead.md": {"at most 0.35 %": r"The bound is under 0\.35 % in every row", "0.8 % of a core": r"0\.8 % of a"},
    "read-xplane.md": {
        "3.6 s and 0.6 GB": r"\| 10,003,701 \| 287\.7 MB \| 3\.610 s \| 619 MiB",
        "43.8 s and 5.1 GB": r"\| 43\.796 s \| 5054 MiB",
        "1.2 to 2.4 times": r"(?s)\| 1\.2x.*\| 2\.4x",
    },
}
"""Page of a benchmark: words of the README's row, and the pattern on the page that shows each."""
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")


def blocks(text: str) -> list[str]:
    """Paragraphs and items of lists, each on one line: no headings, tables, code or links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    kept = [line for line in text.splitlines() if not re.match(r"#|\||    ", line)]
    parts = re.split(r"\n\s*\n|\n(?=- )", "\n".join(kept))
    return [LINK.sub(r"\1", " ".join(part.removeprefix("- ").split())) for part in parts if part.strip()]


def sentences(text: str) -> list[str]:
    """What the README claims, one sentence each."""
    return [said for block in blocks(text) for said in re.split(r"(?<=[.?!:*]) (?=[A-Z*`])", block)]


def evidence() -> list[tuple[str, str]]:
    """The table: how a sentence begins, and what shows it."""
    page = (ROOT / "docs" / "readme.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [(row[0], row[1]) for row in rows[1:]]


def test_its_first_command_runs_as_it_stands() -> None:
    """In a clone of this repository, with nothing to fill in: it installs a folder that holds this project."""
    first = next(line.strip() for line in README.splitlines() if line.startswith("    "))
    program, install, *what = shlex.split(first, comments=True)
    assert (program, install, len(what)) == ("pip", "install", 1)
    project = tomllib.loads((ROOT / what[0] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "stepscope"


def test_it_is_short() -> None:
    """At most 120 lines."""
    assert len(README.splitlines()) <= MOST_LINES


def test_the_sample_is_what_the_code_prints() -> None:
    """The sample is the kept report of ``make demo``, as this code prints it."""
    report = msgspec.json.decode((DEMO / "report.json").read_bytes(), type=Report)
    shown = terminal.render(report, width=112, session_path=SESSION, html_path=f"{SESSION}/report.html")
    (sample,) = re.findall(r"^```text\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    assert sample == shown


def test_the_sample_is_of_the_example() -> None:
    """That report is of the example as it stands here: the same file, and the line it names is the function's."""
    program = (ROOT / "examples" / "demo_train.py").read_bytes()
    assert (DEMO / "example.sha256").read_text().split()[0] == hashlib.sha256(program).hexdigest(), (
        "run make demo again: tests/data/demo/README.md"
    )
    lines = {node.name: node.lineno for node in ast.walk(ast.parse(program)) if isinstance(node, ast.FunctionDef)}
    report = msgspec.json.decode((DEMO / "report.json").read_bytes(), type=Report)
    place = report.findings[0].where[0]
    assert (place.file, place.line) == ("demo_train.py", lines[place.function])


def test_every_sentence_has_its_evidence() -> None:
    """Each sentence begins as one row of docs/readme.md, no row is left over, and what a row names exists."""
    rows, said = evidence(), sentences(README)
    assert [one for one in said if sum(one.startswith(begin) for begin, _ in rows) != 1] == []
    assert [begin for begin, _ in rows if not any(one.startswith(begin) for one in said)] == []
    for begin, shown in rows:
        paths = re.findall(r"`([^`]+)`|\]\(([^)#]+)", shown)
        assert paths, begin
        for code, link in paths:
            assert (ROOT / code).exists() if code else (ROOT / "docs" / link).exists(), (begin, code or link)


def test_tables_link_to_their_pages() -> None:
    """Each row of a table names the page that shows it."""
    rows = [line for line in README.splitlines() if line.startswith("| ")]
    heads = [row.split(" | ")[0].strip("| ") for row in rows if "](docs/" not in row]
    assert heads == ["the offline report", "the job uses", "question", "question"]


@pytest.mark.parametrize(("page", "figures"), FIGURES.items())
def test_figures_are_those_of_the_page(page: str, figures: dict[str, str]) -> None:
    """What the README says of a benchmark stands on its page, which names the command."""
    (row,) = [line for line in README.splitlines() if f"](docs/benchmarks/{page})" in line and "make bench" in line]
    text = (ROOT / "docs" / "benchmarks" / page).read_text(encoding="utf-8")
    for said, shown in figures.items():
        assert said in row
        assert re.search(shown, text), shown
    (command,) = re.findall(r"`(make [a-z-]+)`", row)
    index = (ROOT / "docs" / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert any(command in line and f" {page}" in line for line in index.splitlines())


def test_commands_exist() -> None:
    """Every command, and every target of make, that the README names is there."""
    named = set(re.findall(r"stepscope ([a-z]+)(?= |$|`)", README, flags=re.MULTILINE))
    assert named - {"has"} <= set(COMMANDS)
    rules = {prefix: (ROOT / place / "Makefile").read_text() for prefix, place in (("", ""), ("bench-", "bench"))}
    targets = {
        prefix + name
        for prefix, rule in rules.items()
        for name in re.findall(r"^([a-z0-9-]+):", rule, flags=re.MULTILINE)
    }
    assert set(re.findall(r"make ([a-z0-9-]+)", README)) - {"and"} <= targets
