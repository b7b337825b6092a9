"""The page in a real browser, offline, at two widths, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.report.browser import CHROMIUM, CONTRAST, FLAGS, Tab

from stepscope.report import html

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from playwright.sync_api import Browser

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


@pytest.fixture(scope="module")
def pages(samples: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each sample."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, build in samples.SAMPLES.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(html.render(build(), sources={"/x/train.py": samples.SOURCE}), encoding="utf-8")
    return made


@pytest.fixture(params=[(1440, "light"), (800, "dark"), (1440, "dark"), (800, "light")], ids=lambda p: f"{p[0]}-{p[1]}")
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """An offline tab that collects what goes wrong in it."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    tab = Tab(context.new_page())
    tab.page.on("console", lambda message: tab.problems.append(message.text))
    tab.page.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.page.on("requestfailed", lambda request: tab.problems.append(request.url))
    tab.page.on("dialog", lambda dialog: tab.problems.append(dialog.message))
    yield tab
    context.close()


def test_opens_clean(tab: Tab, pages: dict[str, Path]) -> None:
    """Every sample opens without a message, fits the window, and hides no text behind its neighbour."""
    for name, path in pages.items():
        tab.open(path)
        assert tab.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert tab.problems == [], name
        assert tab.page.evaluate(OVERLAPS) == [], name


OVERLAPS = """() => {
  const found = [];
  for (const chart of document.querySelectorAll('.plot > svg, .bar')) {
    const texts = [...chart.querySelectorAll('text')].filter(t => getComputedStyle(t).visibility === 'visible');
    const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 1 && high > 2) found.push(a + ' / ' + b);
    }));
  }
  return found;
}"""


def test_contrast(tab: Tab, pages: dict[str, Path]) -> None:
    """Text stands out from what is behind it: 4.5 to 1 at least (WCAG 2.2, 1.4.3)."""
    for name in ("input-bound", "no-series"):
        tab.open(pages[name])
        assert tab.page.evaluate(CONTRAST) == [], name


def test_pointer_shows_values(tab: Tab, pages: dict[str, Path]) -> None:
    """The pointer over a chart shows its values, without a script."""
    tab.open(pages["input-bound"])
    band = tab.page.locator('svg[aria-labelledby="step-times-title"] .read > g').nth(20)
    label = band.locator("text")
    assert label.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    band.locator("rect").hover()
    assert label.evaluate("e => getComputedStyle(e).visibility") == "visible"
    assert "median" in (label.text_content() or "")


def test_values_stand_clear_of_the_unit(tab: Tab, pages: dict[str, Path]) -> None:
    """The values under the pointer do not cover the unit of the axis."""
    tab.open(pages["hostile"])
    for chart in tab.page.locator(".plot > svg:has(.read)").all():
        chart.locator(".read > g").nth(40).locator("rect").hover()
        assert tab.page.evaluate(OVERLAPS) == []


def test_keyboard(tab: Tab, pages: dict[str, Path]) -> None:
    """The keyboard reaches the skip link first, then the sections, then the sources."""
    tab.open(pages["input-bound"])
    seen = []
    for _ in range(12):
        tab.page.keyboard.press("Tab")
        seen.append(tab.page.evaluate("() => document.activeElement.textContent.trim().slice(0, 24)"))
    assert seen[0] == "Skip to the report"
    assert seen[1:9] == [
        "The mean step",
        "Findings",
        "Step times",
        "Resources",
        "Pipeline stages",
        "Tasks",
        "Checks",
        "About this run",
    ]
    assert tab.page.evaluate("() => document.activeElement.tagName") == "PRE"


def test_prints(browser: Browser, pages: dict[str, Path]) -> None:
    """The page prints, without its navigation, on a white ground."""
    page = browser.new_page()
    page.goto(pages["input-bound"].as_uri())
    page.emulate_media(media="print")
    assert page.locator("nav").evaluate("e => getComputedStyle(e).display") == "none"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
