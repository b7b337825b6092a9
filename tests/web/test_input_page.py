"""The Input page in a real browser: the report's own tree, reach and findings, at every width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, Tab, tab_of

from stepscope.model.api.browsing import InputShown
from stepscope.model.report.report import Report
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.web.recorded import Recorded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]


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


def test_the_page_shows_the_tree_of_the_report(tab: Tab, starving: Recorded) -> None:
    """The stage to mend, every stage's own time, and the findings, which open in place; lines lead to the code."""
    report = msgspec.json.decode((starving.path / "report.json").read_bytes(), type=Report)
    assert report.input_tree is not None
    page = tab.page
    tab.open(f"/sessions/{starving.key}")
    page.get_by_role("link", name="Input").click()
    page.wait_for_url("**/input")
    rows = page.locator(".tree tbody tr")
    rows.first.wait_for()
    assert page.locator(".answer").inner_text()[1:-1] == report.input_tree.text[1:]
    for row, stage in zip(rows.all(), report.input_tree.stages, strict=True):
        said = row.inner_text().replace("µ", "u")
        assert stage.name in said
        assert format_ns(stage.batch_ns) in said
        assert ("mend this first" in said) is stage.mend
    page.get_by_role("button", name="INP001").click()
    page.wait_for_url("**finding=*")
    page.get_by_role("heading", name="Evidence").wait_for()
    page.locator(".tree").get_by_role("link", name="train.py:61").click()
    page.locator("#line-61.chosen").wait_for()


@pytest.mark.parametrize("width", [1440, 1024, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read_aloud(tab: Tab, starving: Recorded, width: int, scheme: str) -> None:
    """A name of 225 letters widens nothing; nothing serious in axe."""
    page = tab.page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    tab.open(f"/sessions/{starving.key}/input")
    page.locator(".tree tbody tr").first.wait_for()
    assert page.evaluate(FITS) <= 0
    assert page.evaluate(NAMELESS) == []
    page.evaluate(AXE.read_text())
    assert page.evaluate(SERIOUS) == []


def test_without_input_it_says_so(tab: Tab, recorded: Recorded) -> None:
    """A session without a pipeline has nothing to mend here."""
    tab.open(f"/sessions/{recorded.key}/input")
    tab.page.get_by_text("No input pipeline was seen").wait_for()
    assert InputShown.__struct_fields__[0] == "tree"
