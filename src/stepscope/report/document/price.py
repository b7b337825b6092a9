"""What samples or steps cost at a price per hour of machine, and what the findings would take off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.section import Asked, Lines, Said, Section, Where

if TYPE_CHECKING:
    from stepscope.model.report.report import Report

HOUR_S = 3_600.0
THOUSAND, MILLION = (1e3, "thousand"), (1e6, "million")
MOST = 3
"""Number of findings whose part is named."""
CENT = 0.01


def lines(report: Report, price: float) -> tuple[str, ...]:
    """The line; none without a price or a rate.

    Args:
        report: the report.
        price: of an hour of the machine, in any currency; 0: not given.
    """
    rate = report.session.throughput
    if price <= 0 or rate is None:
        return ()
    each, what = (rate.samples_per_s, "samples") if rate.samples_per_s else (rate.steps_per_s, "steps")
    if not each:
        return ()
    one = price / HOUR_S / each
    number, name = THOUSAND if one * THOUSAND[0] >= CENT else MILLION
    cost = one * number
    saved = [
        f"finding {i}: {cost * found.cost.ratio:.3g} less ({cost * found.cost.low:.3g}-{cost * found.cost.high:.3g})"
        for i, found in enumerate(words.significant(report), 1)
        if found.exposed_stage != "initialization" and found.cost.ratio > 0
    ]
    return (f"at {price:g} an hour a {name} {what} cost {cost:.3g}", *saved[:MOST])


def _lines(asked: Asked) -> Said:
    yield Lines(label="cost", texts=[lines(asked.report, asked.price)], where=Where.HEAD_END)


SECTION = Section(key="price", lines=_lines)
