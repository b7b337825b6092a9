"""Markup in any string of a session stays text: on pages, in pictures, and in Markdown, which GitHub shows as HTML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import unquote

import msgspec
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples
from tests.report.filled import Filler
from tests.report.sample_series import series

from stepscope.model.report.compare import CompareReport
from stepscope.model.report.report import Report
from stepscope.model.report.step_detail import StepDetail
from stepscope.model.report.whatif import WhatIfReport
from stepscope.report import compare_text, html, markdown, step_text
from stepscope.report.flame import page as flame_page
from stepscope.report.flame import svg
from stepscope.report.flame.graph import ComparedProfiles, Graph, compare, graph
from stepscope.report.whatif import page as whatif_page
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import Frame, StackProfile, Thread

PAYLOAD = "<img src=x onerror=1></script><b>\"><i>' onx=']]><!--</style></title></pre><svg onload=1>&lt;u&gt;{0}{x.y}"
"""Ends what a text can stand in: an element, an attribute, a script, a style, a comment, a template."""
IN_MARKDOWN = (
    "</script><b>",
    "`<img src=x onerror=1>`",
    "](javascript:1)",
    "![x](http://x/y)",
    "|<b>",
    "<http://x/y>",
    "\n\n<b>\n",
    "\n```\n<b>\n",
)
VARIANTS = range(8)
"""As many as the longest enumeration that a report shows."""
HARMLESS = str.maketrans("<>&\"'", "()+^^")
SHOWN = ("alt", "aria-label", "content", "data-find", "label", "title", "value")
"""Attributes that show texts."""

Page = Callable[[Filler], str]


class Reader(HTMLParser):
    """Elements with the names of their attributes, and everything that is shown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, ...]] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "href":
                assert (value or "").startswith(("#", "data:image/", "S")), value
                self.shown.append(unquote(value or ""))
            if name in SHOWN and tag != "meta":
                self.shown.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is None:
            self.shown.append(data)

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        pytest.fail(f"a declaration: {data}")


def read(markup: str) -> tuple[list[tuple[str, ...]], str]:
    """Elements, and the text without what quotes of shells may have become."""
    reader = Reader()
    reader.feed(markup)
    reader.close()
    flat = " ".join("".join(reader.shown).translate(HARMLESS).split())
    return reader.elements, flat.replace("^", "")


def check(draw: Page, payload: str, variant: int) -> int:
    """Draw with ``payload`` in each string, then with a harmless text: nothing else differs. How many are shown."""
    evil, mild = Filler(payload, variant), Filler(payload.translate(HARMLESS), variant)
    elements, text = read(draw(evil))
    expected, plain = read(draw(mild))
    assert elements == expected
    assert text == plain
    return sum(mark in text for mark in evil.marks)


def whole(filler: Filler) -> Report:
    """A report with everything that one can hold."""
    report = filler.fill(Report)
    extra = {f"metric:{filler.string()}": series(40)["step_ms_p50"], f"anat:{filler.string()}": series(40)["anat:call"]}
    return msgspec.structs.replace(report, series=series(40) | extra | report.series)


def unexplained(filler: Filler) -> Report:
    """A report without findings, which says in which files the time is that none explains."""
    report = whole(filler)
    ledger = tuple(msgspec.structs.replace(one, maker=None, settled_by="unexplained") for one in report.ledger)
    return msgspec.structs.replace(report, findings=(), ledger=ledger, unexplained_ratio=0.5)


def no_steps(filler: Filler) -> Report:
    """A report of a job in which no steps were seen."""
    report = whole(filler)
    session = msgspec.structs.replace(report.session, steps=0, step_times=None)
    return msgspec.structs.replace(report, findings=(), anatomy=(), session=session)


def imported(filler: Filler) -> Report:
    """A report of files of other tools."""
    report = whole(filler)
    return msgspec.structs.replace(report, session=msgspec.structs.replace(report.session, processes=0, command=()))


REPORTS = (whole, unexplained, no_steps, imported)


def sources(filler: Filler, report: Report) -> dict[str, str]:
    """A source for each file in a finding."""
    files = [place.file for finding in report.findings for place in finding.where]
    return {file: "\n".join(f"    {filler.string()}" for _ in range(30)) for file in files}


@pytest.mark.parametrize("made", REPORTS)
def test_page(made: Callable[[Filler], Report]) -> None:
    """No string of a report makes an element, an attribute or a comment of its page, and all that is shown is whole."""

    def draw(filler: Filler) -> str:
        report = made(filler)
        return html.render(report, sources=sources(filler, report))

    assert all(check(draw, PAYLOAD, variant) > 150 for variant in VARIANTS)


def test_page_of_an_experiment() -> None:
    """The same of the page of ``whatif``, with its flame graphs."""

    def draw(filler: Filler) -> str:
        report = filler.fill(WhatIfReport)
        picture = svg.render(_graph(filler))
        names = (filler.string(), filler.string())
        flames = whatif_page.Flames(trial=names[0], before=picture, after=picture, link=names[1])
        why = whatif_page.Flames(trial="", before=picture, after=picture, why=filler.string())
        return whatif_page.render(report, flames) + whatif_page.render(report, why)

    assert all(check(draw, PAYLOAD, variant) > 50 for variant in VARIANTS)


def _profile(filler: Filler) -> StackProfile:
    stacks = [[Frame(filler.string(), filler.string(), 3, module=filler.string()) for _ in range(3)] for _ in range(2)]
    threads = (Thread(7, 7, filler.string()), Thread(7, 8, filler.string()))
    notes = (Diagnostic(code=filler.string(), text=filler.string()),)
    profile = of_samples([(i * 10**9, stacks[i % 2]) for i in range(10)], threads=[i % 2 for i in range(10)])
    return replace(profile, threads=threads, diagnostics=notes, name=filler.string())


def _graph(filler: Filler) -> Graph:
    return graph(_profile(filler), source=filler.string(), window=filler.string())


def test_flame_graphs() -> None:
    """The same of flame graphs and of their differences, as page and as picture; a picture is XML, too."""

    def pair(filler: Filler) -> ComparedProfiles:
        return compare(_graph(filler), _graph(filler), basis="work", work=(1.0, 1.0))

    drawings: tuple[Page, ...] = (
        lambda filler: flame_page.render(_graph(filler)),
        lambda filler: flame_page.render_compared(pair(filler)),
        lambda filler: svg.render(_graph(filler)),
        lambda filler: svg.render_compared(pair(filler)),
    )
    for draw in drawings:
        assert check(draw, PAYLOAD, 0) > 5
    for draw in drawings[2:]:
        picture = ET.fromstring(draw(Filler(PAYLOAD)))
        assert PAYLOAD in "".join(picture.itertext())


@pytest.mark.parametrize(
    ("made", "payload"), [*((made, PAYLOAD) for made in REPORTS), *((whole, text) for text in IN_MARKDOWN)]
)
def test_report_in_markdown(made: Callable[[Filler], Report], payload: str) -> None:
    """No string of a report makes an element of what GitHub shows of its Markdown."""

    def draw(filler: Filler) -> str:
        report = made(filler)
        return shown(markdown.render(report, sources=sources(filler, report)))

    assert all(check(draw, payload, variant) > 100 for variant in (VARIANTS if payload == PAYLOAD else VARIANTS[:2]))


@pytest.mark.parametrize("payload", (PAYLOAD, *IN_MARKDOWN))
def test_other_markdown(payload: str) -> None:
    """The same of comparisons and of steps."""
    for variant in VARIANTS:
        assert check(lambda f: shown(compare_text.render_markdown(f.fill(CompareReport))), payload, variant) > 5
        assert check(lambda f: shown(step_text.markdown([f.fill(StepDetail)])), payload, variant) > 5


def shown(text: str) -> str:
    """Markdown as HTML; what is HTML in it already stays so."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
