"""The graph of a step in a real browser: keys open groups, a search opens what it finds, the timeline leads there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from tests.derive.optrace.opgraph.op_graphs import LONG
from tests.web import graph_sessions
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, tab_of
from tests.web.conftest import viewed

from stepscope.tables.layout import key_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium (make system-deps)")]
DRAWN = "() => document.querySelector('.og-canvas')?.dataset.state === 'drawn'"
SIZES: list[tuple[int, Literal["light", "dark"]]] = [
    (1440, "light"),
    (1440, "dark"),
    (1024, "dark"),
    (800, "light"),
    (800, "dark"),
]


def _chosen(page: Page, title: str) -> None:
    page.locator("#item-title", has_text=re.compile(f"^{title}$")).wait_for()


def test_the_graph_of_a_step(tmp_path_factory: pytest.TempPathFactory) -> None:
    """From the longest box by keys to its ops, to the timeline and back; nothing is too wide, and axe finds nothing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    folder = tmp_path_factory.mktemp("graph")
    session = graph_sessions.stored(folder)
    with viewed([session], folder) as printed, api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        tab = tab_of(browser.new_context(viewport={"width": 1440, "height": 900}), printed.partition("/sessions/")[0])
        page, here = tab.page, f"/sessions/{key_of(session.resolve())}"
        tab.open(f"{here}/graph")
        page.wait_for_function(DRAWN)
        assert "Critical path 1 ms, the whole step" in page.locator(".og-path").inner_text()

        page.get_by_role("button", name="two", exact=True).first.click()
        _chosen(page, "two")
        assert "230 us, 29 % of op time" in page.locator(".tl-beside").inner_text()
        page.locator(".og-stage").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("open="))
        page.wait_for_function("() => document.querySelector('.og-canvas').dataset.boxes > 8")
        page.keyboard.press("ArrowUp")
        _chosen(page, "one")
        page.keyboard.press("l")
        page.wait_for_url(lambda url: "at=n" in url)  # the path goes on with the first op of what was opened
        _chosen(page, "MatMul")
        page.go_back()
        _chosen(page, "one")

        page.keyboard.press("/")
        page.keyboard.type("two matmul")
        page.get_by_text("2 found").wait_for()
        page.keyboard.press("Enter")
        _chosen(page, "MatMul")
        page.keyboard.press("Enter")
        _chosen(page, "two/MatMul")  # of the gradient

        page.get_by_role("link", name="On the timeline").click()
        page.locator("#span-title", has_text="gradient_tape/net/two/MatMul:MatMul").wait_for()
        page.get_by_role("link", name="In the graph").click()
        _chosen(page, "two/MatMul")
        assert page.get_by_role("button", name="Relu", exact=True).count()

        tab.open(f"{here}/graph?show={LONG}/{LONG}:Mul")
        page.locator("#item-title", has_text=LONG).wait_for()
        for width, scheme in SIZES:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(FITS) <= 0
        assert page.evaluate(NAMELESS) == []
        page.evaluate(AXE.read_text())
        assert page.evaluate(SERIOUS) == []
        assert tab.problems == []
        browser.close()
