"""Outputs of the checker: text with its excerpts, GitHub annotations, SARIF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.check.fixing.programs import FIRST, PIPELINE, SECOND, book

from stepscope.check.cli.check import check
from stepscope.check.reports import check_github, check_text
from stepscope.check.use_cases.check_output import Sources
from stepscope.tables.findings import Cost, Finding, Remedy
from stepscope.tables.place import Place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a slow file and a slow notebook, the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.py").write_text(PIPELINE)
    (tmp_path / "n.ipynb").write_bytes(book(FIRST, SECOND))
    (tmp_path / "old.py").write_text("print 'two'\n")
    return tmp_path


def call(*args: str) -> Result:
    """Run the command; errors of ours are raised."""
    arguments = ["--target-version", "2.21", *args]
    return CliRunner().invoke(check, arguments, standalone_mode=False, catch_exceptions=False)


def finding(line: int, column: int, end_column: int, title: str = "t") -> Finding:
    """A finding at a place of one line."""
    place = Place(file="f.py", line=line, end_line=line, column=column, end_column=end_column)
    return Finding(
        code="TFD001", name="n", title=title, severity="warning", confidence=0.9,
        symptom="unknown", cause="unknown", introduced_stage="unknown", exposed_stage="unknown", pipeline_stage="none",
        where=(place,), cost=Cost(ratio=0.0, low=0.0, high=0.5, basis="prior"),
        remedies=(Remedy(id="n", text="do better", safety="safe", fix="Add k=1"),), explanation="Nothing changes.",
    )  # fmt: skip


def test_concise(folder: Path) -> None:
    """One line each, in a notebook by cell; a mark where --fix helps."""
    lines = call(".", "--format", "concise").stdout.splitlines()
    assert [re.sub(r": TFD001.*", "", line) for line in lines] == [
        "a b.py:6:34", "a b.py:6:47", "n.ipynb:cell 3:4:34", "n.ipynb:cell 3:4:47"
    ]  # fmt: skip
    assert [" [*] " in line for line in lines] == [False, True, False, True]


def test_full(folder: Path) -> None:
    """The source with its neighbours, the part marked, the remedy, and what a fix changes in behaviour."""
    shown = call("a b.py", "--format", "full").stdout
    assert (
        "a b.py:6:47: TFD001 [*] interleave without num_parallel_calls reads its inputs one after the other\n"
        "  |\n"
        "6 | ds = tf.data.Dataset.range(9000).map(augment).interleave(tf.data.Dataset.from_tensors)\n"
        f"  | {' ' * 46}{'^' * 40}\n"
        "  |\n"
        "  = help: pass num_parallel_calls=tf.data.AUTOTUNE\n"
        "  = --fix: Add num_parallel_calls=tf.data.AUTOTUNE. Elements keep their order"
    ) in shown
    assert "  = --fix --unsafe-fixes: Add num_parallel_calls" in shown


def test_excerpt_of_wide_and_hostile_text() -> None:
    """Carets stand below wide letters and tabs; control characters cannot steer the terminal."""
    line = "\tx = '表\x1b[31m' + f(y)"
    start = line.index("f(y)") + 1
    shown = check_text.render([finding(1, start, start + 4, "say \x1b[2J")], lines=lambda _: [line], width=80)
    assert "\x1b" not in shown
    head, _, source, carets = shown.splitlines()[:4]
    assert head.endswith("say \\x1b[2J")
    assert source == "1 |     x = '表\\x1b[31m' + f(y)"
    assert carets.index("^") == source.index("f(y)") + 1, "the wide letter takes two columns"
    assert carets.count("^") == 4


def test_excerpt_of_a_long_line() -> None:
    """Of a long line the part with the mark is shown."""
    line = "x = [" + "1, " * 200 + "f(y), " + "2, " * 200 + "]"
    start = line.index("f(y)") + 1
    shown = check_text.render([finding(1, start, start + 4)], lines=lambda _: [line], width=80).splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[2][shown[3].index("^") :].startswith("f(y)")


def test_color() -> None:
    """Colours only when they are asked for; without them the text is the same."""
    found = [finding(1, 1, 2)]
    plain = check_text.render(found, lines=lambda _: ["xy"])
    colored = check_text.render(found, lines=lambda _: ["xy"], color=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain != colored


def test_missing_source() -> None:
    """A file that is gone costs the excerpt, nothing else."""
    shown = check_text.render([finding(1, 1, 2)], lines=Sources())
    assert shown.startswith("f.py:1:1: TFD001 [*] t\n  = help: do better\n")


def test_github(folder: Path) -> None:
    """One workflow command a finding; notebooks at the file, with the cell in the text."""
    lines = call(".", "--format", "github").stdout.splitlines()
    assert lines[0].startswith(
        "::warning title=stepscope TFD001 (sequential-stateful-map),file=a b.py,line=6,endLine=6,col=34,endColumn=46::"
    )
    assert lines[2].startswith(
        "::warning title=stepscope TFD001 (sequential-stateful-map),file=n.ipynb::cell 3, line 4: "
    )


def test_github_escapes() -> None:
    """What would end a property or a line is escaped."""
    text = check_github.render([finding(1, 2, 3, "50 % of a,b: c\nd")])
    assert text.startswith("::warning title=stepscope TFD001 (n),file=f.py,line=1,endLine=1,col=2,endColumn=3::")
    assert text.endswith("::50 %25 of a,b: c%0Ad%0Ado better\n")


def test_gitlab(folder: Path) -> None:
    """One issue a finding; two that are alike have fingerprints of their own, which stay when lines move."""
    twice = PIPELINE + "\n" + PIPELINE.splitlines()[-1] + "\n"
    (folder / "a b.py").write_text(twice)
    issues = json.loads(call("a b.py", "n.ipynb", "--format", "gitlab").stdout)
    assert [i["location"]["lines"]["begin"] for i in issues] == [6, 6, 8, 8, 1, 1]
    assert len({i["fingerprint"] for i in issues}) == 6
    assert {i["severity"] for i in issues} == {"minor"}
    assert issues[4]["description"].startswith("cell 3, line 4: map runs augment")
    (folder / "a b.py").write_text("# moved\n" + twice)
    again = json.loads(call("a b.py", "n.ipynb", "--format", "gitlab").stdout)
    assert [i["fingerprint"] for i in again] == [i["fingerprint"] for i in issues]
    assert [i["location"]["lines"]["begin"] for i in again] == [7, 7, 9, 9, 1, 1]


def strings(log: object) -> Iterator[tuple[str, object]]:
    """Every key with its value in a JSON value."""
    if isinstance(log, dict):
        for key, value in log.items():
            yield key, value
            yield from strings(value)
    elif isinstance(log, list):
        for value in log:
            yield from strings(value)


def test_sarif(folder: Path) -> None:
    """The log has what the standard requires: versions, rules in place, regions from 1, relative URIs, messages."""
    log = json.loads(call(".", "--format", "sarif").stdout)
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "stepscope"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
    rules = driver["rules"]
    assert [r["id"] for r in rules] == sorted({r["id"] for r in rules})
    assert all(r["shortDescription"]["text"] and r["help"]["text"] and r["name"].isalnum() for r in rules)
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{folder.resolve().as_uri()}/"
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
    for key, value in strings(log):
        if key == "level":
            assert value in {"none", "note", "warning", "error"}
        if key in ("startLine", "endLine", "startColumn", "endColumn"):
            assert isinstance(value, int)
            assert value >= 1
        if key == "uri" and not str(value).startswith("file:///"):
            assert " " not in str(value)
            assert not str(value).startswith("/")
    first, _, cell, _ = (r["locations"][0] for r in run["results"])
    assert first["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 6, "endLine": 6, "startColumn": 34, "endColumn": 46},
    }
    assert cell["logicalLocations"] == [{"name": "cell 3", "kind": "member"}]
    assert "region" not in cell["physicalLocation"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert ["old.py" in note["message"]["text"] for note in invocation["toolExecutionNotifications"]] == [True]


def test_sarif_of_standard_input(folder: Path) -> None:
    """A text from standard input has no edits: those of the file of its name would be for another text."""
    path = str(folder / "a b.py")
    options = ["--target-version", "2.21", "--format", "sarif"]
    arguments = ["-", "--stdin-filename", path, *options]
    done = CliRunner().invoke(check, arguments, input=PIPELINE + "# more\n", standalone_mode=False)
    (run,) = json.loads(done.stdout)["runs"]
    assert len(run["results"]) == 2
    assert [result.get("fixes", []) for result in run["results"]] == [[], []]
    assert any("fixes" in r for r in json.loads(call(path, "--format", "sarif").stdout)["runs"][0]["results"])


def test_output_file(folder: Path) -> None:
    """With -o the output goes to a file, and the exit code stays."""
    done = call(".", "--format", "sarif", "-o", "out.sarif")
    assert (done.return_value, done.stdout) == (1, "")
    assert json.loads((folder / "out.sarif").read_text())["version"] == "2.1.0"
