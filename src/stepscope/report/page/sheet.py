"""The style sheet of pages that stand alone, and the colours of the step's components in it."""

from __future__ import annotations

from functools import cache
from importlib import resources

from stepscope.model.report.components import COMPONENTS

BRIGHT, DARK = "#ffffff", "#0d1013"
"""What is written on a colour."""
MIN_CONTRAST = 4.5
"""Of text (WCAG 2.2, 1.4.3): what is bright is written where its contrast is no less."""
CHANNEL_OFFSET, CHANNEL_POWER = 0.055, 2.4
LINEAR_BELOW, LINEAR_BY = 0.04045, 12.92
WEIGHTS = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue in the relative luminance (WCAG 2.2)."""


@cache
def base() -> str:
    """The style of every page; it colours no component."""
    return resources.files("stepscope.report").joinpath("report.css").read_text(encoding="utf-8")


@cache
def components() -> str:
    """Colours of components: a variable ``--NAME``, a class ``c-NAME`` to fill with, ``on-c-NAME`` to write on it."""
    light = "".join(f" --{name}: {about.light};" for name, about in COMPONENTS.items())
    dark = "".join(f" --{name}: {about.dark};" for name, about in COMPONENTS.items())
    fills = "".join(f".c-{name} {{ fill: var(--{name}); }}\n" for name in COMPONENTS)
    inks = "".join(f"{_ink(name, about.light)}\n" for name, about in COMPONENTS.items())
    dark_inks = "".join(f"  {_ink(name, about.dark)}\n" for name, about in COMPONENTS.items())
    media = "@media screen and (prefers-color-scheme: dark)"
    return f":root {{{light} }}\n{fills}{inks}{media} {{\n  :root {{{dark} }}\n{dark_inks}}}\n"


def _ink(name: str, colour: str) -> str:
    return f".bar text.on-c-{name} {{ fill: {BRIGHT if contrast(BRIGHT, colour) >= MIN_CONTRAST else DARK}; }}"


def contrast(one: str, other: str) -> float:
    """Contrast of two colours ``#rrggbb``, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (
        c / LINEAR_BY if c <= LINEAR_BELOW else ((c + CHANNEL_OFFSET) / (1 + CHANNEL_OFFSET)) ** CHANNEL_POWER
        for c in channels
    )
    return sum(weight * value for weight, value in zip(WEIGHTS, linear, strict=True))
