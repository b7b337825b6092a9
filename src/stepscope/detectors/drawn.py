"""Remedies for input that is drawn at random: what is kept of it would be the same in each pass ever after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.finding import Remedy

if TYPE_CHECKING:
    from stepscope.derive.python.random_draws import Draw

IF_THE_SAME = "where it gives the same every time"
"""Nothing that draws was seen; code of other files may."""


def keep_the_rest(draw: Draw) -> Remedy:
    """Instead of a cache behind a function that draws."""
    at = f" in line {draw.line}" if draw.line else ""
    return Remedy(
        id="keep-what-is-not-drawn",
        text=f"keep only what comes before the draw: it draws at random ({draw.name}{at}), so what it gives is not "
        "to be cached or written to files; a map of its own for reading and decoding, cache(), then the draw",
        safety="review",
    )
