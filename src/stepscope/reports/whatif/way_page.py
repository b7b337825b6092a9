"""Parts of an experiment's page: the steps of ``--until-done``, and curves of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports.page import bars
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import code, table
from stepscope.reports.whatif import curve_text as whatif_curve_text
from stepscope.reports.whatif import text as whatif_text
from stepscope.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfCurve, WhatIfPoint, WhatIfReport, WhatIfStep, WhatIfWay


def way(report: WhatIfReport) -> str:
    """Each step with what it keeps, the total, and the lines that make all of it permanent; "" without a way."""
    if report.way is None:
        return ""
    rows = [_step(number, step) for number, step in enumerate(report.way.steps, 1)]
    shown = table(("Step", "Before it", "Kept", "Change", "Also tried"), rows, numeric=(0, 1, 3))
    return f'<div class="card">{shown}{_total(report.way)}{_lasting(report.way)}</div>'


def _step(number: int, step: WhatIfStep) -> str:
    best = next((result for result in step.results if result.remedy == step.winner), None)
    measured = [one for one in step.results if one is not best and one.verdict in whatif_text.MEASURED]
    tried = ", ".join(f"{one.remedy} {whatif_text.change_text(one)}" for one in measured)
    change = whatif_text.change_text(best) if best is not None else ""
    return (
        f'<td class="n">{number}</td><td class="n">{format_ns(step.ns)}</td><td>{code(step.winner) or "nothing"}</td>'
        f'<td class="n">{escape(change)}</td><td>{escape(tried)}</td>'
    )


def _total(shown: WhatIfWay) -> str:
    if shown.total is None or not shown.total.ns:
        return ""
    said = f"All together, in the same rounds as the unchanged job: {format_ns(shown.total.ns)}, "
    return f"<p>{escape(said + whatif_text.change_text(shown.total))}.</p>"


def _lasting(shown: WhatIfWay) -> str:
    lines = "".join(f"<li><code>{escape(line)}</code></li>" for line in shown.lasting)
    return f"<p>To keep all of it:</p><ul>{lines}</ul>" if lines else ""


def left(report: WhatIfReport) -> str:
    """Ceilings and gains that were measured on the job with everything that was kept; "" if there are none."""
    if report.way is None or not report.way.kept:
        return ""
    rows = [
        f'<th scope="row">{code(one.remedy)}</th><td>{escape(one.kind)}</td>'
        f'<td class="n">{escape(whatif_text.change_text(one))}</td><td>{escape(one.text)}</td>'
        for one in report.way.left
        if one.verdict in whatif_text.MEASURED
    ]
    return (
        f'<div class="card">{table(("Trial", "", "Change", "What it does"), rows, numeric=(2,))}</div>' if rows else ""
    )


def curves(report: WhatIfReport) -> str:
    """A table for each curve; "" if there is none."""
    return "".join(_curve(curve) for curve in report.curves)


def _curve(curve: WhatIfCurve) -> str:
    best = max((point.rate for point in curve.points), default=0.0)
    rows = [_point(point, curve, best) for point in curve.points]
    shown = table(("Size", "Per second", "", "Memory", ""), rows, numeric=(1, 3))
    said = escape(whatif_curve_text.conclusion(curve))
    return f'<div class="card"><h3>{escape(curve.name)}</h3>{shown}<p>{said}</p></div>'


def _point(point: WhatIfPoint, curve: WhatIfCurve, best: float) -> str:
    size = f"{point.size:g}" if point.size else "unchanged"
    bar = bars.share_bar(point.rate / best if best else 0.0)
    notes = [note for note in ("the knee" if point.trial == curve.knee else "", point.note) if note]
    return (
        f'<th scope="row">{size}</th><td class="n">{format_rate(point.rate) if point.rate else ""}</td>'
        f'<td class="b">{bar}</td><td class="n">{format_bytes(point.peak_bytes) if point.peak_bytes else ""}</td>'
        f"<td>{escape(', '.join(notes))}</td>"
    )
