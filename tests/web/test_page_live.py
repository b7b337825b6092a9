"""Every page of a training that runs, clicked through in a real browser: what Trace brings appears, axe finds nothing
serious, nothing is complained of, back leads the whole way, and the page is loaded once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, Tab, tab_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.tf,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]
PAGES = {
    "Overview": ".chart canvas",
    "Tasks": "tbody tr",
    "Timeline": ".tl-canvas[data-state=drawn]",
    "Flame graph": "main h2, main .quiet",
    "Code": "main h2, main .quiet",
    "Memory": "main h2, main .quiet",
}
"""Pages of a session by their links, and what stands on each when it is there."""
HERE = "nav a[aria-current=page]"


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
    """Nothing is complained of. All layouts: ``test_page``, of a finished session."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    found = tab_of(context, url)
    yield found
    assert found.problems == []
    context.close()


def sound(tab: Tab) -> None:
    """Nothing that axe calls serious; nothing overflows, nothing is without a name."""
    assert tab.page.evaluate(FITS) <= 0
    assert tab.page.evaluate(NAMELESS) == []
    tab.page.evaluate(AXE.read_text())
    assert tab.page.evaluate(SERIOUS) == []


def test_every_page_of_a_training(tab: Tab, training: int) -> None:
    """From the hub through all pages, a capture on the way, and back through the same pages."""
    page = tab.page
    sound(tab)
    page.evaluate("() => { window.sameLoad = true; }")
    row = page.get_by_role("row").filter(has=page.locator("td", has_text=re.compile(rf"^{training}$")))
    row.get_by_role("link", name="long_fit.py").click()
    for name, there in PAGES.items():
        page.get_by_role("link", name=name, exact=True).click()
        page.locator(HERE, has_text=name).wait_for()
        page.locator(there).first.wait_for()
        sound(tab)
        if name == "Tasks":
            done = page.locator(".capture-done")
            earlier = done.count()  # captures that other tests asked of the same training
            page.get_by_role("button", name=re.compile("Trace train")).click()
            done.nth(earlier).wait_for()
            sound(tab)
        if name == "Timeline":
            page.locator(".tl-group", has_text="/host:CPU").first.wait_for()
            page.get_by_label("Find").fill("matmul")
            page.locator(".tl-hits button").first.click()
            page.locator("#span-title").wait_for()
            page.locator(".tl-canvas[data-state=drawn]").wait_for()
            sound(tab)
    for name in reversed([*PAGES][:-1]):
        while page.locator(HERE, has_text=name).count() == 0:
            before = page.url
            page.go_back()
            page.wait_for_function("before => location.href !== before", arg=before)
            page.locator(HERE).wait_for()
    page.locator(PAGES["Overview"]).first.wait_for()
    assert page.evaluate("() => window.sameLoad") is True
