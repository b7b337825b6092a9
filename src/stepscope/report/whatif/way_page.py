"""Parts of an experiment's page: the steps of ``--until-done``, and curves of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.marked import Html
from stepscope.report.page import bars
from stepscope.report.page.tables import code, table
from stepscope.report.whatif import curve_text as whatif_curve_text
from stepscope.report.whatif import text as whatif_text
from stepscope.tables.units import format_bytes, format_ns, format_rate

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfCurve, WhatIfPoint, WhatIfReport, WhatIfStep, WhatIfWay


def way(report: WhatIfReport) -> Html:
    """Each step with what it keeps, the total, and the lines that make all of it permanent; "" without a way."""
    if report.way is None:
        return Html()
    rows = [_step(number, step) for number, step in enumerate(report.way.steps, 1)]
    shown = table(("Step", "Before it", "Kept", "Change", "Also tried"), rows, numeric=(0, 1, 3))
    return Html('<div class="card">{}{}{}</div>').format(shown, _total(report.way), _lasting(report.way))


def _step(number: int, step: WhatIfStep) -> Html:
    best = next((result for result in step.results if result.remedy == step.winner), None)
    measured = [one for one in step.results if one is not best and one.verdict in whatif_text.MEASURED]
    tried = ", ".join(f"{one.remedy} {whatif_text.change_text(one)}" for one in measured)
    change = whatif_text.change_text(best) if best is not None else ""
    return Html('<td class="n">{}</td><td class="n">{}</td><td>{}</td><td class="n">{}</td><td>{}</td>').format(
        number, format_ns(step.ns), code(step.winner) or "nothing", change, tried
    )


def _total(shown: WhatIfWay) -> Html:
    if shown.total is None or not shown.total.ns:
        return Html()
    said = f"All together, in the same rounds as the unchanged job: {whatif_text.times_text(shown.total)}, "
    return Html("<p>{}.</p>").format(said + whatif_text.change_text(shown.total))


def _lasting(shown: WhatIfWay) -> Html:
    lines = Html().join(Html("<li><code>{}</code></li>").format(line) for line in shown.lasting)
    return Html("<p>To keep all of it:</p><ul>{}</ul>").format(lines) if lines else Html()


def left(report: WhatIfReport) -> Html:
    """Ceilings and gains that were measured on the job with everything that was kept; "" if there are none."""
    if report.way is None or not report.way.kept:
        return Html()
    rows = [
        Html('<th scope="row">{}</th><td>{}</td><td class="n">{}</td><td>{}</td>').format(
            code(one.remedy), one.kind, whatif_text.change_text(one), one.text
        )
        for one in report.way.left
        if one.verdict in whatif_text.MEASURED
    ]
    return (
        Html('<div class="card">{}</div>').format(table(("Trial", "", "Change", "What it does"), rows, numeric=(2,)))
        if rows
        else Html()
    )


def curves(report: WhatIfReport) -> Html:
    """A table for each curve; "" if there is none."""
    return Html().join(_curve(curve) for curve in report.curves)


def _curve(curve: WhatIfCurve) -> Html:
    best = max((point.rate for point in curve.points), default=0.0)
    rows = [_point(point, curve, best) for point in curve.points]
    shown = table(("Size", "Per second", "", "Memory", ""), rows, numeric=(1, 3))
    said = whatif_curve_text.conclusion(curve)
    return Html('<div class="card"><h3>{}</h3>{}<p>{}</p></div>').format(curve.name, shown, said)


def _point(point: WhatIfPoint, curve: WhatIfCurve, best: float) -> Html:
    size = f"{point.size:g}" if point.size else "unchanged"
    bar = bars.share_bar(point.rate / best if best else 0.0)
    notes = [note for note in ("the knee" if point.trial == curve.knee else "", point.note) if note]
    return Html(
        '<th scope="row">{}</th><td class="n">{}</td><td class="b">{}</td><td class="n">{}</td><td>{}</td>'
    ).format(
        size,
        format_rate(point.rate) if point.rate else "",
        bar,
        format_bytes(point.peak_bytes) if point.peak_bytes else "",
        ", ".join(notes),
    )
