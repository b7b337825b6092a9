"""``stepscope check`` as users of other linters expect it: severities, exit codes, lists, standard input, noqa, SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stepscope.check.cli.check import check
from stepscope.tables.errors import UsageError

WARNING = """import tensorflow as tf
ds = tf.data.TFRecordDataset("x")
ds = ds.map(lambda x: tf.image.random_flip_up_down(x))
"""
INFO = WARNING.replace("tf.image.random_flip_up_down(x)", "tf.random.uniform([])")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of one warning and one of one info, the working directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warning.py").write_text(WARNING)
    (tmp_path / "info.py").write_text(INFO)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def call(*args: str, text: str | None = None) -> Result:
    """Run the command; errors of ours are raised."""
    arguments = [*args, "--target-version", "2.21"]
    return CliRunner().invoke(check, arguments, input=text, standalone_mode=False, catch_exceptions=False)


def files(result: Result) -> list[str]:
    """The files of the findings in a report in JSON."""
    return [finding["where"][0]["file"] for finding in json.loads(result.stdout)["findings"]]


def test_infos_are_shown_when_asked_for(project: Path) -> None:
    """By default they are counted on stderr; an option or a setting shows them."""
    done = call(".", "--format", "json")
    assert (files(done), json.loads(done.stdout)["infos"]) == (["warning.py"], 1)
    assert "1 warning; 1 info with --show-info" in done.stderr
    assert files(call(".", "--format", "json", "--show-info")) == ["info.py", "warning.py"]
    (project / "pyproject.toml").write_text("[tool.stepscope.check]\nshow-info = true\n")
    assert files(call(".", "--format", "json")) == ["info.py", "warning.py"]


@pytest.mark.parametrize(
    ("file", "least", "code"),
    [
        ("warning.py", "", 1),
        ("warning.py", "error", 0),
        ("warning.py", "never", 0),
        ("info.py", "", 0),
        ("info.py", "warning", 0),
        ("info.py", "info", 1),
    ],
)
def test_what_fails_a_check(project: Path, file: str, least: str, code: int) -> None:
    """The severity and those above it; the option goes before the setting."""
    assert call(file, *(["--fail-on", least] if least else [])).return_value == code
    (project / "pyproject.toml").write_text(f'[tool.stepscope.check]\nfail-on = "{least or "warning"}"\n')
    assert call(file).return_value == code
    assert call(file, "--fail-on", "never").return_value == 0


def test_a_check_that_fails_on_infos_shows_them(project: Path) -> None:
    """No exit code without the finding behind it."""
    assert files(call(".", "--fail-on", "info", "--format", "json")) == ["info.py", "warning.py"]


def test_infos_alone_do_not_fail_a_check_that_shows_them(project: Path) -> None:
    """What is only worth knowing stops no pipeline."""
    assert call("info.py", "--show-info").return_value == 0


def test_lists_with_commas(project: Path) -> None:
    """Codes and patterns, as lists or repeated."""
    assert files(call(".", "--select", "KER,TFD", "--format", "json")) == ["warning.py"]
    assert files(call(".", "--select", "KER, VEC", "--format", "json")) == []
    assert files(call(".", "--ignore", "KER001,TFD001", "--format", "json")) == []
    assert files(call(".", "--exclude", "no.py,warn*", "--format", "json", "--show-info")) == ["info.py"]


def test_excluded_files_that_are_named(project: Path) -> None:
    """A hook names all files of a commit: patterns hold for these too, also for a folder above them."""
    (project / "third").mkdir()
    (project / "third" / "a.py").write_text(WARNING)
    assert files(call("warning.py", "third/a.py", "--exclude", "third", "--format", "json")) == ["warning.py"]


def test_standard_input(project: Path) -> None:
    """The text is checked under the name that is given, which is excluded, ignored and read as notebook by it."""
    done = call("-", "--stdin-filename", "new.py", "--format", "json", text=WARNING)
    assert (done.return_value, files(done)) == (1, ["new.py"])
    assert files(call("-", "--format", "json", text=INFO + "# nothing")) == []
    assert files(call("-", "--stdin-filename", "warning.py", "--format", "json", text="x = 1\n")) == []
    book = json.dumps({"cells": [{"cell_type": "code", "source": WARNING}]})
    (finding,) = json.loads(call("-", "--stdin-filename", "n.ipynb", "--format", "json", text=book).stdout)["findings"]
    assert finding["where"][0]["cell"] == 1
    assert "+ds = ds.map(" in call("-", "--diff", "--unsafe-fixes", text=WARNING).stdout
    for more in (["--fix"], ["warning.py"]):
        with pytest.raises(UsageError, match="standard input"):
            call("-", *more, text=WARNING)


def test_noqa(project: Path) -> None:
    """With our code it silences; other tools' codes are theirs, and one without codes says nothing about ours."""
    line = WARNING.rstrip()
    for comment, found in (
        ("# noqa: TFD001", []),
        ("# noqa: E501, TFD001", []),
        ("# NOQA:E501,TFD001", []),
        ("# noqa: E501", ["warning.py"]),
        ("# noqa", ["warning.py"]),
    ):
        (project / "warning.py").write_text(f"{line}  {comment}\n")
        done = call("warning.py", "--format", "json")
        assert files(done) == found, comment
        assert json.loads(done.stdout)["diagnostics"] == []


def test_comments_without_use(project: Path) -> None:
    """A noqa of ours that silences nothing, and a code that no rule has."""
    (project / "warning.py").write_text(
        f"x = 1  # noqa: TFD001\n{WARNING.rstrip()}  # stepscope: ignore[TFD001, TFD999]\n"
    )
    done = call("warning.py")
    assert "DX072 warning.py:1: noqa: TFD001 has no effect; remove it" in done.stderr
    assert "DX072 warning.py:4: stepscope: ignore[TFD999] names no rule; list all: stepscope rule" in done.stderr


def test_a_stale_baseline_is_said(project: Path) -> None:
    """What it knows and is gone; not what other files or rules have, nor infos that are not shown."""
    assert call(".", "--write-baseline", "known.json").return_value == 0
    assert call(".", "--baseline", "known.json").stderr.count("DX074") == 0
    assert call("info.py", "--baseline", "known.json", "--select", "KER").stderr.count("DX074") == 0
    (project / "warning.py").write_text("x = 1\n")
    done = call(".", "--baseline", "known.json")
    assert "DX074 known.json: 1 finding in it is gone; write it again: --write-baseline known.json" in done.stderr
    (project / "warning.py").unlink()
    assert "DX074" in call(".", "--baseline", "known.json").stderr


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "github", "gitlab"])
def test_the_summary_is_on_stderr_in_every_format(project: Path, format_: str) -> None:
    """Also where the report goes to a file."""
    for more in ([], ["-o", "report"]):
        assert "checked 2 files for TensorFlow 2.21" in call(".", "--format", format_, *more).stderr


def test_sarif(project: Path) -> None:
    """The rules that occur, fingerprints that stay when lines move, and the edits of the fix."""
    run = json.loads(call(".", "--format", "sarif").stdout)["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["TFD001"]
    (result,) = run["results"]
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    region = replacement["deletedRegion"]
    line = WARNING.splitlines()[2]
    assert (region["startLine"], region["endLine"], region["startColumn"]) == (3, 3, region["endColumn"])
    fixed = line[: region["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
    assert fixed == line[:-1] + ", num_parallel_calls=tf.data.AUTOTUNE)"
    (project / "warning.py").write_text("# moved\n" + WARNING)
    (moved,) = json.loads(call(".", "--format", "sarif").stdout)["runs"][0]["results"]
    assert moved["partialFingerprints"] == result["partialFingerprints"]
    assert moved["locations"] != result["locations"]


def test_notebooks_name_cell_and_line(project: Path) -> None:
    """In notices and in the log of fixes; a cell that is no Python hides no finding of the others."""
    cells = ["x = 1\n", "%cd /tmp\n" + WARNING, "def broken(:\n", "y = 2  # stepscope: ignore[TFD999]\n"]
    book = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    (project / "n.ipynb").write_text(book)
    done = call("n.ipynb")
    assert done.stdout.startswith("n.ipynb:cell 2:4:6: TFD001")
    assert "DX070 n.ipynb:cell 3:1: left out: not valid Python 3 (" in done.stderr
    assert "DX072 n.ipynb:cell 4:1: stepscope: ignore[TFD999] names no rule" in done.stderr
    assert "would fix n.ipynb:cell 2:4: TFD001" in call("n.ipynb", "--diff", "--unsafe-fixes").stderr
    assert "fixed n.ipynb:cell 2:4: TFD001" in call("n.ipynb", "--fix", "--unsafe-fixes").stderr
    assert [c["source"] for c in json.loads((project / "n.ipynb").read_text())["cells"]][2] == cells[2]
