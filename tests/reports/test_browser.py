"""The page in a real browser, offline, at two widths, light and dark."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.reports import html

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(samples: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each sample."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, build in samples.SAMPLES.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(html.render(build(), sources={"/x/train.py": samples.SOURCE}), encoding="utf-8")
    return made


@pytest.fixture(params=[(1440, "light"), (800, "dark"), (1440, "dark"), (800, "light")], ids=lambda p: f"{p[0]}-{p[1]}")
def tab(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """An offline tab that collects what goes wrong in it."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("requestfailed", lambda request: page.problems.append(request.url))
    page.on("dialog", lambda dialog: page.problems.append(dialog.message))
    yield page
    context.close()


def test_opens_clean(tab: Any, pages: dict[str, Path]) -> None:
    """Every sample opens without a message, fits the window, and hides no text behind its neighbour."""
    for name, path in pages.items():
        tab.goto(path.as_uri())
        assert tab.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert tab.problems == [], name
        assert tab.evaluate(OVERLAPS) == [], name


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


def test_contrast(tab: Any, pages: dict[str, Path]) -> None:
    """Text stands out from what is behind it: 4.5 to 1 at least (WCAG 2.2, 1.4.3)."""
    for name in ("input-bound", "no-series"):
        tab.goto(pages[name].as_uri())
        assert tab.evaluate(CONTRAST) == [], name


CONTRAST = """() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  ).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = e => {
    for (let n = e; n; n = n.parentElement) {
      const fill = n.tagName === 'svg' && n.querySelector(':scope > rect.part');
      if (fill && getComputedStyle(fill).fill.startsWith('rgb')) return parse(getComputedStyle(fill).fill);
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.tagName === 'title' || e.tagName === 'desc' || getComputedStyle(e).visibility === 'hidden') continue;
    const style = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    const [hi, lo] = [lum(ink), lum(ground(e))].sort((a, b) => b - a);
    const ratio = (hi + 0.05) / (lo + 0.05);
    if (ratio < 4.5) found.push(e.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return found;
}"""


def test_pointer_shows_values(tab: Any, pages: dict[str, Path]) -> None:
    """The pointer over a chart shows its values, without a script."""
    tab.goto(pages["input-bound"].as_uri())
    band = tab.locator('svg[aria-labelledby="step-times-title"] .read > g').nth(20)
    label = band.locator("text")
    assert label.evaluate("e => getComputedStyle(e).visibility") == "hidden"
    band.locator("rect").hover()
    assert label.evaluate("e => getComputedStyle(e).visibility") == "visible"
    assert "median" in label.text_content()


def test_keyboard(tab: Any, pages: dict[str, Path]) -> None:
    """The keyboard reaches the skip link first, then the sections, then the sources."""
    tab.goto(pages["input-bound"].as_uri())
    seen = []
    for _ in range(11):
        tab.keyboard.press("Tab")
        seen.append(tab.evaluate("() => document.activeElement.textContent.trim().slice(0, 24)"))
    assert seen[0] == "Skip to the report"
    assert seen[1:8] == [
        "The mean step",
        "Findings",
        "Step times",
        "Resources",
        "Pipeline stages",
        "What was checked",
        "About this run",
    ]
    assert tab.evaluate("() => document.activeElement.tagName") == "PRE"


def test_prints(browser: Any, pages: dict[str, Path]) -> None:
    """The page prints, without its navigation, on a white ground."""
    page = browser.new_page()
    page.goto(pages["input-bound"].as_uri())
    page.emulate_media(media="print")
    assert page.locator("nav").evaluate("e => getComputedStyle(e).display") == "none"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
