"""The page in a real browser, over a session at rest and over a job that runs."""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import PATIENCE_S, TOKEN
from .recorded import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

    from .recorded import Recorded

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
PATIENCE_MS = 1000 * PATIENCE_S

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]


@dataclass(frozen=True)
class Tab:
    """A page of the browser, and what went wrong in it."""

    page: Page
    url: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to an address of the server."""
        self.page.goto(self.url + path)

    def query(self) -> str:
        """What of the state stands in the address."""
        return self.page.url.partition("?")[2]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


def tab_of(context: BrowserContext, url: str) -> Tab:
    """A tab that has come in by the printed address, and collects what goes wrong."""
    context.set_default_timeout(PATIENCE_MS)
    tab = Tab(context.new_page(), url)
    tab.page.on("console", lambda message: tab.problems.append(message.text))
    tab.page.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.page.on("dialog", lambda dialog: tab.problems.append(dialog.message))
    tab.page.on("request", lambda request: tab.problems.extend(elsewhere(request.url, url)))
    tab.open(f"/?token={TOKEN}")
    return tab


def elsewhere(asked: str, url: str) -> list[str]:
    """An address that is not the server's, if it is none."""
    return [] if asked.startswith((url, "data:")) else [asked]


@pytest.fixture(params=[(1440, "light"), (800, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def tab(browser: Browser, url: str, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """At two widths, light and dark."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    yield tab_of(context, url)
    context.close()


AXE = files(pytest.importorskip("axe_playwright_python")) / "axe.min.js"
"""Checks pages for people who do not see them, or use no mouse."""
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((fault) => fault.impact === "serious" || fault.impact === "critical")
  .map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).slice(0, 3).join(" ")}`)"""
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
FITS = "() => document.documentElement.scrollWidth - innerWidth"
NAMELESS = """() => [...document.querySelectorAll('a, button, input, select')].filter(e =>
  !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"""


def test_a_session_at_rest(tab: Tab, recorded: Recorded) -> None:
    """From the hub to the evidence, its lines and back; every state has an address; nothing is complained of."""
    page = tab.page
    assert page.url == f"{tab.url}/"
    page.get_by_label("Search").fill("train.py slow")
    page.wait_for_url("**/?q=train.py+slow")
    page.get_by_role("link", name="slow", exact=True).click()
    page.wait_for_url(f"**/sessions/{recorded.key}")
    card = page.get_by_role("button", name=re.compile("HST004"))
    assert card.get_attribute("aria-expanded") == "false"
    card.press("Enter")
    page.get_by_role("heading", name="Evidence").wait_for()
    assert tab.query() == "finding=1"
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


@pytest.mark.tf
@pytest.mark.slow
def test_trace_on_a_task_of_a_training(browser: Browser, url: str, training: int) -> None:
    """The hub lists the training; Trace on its task brings a new capture, and the page is never loaded again."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = tab_of(context, url)
    page = tab.page
    row = page.get_by_role("row", name=re.compile(f"long_fit.py .* {training} "))
    row.get_by_role("link").click()
    page.get_by_role("link", name="Tasks").click()
    page.evaluate("() => { window.sameLoad = true; }")
    page.get_by_role("button", name=re.compile("Trace train")).click()
    page.locator(".capture-done").wait_for()
    assert "steps" in page.locator(".capture-done").inner_text()
    assert page.evaluate("() => window.sameLoad") is True
    assert Path(f"/proc/{training}").exists()
    assert tab.problems == []
    context.close()
