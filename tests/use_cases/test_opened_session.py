"""``stepscope.open``: what the commands print and export, as values; in a notebook nothing is from outside."""

from __future__ import annotations

import json
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from tests.report.samples import finding
from tests.web.timeline_sessions import STEP, stored

import stepscope
from stepscope.report import json_report
from stepscope.report.brief import document, fragment
from stepscope.sessions.analysis import analyze
from stepscope.tables.errors import SessionError, UsageError

DOCS = Path(__file__).resolve().parents[2] / "docs" / "python.md"


@pytest.fixture(scope="module", name="path")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("opened"), traced=True)


def test_what_the_commands_say(path: Path) -> None:
    """The report and its brief form are those of the command line."""
    opened = stepscope.open(path)
    report = analyze(path)
    assert json_report.encode(opened.report) == json_report.encode(report)
    assert opened.findings == opened.report.findings
    assert json.loads(msgspec.json.encode(opened.brief)) == json.loads(document.encode(report, str(path)))
    assert opened.brief.verdict in repr(opened)


def test_tables_have_the_session_s_rows(path: Path) -> None:
    """As many rows as there are steps, ops and findings; columns have units in their names and one type each."""
    opened = stepscope.open(str(path))
    rows = {name: opened.table(name) for name in ("steps", "spans", "ops", "findings")}
    assert rows["steps"].num_rows == 200
    assert rows["findings"]["code"].to_pylist() == [one.code for one in opened.findings]
    assert {row["op_type"] for row in rows["ops"].to_pylist()} >= {"MatMul"}
    assert len(rows["spans"]) > 200
    assert rows["steps"]["start_ns"].to_pylist()[:3] == [0, STEP, 2 * STEP]


def test_the_newest_of_the_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path, as the commands do."""
    monkeypatch.chdir(path.parent)
    assert stepscope.open().path == Path(path.name)


def test_the_documented_program_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example of docs/python.md, as it stands there."""
    (program,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "train.stepscope").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    runpy.run_path("program.py")
    printed = capsys.readouterr().out
    assert stepscope.open(path).findings[0].title in printed
    assert "dur_ns" in printed


@pytest.mark.parametrize(("name", "said"), [("step", "no table 'step'; expected one of steps, spans, ops, findings")])
def test_an_unknown_table(path: Path, name: str, said: str) -> None:
    """It says which there are."""
    with pytest.raises(UsageError, match=re.escape(said)):
        stepscope.open(path).table(name)


def test_no_session(tmp_path: Path) -> None:
    """The line of the commands, as an exception."""
    with pytest.raises(SessionError, match=r"nothing\.stepscope"):
        stepscope.open(tmp_path / "nothing.stepscope")


def test_python_s_own_open_stays(tmp_path: Path) -> None:
    """``stepscope.open`` is found by completion; ``import *`` does not bring it."""
    (tmp_path / "all.py").write_text("from stepscope import *", encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "all.py"))
    assert {"step", "span"} <= names.keys()
    assert "open" not in names
    assert "open" in dir(stepscope)


class Tags(HTMLParser):
    """What stands in a fragment; each element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_it(path: Path) -> None:
    """One closed element of texts and tables: no script, no style sheet, no link, no picture."""
    shown = stepscope.open(path)._repr_html_()
    assert type(shown) is str
    tags = Tags()
    tags.feed(shown)
    assert tags.open == []
    assert set(tags.names) <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert tags.attributes <= {"style"}
    assert "url(" not in shown
    assert stepscope.open(path).brief.findings[0].code in shown


def test_texts_of_the_job_are_no_markup(path: Path) -> None:
    """A title or a path with marks is shown as it is."""
    report = analyze(path)
    hostile = msgspec.structs.replace(finding("HST004"), title="<script>alert(1)</script> in <b>train</b>.py")
    shown = fragment.render(msgspec.structs.replace(report, findings=(hostile,)), "<img src=x>.stepscope")
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;" in shown
