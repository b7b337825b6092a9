"""The page in a real browser, over a session at rest and over a job that runs."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, Tab, in_every_layout, layout, tab_of
from tests.web.recorded import PROGRAM

from stepscope.model.report.report import Report
from stepscope.native.kernel import perf
from stepscope.report import ledger_rows
from stepscope.report.blocks import Paragraph
from stepscope.server.browse_sections import NumberedFinding, ReportSection, SectionList
from stepscope.tables.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser
    from tests.web.recorded import Recorded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def tab(browser: Browser, url: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """In one of the layouts."""
    width, scheme = layout(request)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    yield tab_of(context, url)
    context.close()


PAGES = {
    "hub": ("/", "h1"),
    "overview": ("/sessions/{key}?finding=1", ".source .hot"),
    "tasks": ("/sessions/{key}/tasks", "tbody tr"),
    "flame": ("/sessions/{pair}/flame?event=cpu&find=malloc", ".flame canvas"),
    "code": ("/sessions/{key}/code", ".code .hot"),
    "memory": ("/sessions/{pair}/memory", ".strip"),
    "compare": ("/compare?before={pair}&after={key}", "#stacks-title"),
    "timeline": ("/sessions/{key}/timeline", ".tl-canvas[data-state=drawn]"),
}
"""Every page: its address, and what stands on it when it is there."""


def test_a_session_at_rest(tab: Tab, recorded: Recorded) -> None:
    """From the hub to the evidence, its lines and back; every state has an address; nothing is complained of."""
    page = tab.page
    assert page.url == f"{tab.url}/"
    page.get_by_role("link", name=re.compile(r"^\d+ sessions?$")).wait_for()
    page.get_by_label("Search").fill("train.py slow")
    page.wait_for_url("**/?q=train.py+slow")
    page.get_by_role("link", name="slow", exact=True).click()
    page.wait_for_url(f"**/sessions/{recorded.key}")
    card = page.get_by_role("button", name=re.compile("HST004"))
    assert card.get_attribute("aria-expanded") == "false"
    card.press("Enter")
    page.get_by_role("heading", name="Evidence").wait_for()
    assert tab.query() == "finding=1"
    heads = page.locator(".opened h4").all_inner_texts()
    assert heads.index("What to change") < heads.index("Evidence")  # what one looks for comes first
    metrics = page.locator(".opened table td:first-child").all_inner_texts()
    assert metrics[:2] == ["callback share", "callback time per call"]  # as in the report
    hot = page.locator(".source .hot")
    hot.first.wait_for()
    assert "line_30 = 30" in hot.first.inner_text()
    assert "line_30 = 30" in PROGRAM
    lines = [line.bounding_box() for line in page.locator(".source .line").all()]
    tops = [box["y"] for box in lines if box is not None]
    assert len(tops) == 13  # lines 30 to 34, four around them
    assert all(low < high for low, high in itertools.pairwise(tops))
    page.locator(".chart canvas").first.wait_for()
    assert page.locator(".chart").count() >= 3
    assert page.evaluate(FITS) <= 0
    assert page.evaluate(NAMELESS) == []
    page.go_back()
    page.wait_for_url(f"**/sessions/{recorded.key}")
    page.wait_for_function("() => !document.querySelector('.opened')")
    page.go_forward()
    page.get_by_role("heading", name="Evidence").wait_for()
    page.reload()
    page.get_by_role("heading", name="Evidence").wait_for()
    assert tab.problems == []


@in_every_layout
def test_the_overview_holds_what_the_report_holds(tab: Tab, recorded: Recorded) -> None:
    """The whole job with each part's place, every detector with its reason, stages, the distribution of step times."""
    report = msgspec.json.decode((recorded.path / "report.json").read_bytes(), type=Report)
    page = tab.page
    tab.open(f"/sessions/{recorded.key}")
    rows = "section[aria-labelledby={}-title] tbody tr"
    page.locator(rows.format("checked")).first.wait_for(state="attached")
    assert page.locator(rows.format("job")).count() == len(ledger_rows.rows(report.ledger))
    page.locator("section[aria-labelledby=checked-title] summary").click()
    found = page.locator(rows.format("checked"))
    assert found.count() == len(report.checked)
    assert "found" in found.first.inner_text()
    assert page.locator(rows.format("stages")).count() == len(report.stages)
    assert page.locator(rows.format("step")).count() == len(report.anatomy)
    bins = page.locator(".histogram .bins i")
    assert bins.count() == len(report.series["hist_count"])
    assert page.evaluate(FITS) <= 0
    page.evaluate(AXE.read_text())
    assert page.evaluate(SERIOUS) == []
    assert tab.problems == []


def test_evidence_of_one_place_has_one_link(tab: Tab, recorded: Recorded) -> None:
    """Seven values that rest on one capture: one link, at the first. Markup in a text is text."""
    report = msgspec.json.decode((recorded.path / "report.json").read_bytes(), type=Report)
    first = report.findings[0]
    values = tuple(
        Evidence(metric=f"value_{number}", value=number, unit="", refs=("capture:one",)) for number in range(7)
    )
    shown = NumberedFinding(number=1, finding=msgspec.structs.replace(first, evidence=values))
    section = ReportSection(key="any", title="Any", blocks=(shown, Paragraph("<i>markup</i>")))
    listed = SectionList(lines=(), items=(section,))
    tab.page.route(
        "**/api/v1/sessions/*/sections",
        lambda route: route.fulfill(body=msgspec.json.encode(listed), content_type="application/json"),
    )
    tab.open(f"/sessions/{recorded.key}?finding=1")
    tab.page.get_by_role("heading", name="Evidence").wait_for()
    assert tab.page.locator(".opened table tbody tr").count() == len(values)
    assert tab.page.locator(".opened table a").count() == 1
    assert tab.page.get_by_text("<i>markup</i>").count() == 1


def test_a_part_of_the_time(tab: Tab, recorded: Recorded) -> None:
    """A drag over one chart shows that part in all of them, and stands in the address; double click leaves it."""
    page = tab.page
    tab.open(f"/sessions/{recorded.key}")
    over = page.locator(".chart .u-over").first
    over.wait_for()
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    page.mouse.up()
    page.wait_for_url("**?from=*&to=*")
    low, high = (float(part.partition("=")[2]) for part in tab.query().split("&"))
    assert 1.2 < low < 1.8  # a quarter and a half of six seconds
    assert 2.7 < high < 3.3
    page.get_by_role("button", name="Whole run").click()
    page.wait_for_url(f"**/sessions/{recorded.key}")
    assert tab.problems == []


@in_every_layout
def test_tasks_at_rest(tab: Tab, recorded: Recorded) -> None:
    """Every task with its count; sorted and searched by the address; nothing to trace where nothing runs."""
    page = tab.page
    tab.open(f"/sessions/{recorded.key}")
    page.get_by_role("link", name="Tasks").click()
    page.wait_for_url("**/tasks")
    row = page.get_by_role("row", name=re.compile("train_function"))
    row.wait_for()
    assert "300" in row.inner_text()
    page.get_by_role("button", name="Count").click()
    page.wait_for_url("**/tasks?sort=count")
    assert "train_function" in page.locator("tbody tr").first.inner_text()
    page.get_by_label("Find").fill("fit")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert page.get_by_role("button", name=re.compile("Trace")).count() == 0
    assert page.evaluate(FITS) <= 0
    assert page.evaluate(NAMELESS) == []
    assert tab.problems == []


@in_every_layout
@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_a_serious_accessibility_fault(
    tab: Tab, recorded: Recorded, pair: tuple[Recorded, Recorded], name: str
) -> None:
    """Nothing that axe calls serious; nothing overflows, nothing is without a name, nothing is complained of."""
    address, there = PAGES[name]
    tab.open(address.format(key=recorded.key, pair=pair[0].key))
    tab.page.locator(there).first.wait_for()
    assert tab.page.evaluate(FITS) <= 0
    assert tab.page.evaluate(NAMELESS) == []
    tab.page.evaluate(AXE.read_text())
    assert tab.page.evaluate(SERIOUS) == []
    assert tab.problems == []


def test_pages_of_a_session_open_apart(tab: Tab, recorded: Recorded) -> None:
    """Report and flame graph are shown, in their sandbox, without a complaint of the browser."""
    for path, words in (("report?format=html", "HST004"), ("flame", "main")):
        tab.open(f"{recorded.url}/{path}")
        assert words in tab.page.content()
        assert tab.page.evaluate("() => origin") == "null"
    assert tab.problems == []


def test_without_the_token_there_is_nothing(browser: Browser, url: str) -> None:
    """Who does not know the token sees why, and nothing else."""
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(url)
    assert answer is not None
    assert answer.status == 401
    assert "stepscope view" in page.content()
    context.close()


def test_a_session_that_is_gone_leads_back(tab: Tab, recorded: Recorded) -> None:
    """The page of a deleted session, and a page that no session has, name the way back."""
    tab.open("/sessions/0123456789abcdef")
    tab.page.get_by_role("link", name="All sessions and running jobs").click()
    tab.page.wait_for_url(f"{tab.url}/")
    tab.open(f"/sessions/{recorded.key}/nothing")
    tab.page.get_by_role("alert").get_by_role("link", name="Overview").click()
    tab.page.get_by_role("button", name=re.compile("HST004")).wait_for()


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.skipif(not perf.abilities().perf, reason="perf is not installed, or may not sample")
def test_memory_by_stack_of_a_training(browser: Browser, url: str, training: int) -> None:
    """A capture of memory is asked for where flame graphs are, and shown there; Python stacks are offered, too."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = tab_of(context, url)
    page = tab.page
    page.get_by_role("row", name=re.compile(f"long_fit.py .* {training} ")).get_by_role("link").first.click()
    page.get_by_role("link", name="Flame graph").click()
    page.wait_for_url("**/flame")
    kinds = page.get_by_role("combobox", name="Capture")
    kinds.wait_for()
    assert kinds.locator("option").all_inner_texts()[1:] == ["Native stacks", "Python stacks", "Memory by stack"]
    kinds.select_option("memory")
    page.get_by_role("spinbutton", name="Seconds").fill("2")
    page.get_by_role("button", name="Capture now").click()
    page.locator(".ask .capture-done").wait_for()
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**event=memory-growth**")
    page.locator(".health", has_text="memory that came in a capture and was still there at its end").wait_for()
    context.close()


@pytest.mark.tf
@pytest.mark.slow
def test_trace_on_a_task_of_a_training(browser: Browser, url: str, training: int) -> None:
    """The hub lists the training; Trace on its task brings a new capture, and the page is never loaded again."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = tab_of(context, url)
    page = tab.page
    row = page.get_by_role("row", name=re.compile(f"long_fit.py .* {training} "))
    row.get_by_role("link").first.click()
    page.get_by_role("link", name="Tasks").click()
    page.evaluate("() => { window.sameLoad = true; }")
    page.get_by_role("button", name=re.compile("Trace train")).click()
    page.locator(".capture-done").first.wait_for()
    page.get_by_role("link", name="Ops").click()
    page.wait_for_url("**/ops")
    page.get_by_role("spinbutton", name="Steps").fill("3")
    page.get_by_role("button", name="Capture now").click()
    page.locator(".ask .capture-done", has_text="3 steps").wait_for()
    page.get_by_text("in 3 traced steps").or_(page.get_by_text("of op time over all threads")).first.wait_for()
    page.get_by_role("link", name="Tasks").click()
    page.locator(".capture-done").first.wait_for()
    assert "steps" in page.locator(".capture-done").first.inner_text()
    assert page.evaluate("() => window.sameLoad") is True
    assert Path(f"/proc/{training}").exists()
    asked_early = [p for p in tab.problems if "404 (Not Found)" in p]  # /ops answers so until the capture is analysed
    assert [p for p in tab.problems if p not in asked_early] == []
    context.close()
