"""Slopes, on the page of an experiment: a row for each place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.marked import Html
from stepscope.report.page.tables import code, paragraphs, table
from stepscope.report.whatif import slopes_text as texts

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfReport
    from stepscope.model.slope import WhatIfSlope


def section(report: WhatIfReport) -> Html:
    """The section; "" if no place was delayed."""
    if not report.slopes:
        return Html()
    note = texts.HEAD.removeprefix("slopes: ")
    shown = table(("Place", "Slope", "What it says"), [_row(slope) for slope in report.slopes], numeric=(1,))
    return Html('<div class="card"><p class="note">{}.</p>{}</div>').format(f"{note[0].upper()}{note[1:]}", shown)


def _row(slope: WhatIfSlope) -> Html:
    said = [texts.slope_text(slope), texts.cost_text(slope), texts.how_text(slope)]
    number = Html("none") if slope.why else Html("{:.2f}").format(slope.slope)
    return Html('<th scope="row">{}</th><td class="n">{}</td><td>{}</td>').format(
        code(texts.place_text(slope)), number, paragraphs(text for text in said if text)
    )
