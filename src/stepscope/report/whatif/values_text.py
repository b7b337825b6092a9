"""What the value trial saw, for people: each claim with its lines, and its time if a trial has taken it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stepscope.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfReport, WhatIfValues

_OPS = 3
"""Names of ops printed for a claim."""
_BASIS = {
    "shapes": "of the work (by shapes, no share of time)",
    "op-times": "of the measured time of all ops",
}


def section(report: WhatIfReport, width: int) -> list[str]:
    """Lines of the section; none if values were not looked at."""
    if report.values is None:
        return []
    return ["", *textwrap.wrap(title(report.values), width), *_claims(report.values, width)]


def title(values: WhatIfValues) -> str:
    """What was looked at, or why nothing was."""
    if values.note:
        return f"values: not possible: {printable(values.note)}"
    same = f" and {values.same_batch_steps} on the same batch" if values.same_batch_steps else ""
    left = f", {values.left_out} more left out" if values.left_out else ""
    return f"values: {values.tensors} tensors in {values.steps} steps{same}{left}"


def _claims(values: WhatIfValues, width: int) -> Iterator[str]:
    if not values.claims and not values.note:
        yield "  nothing that need not be computed"
    for claim in values.claims:
        texts = [
            f"{claim.kind}: {100 * claim.ratio:.0f} % {basis_text(claim)}: {claim.text}",
            *(f"at {_place(place)}" for place in claim.places),
            f"ops: {ops_text(claim)}",
            f"instead: {claim.remedy}",
            _time(claim),
        ]
        for text in texts:
            indent = "  " if text is texts[0] else "      "
            yield from textwrap.wrap(
                printable(text), width, initial_indent=indent, subsequent_indent="      ", break_on_hyphens=False
            )


def basis_text(claim: WhatIfClaim) -> str:
    """What a claim's share is a share of."""
    return _BASIS[claim.basis]


def ops_text(claim: WhatIfClaim) -> str:
    """Names of a claim's ops, a few."""
    return f"{', '.join(claim.ops[:_OPS])}{' ...' if len(claim.ops) > _OPS else ''}"


def line_text(place: WhatIfPlace) -> str:
    """Where a line is."""
    return f"{place.file}:{place.line}" if place.file else "no line of the program"


def _place(place: WhatIfPlace) -> str:
    return f"{line_text(place)} {place.function} ({100 * place.ratio:.0f} %)".replace("  ", " ")


def _time(claim: WhatIfClaim) -> str:
    if not claim.time_ratio:
        return f"not timed: {claim.note}"
    if claim.time_high and claim.time_high >= 1.0:
        return "time: leaving these ops out makes no step faster"
    text = f"time without these ops: {100 * (claim.time_ratio - 1):+.1f} %"
    if claim.time_high:
        text += f" ({100 * (claim.time_low - 1):+.1f} to {100 * (claim.time_high - 1):+.1f})"
    return f"{text}, the most that a way around them can bring"
