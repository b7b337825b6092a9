"""Colours of kinds and changes for a standalone picture; the page takes the same ones from its style sheet."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_COLOUR = re.compile(r"--f-(?P<name>[a-z-]+): (?P<value>#[0-9a-f]{6})")


@cache
def _themes() -> tuple[dict[str, str], dict[str, str]]:
    """Names and colours, light and dark, as in the style sheet of the page."""
    text = style()
    light, dark = text.split("@media screen and (prefers-color-scheme: dark)", 1)
    return dict(_COLOUR.findall(light)), dict(_COLOUR.findall(dark))


def style() -> str:
    """The style sheet of the page."""
    return resources.files("stepscope.report.flame").joinpath("flame.css").read_text(encoding="utf-8")


def css() -> str:
    """Rules for a picture: one class for each colour, for light and for dark."""
    light, dark = (
        "".join(f".{name}{{fill:{value}}}" for name, value in theme.items()) + f"text{{fill:{theme['ink']}}}{extra}"
        for theme, extra in zip(_themes(), (".page{fill:#fff}", ".page{fill:#171b21}"), strict=True)
    )
    common = (
        "text{pointer-events:none}.head{font-weight:bold}.nameless{fill-opacity:.55}g:hover rect{stroke:currentColor}"
    )
    return f"{common}{light}@media(prefers-color-scheme:dark){{{dark}}}"
