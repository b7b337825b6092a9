"""Tabs of a real browser on the server's page, and what is asked of every page in them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import pytest
from tests.web.conftest import PATIENCE_S, TOKEN

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
PATIENCE_MS = 1000 * PATIENCE_S
Layout = tuple[int, Literal["light", "dark"]]
LAYOUTS: tuple[Layout, ...] = ((1440, "light"), (800, "dark"))
"""Widths in pixels and colour schemes; a tab has the first unless a test asks for all of them."""
in_every_layout = pytest.mark.parametrize("tab", LAYOUTS, indirect=True, ids=lambda one: f"{one[0]}-{one[1]}")
"""Marks tests of what a layout may break: what fits, what can be reached, what is read aloud."""


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


def layout(request: pytest.FixtureRequest) -> Layout:
    """The layout that the test of a tab asks for."""
    found: Layout = getattr(request, "param", LAYOUTS[0])
    return found


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


AXE = files(pytest.importorskip("axe_playwright_python")) / "axe.min.js"
"""Checks pages for people who do not see them, or use no mouse."""
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
  .filter((fault) => fault.impact === "serious" || fault.impact === "critical")
  .map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).slice(0, 3).join(" ")}`)"""
FITS = "() => document.documentElement.scrollWidth - innerWidth"
NAMELESS = """() => [...document.querySelectorAll('a, button, input, select')].filter(e =>
  !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"""
