"""Remedies for input that is drawn at random: if it were cached, every later pass would repeat the same draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.report.finding import Remedy

if TYPE_CHECKING:
    from stepscope.derive.python.random_draws import Draw

IF_THE_SAME = "if its output is the same every time"
"""Nothing that draws was seen; code of other files may."""


def keep_the_rest(draw: Draw) -> Remedy:
    """Instead of a cache behind a function that draws."""
    at = f" in line {draw.line}" if draw.line else ""
    return Remedy(
        id="keep-what-is-not-drawn",
        text=f"cache only the work before the random op ({draw.name}{at}): random output must not be cached or written "
        "to files. Put reading and decoding in their own map, then cache(), then a map with the random op",
        safety="review",
    )
