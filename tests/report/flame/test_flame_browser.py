"""The flame graph's page in a real browser, offline: zoom, search, invert, threads, time; no message, no dialog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.report.browser import CHROMIUM, CONTRAST, FLAGS, Tab

from stepscope.report.flame import page
from stepscope.report.flame.graph import ComparedProfiles, Graph

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
    pytest.mark.timeout(180),
]
ROW = 18
READY = "() => document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(
    shown: Graph, pair: Callable[..., ComparedProfiles], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A page of one profile and one of a difference."""
    folder = tmp_path_factory.mktemp("flame")
    made = {"one": page.render(shown), "two": page.render_compared(pair(differs=True))}
    for name, html in made.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(params=[(1440, "light"), (700, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
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
    assert tab.problems == []
    context.close()


def opened(tab: Tab, path: Path) -> Tab:
    tab.open(path)
    tab.page.wait_for_function(READY, timeout=60_000)
    return tab


def now(tab: Tab) -> str:
    return tab.page.inner_text("#now")


def zoomed(tab: Tab) -> str | None:
    return tab.page.get_attribute("#flame", "data-zoom")


def keys(tab: Tab, *pressed: str) -> str:
    """Press keys on the graph; what is said of the box under the cursor."""
    tab.page.focus("#flame")
    for key in pressed:
        tab.page.keyboard.press(key)
    return now(tab)


def test_opens_clean(tab: Tab, files: dict[str, Path]) -> None:
    """No message, no overflow, text that can be read, something drawn."""
    for path in files.values():
        opened(tab, path)
        assert tab.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        assert tab.page.evaluate(CONTRAST) == []
        colours = tab.page.evaluate(
            "() => { const c = document.getElementById('flame'), x = c.getContext('2d');"
            "const d = x.getImageData(0, 0, c.width, c.height).data; const seen = new Set();"
            "for (let i = 0; i < d.length; i += 4) seen.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]);"
            "return seen.size; }"
        )
        assert colours > 5


def test_zoom_by_mouse_and_back(tab: Tab, files: dict[str, Path]) -> None:
    """A click zooms to the box, its callers stay above it; Escape shows all again."""
    opened(tab, files["one"])
    assert zoomed(tab) == "all"
    tab.page.click("#flame", position={"x": 30, "y": 2 * ROW + 9})
    assert zoomed(tab) == "step"
    wide = tab.page.evaluate("() => document.getElementById('flame').clientWidth")
    tab.page.mouse.move(0, 0)
    tab.page.hover("#flame", position={"x": wide - 5, "y": 1 * ROW + 9})
    assert now(tab).startswith("<module>")
    tab.page.click("#zoom-out")
    assert zoomed(tab) == "all"


def test_keyboard_goes_everywhere(tab: Tab, files: dict[str, Path]) -> None:
    """Down to callees, up to callers, sideways; Enter zooms, Escape shows all; screen readers are told."""
    opened(tab, files["one"])
    assert keys(tab, "ArrowDown").startswith("<module>")
    assert keys(tab, "ArrowDown").startswith("step")
    assert keys(tab, "ArrowDown").startswith("tensorflow::Executor::Run(long)")
    assert "60 %" in now(tab)
    assert "step" not in keys(tab, "ArrowRight")
    assert "alert" in now(tab)
    assert keys(tab, "ArrowLeft").startswith("tensorflow::Executor")
    keys(tab, "Enter")
    assert zoomed(tab) == "tensorflow::Executor::Run(long)"
    assert "Depth 3" in (tab.page.text_content("#said") or "")
    keys(tab, "Backspace")
    assert zoomed(tab) == "step"
    keys(tab, "Escape")
    assert zoomed(tab) == "all"


def test_search_states_the_share(tab: Tab, files: dict[str, Path]) -> None:
    """Of samples with a match anywhere on the stack, each once; also from the table and when stacks are turned."""
    opened(tab, files["one"])
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("executor")
    assert tab.page.inner_text("#matched") == "60 % in matching stacks"
    tab.page.click("#invert")
    assert tab.page.inner_text("#matched") == "60 % in matching stacks"
    tab.page.fill("#search", "no such function")
    assert tab.page.inner_text("#matched") == "no match"
    tab.page.click("#functions button >> nth=0")
    assert tab.page.inner_text("#matched") == "60 % in matching stacks"
    assert keys(tab, "n").startswith("tensorflow::Executor")


def test_invert_begins_with_the_innermost_frame(tab: Tab, files: dict[str, Path]) -> None:
    """Turned around, the first row is self weight, and callers stand below."""
    opened(tab, files["one"])
    tab.page.keyboard.press("i")
    assert tab.page.get_attribute("#invert", "aria-pressed") == "true"
    said = keys(tab, "ArrowDown")
    assert said.startswith("tensorflow::Executor::Run(long)")
    assert "40 %" in said
    assert keys(tab, "ArrowDown").startswith("step")


def test_lines_and_threads(tab: Tab, files: dict[str, Path]) -> None:
    """Lines split a function; threads one by one, or one alone."""
    opened(tab, files["one"])
    tab.page.click("#lines")
    assert keys(tab, "ArrowDown", "ArrowDown").startswith("step:41")
    assert keys(tab, "ArrowRight").startswith("step:42")
    tab.page.click("#lines")
    tab.page.select_option("#threads", "-2")
    assert keys(tab, "ArrowDown").startswith("MainThread 7")
    assert "60 %" in now(tab)
    tab.page.select_option("#threads", "1")
    assert "400 ms" in keys(tab, "Home")
    assert "[truncated]" in keys(tab, "ArrowDown") + keys(tab, "ArrowRight")


def test_a_range_of_time_is_drawn_alone(tab: Tab, files: dict[str, Path]) -> None:
    """Dragging over the heat map takes whole seconds; so do the arrow keys; all of it comes back."""
    opened(tab, files["one"])
    tab.page.locator("#heat").scroll_into_view_if_needed()
    area = tab.page.locator("#heat").bounding_box()
    assert area is not None
    column = min(24.0, area["width"] / 10)
    tab.page.mouse.move(area["x"] + 2.5 * column, area["y"] + 20)
    tab.page.mouse.down()
    tab.page.mouse.move(area["x"] + 4.5 * column, area["y"] + 40)
    tab.page.mouse.up()
    assert tab.page.inner_text("#chosen") == "second 2 to 5 is drawn"
    assert now(tab) == "all \u00b7 100 %, 300 ms"
    tab.page.click("#whole-time")
    assert now(tab) == "all \u00b7 100 %, 1 s"
    tab.page.focus("#heat")
    for key in ("ArrowRight", "Enter"):
        tab.page.keyboard.press(key)
    assert tab.page.inner_text("#chosen") == "second 1 to 2 is drawn"
    tab.page.keyboard.press("Escape")
    assert tab.page.inner_text("#chosen") == "the whole time is drawn"


def test_a_difference_says_what_is_noise(tab: Tab, files: dict[str, Path]) -> None:
    """The tower that is gone has no width in the second profile, and is seen with the widths of the first."""
    opened(tab, files["two"])
    tab.page.fill("#search", "clear_page")
    tab.page.click("#first")
    assert keys(tab, "n").startswith("clear_page")
    assert "(gone)" in now(tab)
    assert "beyond sampling noise" in now(tab)
    tab.page.fill("#search", "matmul")
    assert "within sampling noise" in keys(tab, "n")
    tab.page.keyboard.press("i")
    assert tab.page.get_attribute("#invert", "aria-pressed") == "true"


def test_without_a_script_there_is_a_picture(browser: Browser, files: dict[str, Path]) -> None:
    """The page can be read where scripts are off."""
    context = browser.new_context(java_script_enabled=False, offline=True)
    tab = Tab(context.new_page())
    tab.open(files["one"])
    box = tab.page.locator("noscript img").bounding_box()
    assert box is not None
    assert box["height"] > 50
    context.close()
