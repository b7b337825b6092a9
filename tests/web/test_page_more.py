"""The flame graph, code, memory and compare pages in a real browser: what is clicked stands in the address, and back
leads out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.web.browser import CHROMIUM, FLAGS, Tab, tab_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.web.recorded import Recorded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]
Pair = tuple["Recorded", "Recorded"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def tab(chromium: Browser, url: str) -> Iterator[Tab]:
    """A tab in which nothing goes wrong."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    found = tab_of(context, url)
    yield found
    assert found.problems == []
    context.close()


def gone(tab: Tab, part: str) -> None:
    """Wait until the address has lost a part of its state."""
    tab.page.wait_for_url(lambda url: part not in url)


def test_flame_graph(tab: Tab, pair: Pair) -> None:
    """Event, search with its share, zoom by mouse and keyboard, the other way around; what has no name is said."""
    page = tab.page
    tab.open(f"/sessions/{pair[0].key}")
    page.get_by_role("link", name="Flame graph").click()
    page.wait_for_url("**/flame")
    page.locator(".flame canvas").wait_for()
    page.get_by_role("combobox", name="Event").select_option("cpu")
    page.wait_for_url("**/flame?event=cpu")
    page.get_by_text("20 % end in an unnamed frame").wait_for()
    page.get_by_label("Search").fill("malloc")
    page.get_by_text("1 match, 13 % of the total").wait_for()
    assert "find=malloc" in tab.query()
    graph = page.get_by_role("application")
    graph.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        graph.press(key)
    page.locator(".now", has_text="[libz.so.1] 20 %").wait_for()
    graph.press("Enter")
    page.wait_for_url("**&at=*")
    page.get_by_role("button", name="Show all").click()
    gone(tab, "at=")
    canvas = page.locator(".flame canvas")
    canvas.click(position={"x": 40, "y": 18 * 3 + 9})
    page.wait_for_url("**&at=*")
    page.locator(".now", has_text="dnnl::matmul 67 %").wait_for()
    page.mouse.move(5, 5)
    page.go_back()
    gone(tab, "at=")
    page.locator(".now", has_text="all 100 %").wait_for()
    page.get_by_role("button", name="Innermost first").click()
    page.wait_for_url("**&invert=1")
    canvas.hover(position={"x": 40, "y": 18 + 9})
    page.locator(".now", has_text="dnnl::matmul 67 %").wait_for()
    assert page.get_by_role("row", name=re.compile("malloc")).inner_text().split()[1:3] == ["13", "%"]


def test_code(tab: Tab, recorded: Recorded) -> None:
    """Lines with their cost; a finding's mark leads to its evidence, and back to the lines."""
    page = tab.page
    tab.open(f"/sessions/{recorded.key}")
    page.get_by_role("link", name="Code").click()
    page.wait_for_url("**/code")
    page.locator(".code .hot").first.wait_for()
    assert page.locator(".code .line").count() == 80
    assert page.locator(".code .hot").count() == 5 + 1  # the callback's lines, and the loop's in a general finding
    line = page.locator("#line-33")
    assert "line_33 = 33" in line.inner_text()
    assert "100 %" in line.inner_text()
    mark = page.locator(".code .mark")
    assert mark.count() == 2
    mark.first.click()
    page.wait_for_url("**?finding=1")
    page.get_by_role("heading", name="Evidence").wait_for()
    page.go_back()
    page.locator(".code .hot").first.wait_for()
    tab.open(f"/sessions/{recorded.key}/code?file=/job/train.py&line=70")
    page.locator("#line-70.chosen").wait_for()
    assert page.locator("#line-70").evaluate("e => e.getBoundingClientRect().top < innerHeight")


def test_memory(tab: Tab, pair: Pair) -> None:
    """Every region as a strip, the sentences of the terminal, growth as a chart."""
    page = tab.page
    tab.open(f"/sessions/{pair[0].key}")
    page.get_by_role("link", name="Memory").click()
    page.wait_for_url("**/memory")
    page.get_by_text("padded: 9 anonymous mappings").wait_for()
    assert page.locator(".strip").count() >= 1
    titles = page.locator(".chart figcaption b").all_inner_texts()
    assert {"Address space", "Mappings"} <= set(titles)


def test_no_look_at_memory(tab: Tab, recorded: Recorded) -> None:
    """It says so, and what to do."""
    tab.open(f"/sessions/{recorded.key}/memory")
    tab.page.get_by_text("No look at an address space").wait_for()


def test_compare(tab: Tab, pair: Pair) -> None:
    """Chosen by hand: numbers, the finding that is gone, the function that changed; swapped by a button."""
    page = tab.page
    before, after = (one.key for one in pair)
    tab.open("/")
    page.get_by_role("link", name="Compare two sessions").click()
    page.wait_for_url("**/compare")
    page.get_by_role("combobox", name="Before").select_option(before)
    page.get_by_role("combobox", name="After").select_option(after)
    page.wait_for_url(f"**/compare?before={before}&after={after}")
    row = page.get_by_role("row", name=re.compile("^callbacks"))
    row.wait_for()
    assert row.inner_text().split("\t")[1:] == ["7 ms", "2 ms", "\u221271 %"]
    page.get_by_role("combobox", name="Event").select_option("python")
    page.get_by_role("row", name=re.compile("^draw")).wait_for()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url(f"**/compare?before={after}&after={before}**")
    page.get_by_role("row", name=re.compile("^callbacks")).get_by_text("+250 %").wait_for()
    page.go_back()
    page.wait_for_url(f"**/compare?before={before}&after={after}**")
    page.get_by_role("row", name=re.compile("^callbacks")).get_by_text("71 %").wait_for()
