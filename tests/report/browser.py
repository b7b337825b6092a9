"""Tabs of a real browser that show a file, and what is asked of every page in them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

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


@dataclass(frozen=True)
class Tab:
    """A page of the browser, and what went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def open(self, path: Path) -> None:
        """Open a file."""
        self.page.goto(path.as_uri())


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
