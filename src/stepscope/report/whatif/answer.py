"""The answer of an experiment, whatever kind it was: a sentence for its trials, its way, or its curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.whatif import curve_text as whatif_curve_text
from stepscope.report.whatif import text as whatif_text
from stepscope.report.whatif import way_text as whatif_way_text

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfReport


def answer(report: WhatIfReport) -> str:
    """The answer in a sentence, or one for each part."""
    if report.way is not None:
        return whatif_way_text.conclusion(report, report.way)
    curves = [f"{curve.name}: {whatif_curve_text.conclusion(curve)}" for curve in report.curves]
    if not curves:
        return whatif_text.conclusion(report)
    return " ".join([f"{whatif_text.conclusion(report)}.", *curves] if report.results else curves)
