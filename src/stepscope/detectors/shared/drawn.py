"""Remedies for input that is drawn at random: if it were cached, every later pass would repeat the same draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.derive.python.random_draws import Draw

IF_THE_SAME = "if its output is the same every time"
"""No random op was seen; code of other files may contain one."""


def keeping(draw: Draw | None, whole: Remedy) -> tuple[Remedy, ...]:
    """``whole``, which keeps a function's output; of one with random ops what replaces it, if it works before them."""
    if draw is None:
        return (whole,)
    if draw.after_work is False:
        return ()
    at = f" in line {draw.line}" if draw.line else ""
    work = "the work" if draw.after_work else "what work there is"
    remedy = Remedy(
        id="keep-what-is-not-drawn",
        text=f"cache only {work} before the random op ({draw.name}{at}): random output must not be cached or written "
        "to files. Put that work in its own map, then cache(), then a map with the random op",
        safety="review",
    )
    return (remedy,)
