"""The report's sections as the web page gets them; and when a running job's session is analysed again."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from stepscope.model.api.status import LiveCapture, LiveShare, Status
from stepscope.report import blocks, markdown, text, words
from stepscope.report.blocks import Facts, Fence, Heading, Listed, Paragraph, Table
from stepscope.report.marked import Md
from stepscope.server import browse_sections
from stepscope.server.browse_sections import NumberedFinding, SectionList
from stepscope.server.open_sessions import LIVE_MIN_S, OpenSession, OpenSessions

from .recorded import TRACED, lying

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.testclient import TestClient

    from stepscope.server.browse_sections import ReportSection
    from stepscope.server.session_catalogue import ListedSession

    from .recorded import Recorded


def flat(said: str) -> str:
    """Text with any blanks as one."""
    return " ".join(said.split())


def said(section: ReportSection) -> Iterator[str]:
    """The texts of its blocks that Markdown has, too."""
    for one in section.blocks:
        if isinstance(one, NumberedFinding):
            yield from (one.finding.title, *(remedy.text for remedy in one.finding.remedies))
        elif not one.page:
            yield from (piece for whole in _texts(one) for piece in map(_piece, blocks.spans(whole)) if piece)


def _texts(one: blocks.Block) -> Iterator[blocks.Text]:
    if isinstance(one, (Paragraph, Heading)):
        yield one.text
    elif isinstance(one, Listed):
        yield from one.items
    elif isinstance(one, Facts):
        yield from itertools.chain.from_iterable(one.rows)
    elif isinstance(one, Fence):
        yield from one.text.split("\n")
    elif isinstance(one, Table):
        yield from (*(column.title for column in one.columns), *itertools.chain.from_iterable(one.rows))


def _piece(span: blocks.Span) -> str:
    if isinstance(span, blocks.At):
        return words.place_text(span.place) if span.place is not None else ""
    if isinstance(span, (blocks.Code, blocks.Outcome)):
        return span.text
    if isinstance(span, blocks.Stacked):
        return "; ".join(span.texts)
    return span if isinstance(span, str) else span.label if isinstance(span, blocks.Key) else ""


@pytest.mark.parametrize("kind", ["slow", "starving", "import", "run"])
def test_the_sections_are_those_of_markdown(kind: str, tmp_path: Path, recorded: Recorded, starving: Recorded) -> None:
    """The same titles, in one order, and no text that Markdown words otherwise; lines are the terminal's."""
    path = {"slow": recorded.path, "starving": starving.path}.get(kind) or lying(tmp_path, kind)
    opened = OpenSession(path, "")
    report = opened.report
    found = msgspec.json.decode(msgspec.json.encode(browse_sections.sections(opened)), type=SectionList)
    page = markdown.render(report)
    texts = {one.title: list(said(one)) for one in found.items}
    assert [title for title, texts_of in texts.items() if texts_of] == re.findall(r"^### (.*)$", page, re.MULTILINE)
    whole = flat(page)
    other = [one for one in itertools.chain.from_iterable(texts.values()) if flat(Md.escape(one)) not in whole]
    assert [one for one in other if flat(one) not in whole] == []  # code is not escaped
    shown = flat(text.render(report, width=1000))
    assert all(flat(f"{line.label} {line.text}") in shown for line in found.lines)
    if kind == "import":
        assert f"{TRACED} steps" in next(line.text for line in found.lines if line.label == "steps")


def test_charts_are_left_to_the_page(client: TestClient, recorded: Recorded) -> None:
    """Their sections have no blocks; drawings and grids have no place in the answer."""
    found = client.get(f"{recorded.url}/sections")
    assert [one["key"] for one in found.json()["items"] if not one["blocks"]] == ["times", "resources", "metrics"]
    assert "svg" not in found.text


def test_a_job_without_steps_yet_has_no_verdict(recorded: Recorded) -> None:
    """While it runs nothing is said to have ended, to be clear or to be unexplained."""
    opened = OpenSession(recorded.path, "")
    report = opened.report
    early = msgspec.structs.replace(report.session, steps=0, step_times=None)
    vars(opened)["report"] = msgspec.structs.replace(report, session=early, findings=())
    found = browse_sections.sections(opened, running=True)
    assert found.lines == ()
    assert [(one.key, list(said(one))) for one in found.items if one.blocks] == [("findings", [browse_sections.EARLY])]
    assert "resources" in [one.key for one in found.items]
    ended = {one.key: list(said(one)) for one in browse_sections.sections(opened).items}
    assert ended["findings"] != [browse_sections.EARLY]
    assert ended["checked"]


def test_a_running_session_is_read_again(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seldom, as its analysis costs; soon where no steps were seen; at once when there are first steps or a capture."""
    now = [0.0]
    monkeypatch.setattr("stepscope.server.open_sessions.time.monotonic", lambda: now[0])
    revisions = itertools.count()
    monkeypatch.setattr("stepscope.server.open_sessions.revision_of", lambda _: str(next(revisions)))

    def entry(*, steps: bool = False, captures: int = 0) -> ListedSession:
        share = (LiveShare(component="call", ratio=1.0),) if steps else ()
        status = Status(anatomy=share, captures=(LiveCapture(request="r", state="done"),) * captures)
        job = SimpleNamespace(status=status)
        return cast("ListedSession", SimpleNamespace(key="k", path=recorded.path, job=job))

    kept = OpenSessions()
    first = kept.open(entry())
    assert first.report.session.steps
    first.cpu_s = 1.0
    now[0] = 99.0
    assert kept.open(entry()) is first
    second = kept.open(entry(steps=True))
    assert second is not first
    third = kept.open(entry(steps=True, captures=1))
    assert third is not second
    third.cpu_s = 1.0
    vars(third)["report"] = msgspec.structs.replace(
        first.report, session=msgspec.structs.replace(first.report.session, steps=0)
    )
    now[0] += LIVE_MIN_S - 1
    assert kept.open(entry(steps=True, captures=1)) is third
    now[0] += 2
    assert kept.open(entry(steps=True, captures=1)) is not third
