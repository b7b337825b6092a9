"""What an experiment brought, as one offline page: the answer, the step as a waterfall, the trials, flame graphs."""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct

from stepscope.report import words
from stepscope.report.marked import Attribute, Html, el
from stepscope.report.page import charts
from stepscope.report.page.document import document, sections
from stepscope.report.page.tables import code, facts, paragraphs, table
from stepscope.report.whatif import curve_text as whatif_curve_text
from stepscope.report.whatif import slopes_page as whatif_slopes_page
from stepscope.report.whatif import slopes_text as whatif_slopes_text
from stepscope.report.whatif import text as whatif_text
from stepscope.report.whatif import values_page as whatif_values_page
from stepscope.report.whatif import way_page as whatif_way_page
from stepscope.report.whatif import way_text as whatif_way_text
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfPart, WhatIfReport, WhatIfResult, WhatIfRun

MOST_RATIO = 1.5
"""Time of a trial over the unchanged job's at which its bar ends; what is slower than this has the same bar."""
BAR = 14
"""Height of a bar in a table."""
MIDDLE_DOT = " \u00b7 "


class Flames(Struct, frozen=True, kw_only=True):
    """Flame graphs of the unchanged job and of the best trial."""

    trial: str
    before: str
    """SVG of the unchanged job; "" if there is none."""
    after: str
    link: str = ""
    """File of the difference, relative to the page."""
    why: str = ""
    """Why there are none; "" if there are."""


def answer(report: WhatIfReport) -> str:
    """The answer in a sentence, or one for each part."""
    if report.way is not None:
        return whatif_way_text.conclusion(report, report.way)
    curves = [f"{curve.name}: {whatif_curve_text.conclusion(curve)}" for curve in report.curves]
    if report.slopes and not (report.results or curves):
        return whatif_slopes_text.conclusion(report)
    if not curves:
        return whatif_text.conclusion(report)
    return " ".join([f"{whatif_text.conclusion(report)}.", *curves] if report.results else curves)


def render(report: WhatIfReport, flames: Flames | None = None) -> Html:
    """The page. ``flames``: None where no trial is better than the unchanged job."""
    shown = [
        ("way", "Step by step, until done", whatif_way_page.way(report)),
        ("trials", "What each change leaves of the time", _trials(report)),
        ("then", "What is left with everything kept", whatif_way_page.left(report)),
        ("values", "Work that the values show to be needless", whatif_values_page.section(report)),
        ("slopes", "What places cost a step", whatif_slopes_page.section(report)),
        ("curves", "Curves", whatif_way_page.curves(report)),
        ("step", "The step, part by part", _waterfall(report)),
        ("flames", "Where the time goes, before and after", _flames(flames)),
        ("left", "Not measured", _not_measured(report)),
        ("runs", "Runs", _runs(report)),
        ("how", "How it was measured", _how(report)),
    ]
    return document(f"stepscope whatif: {_command(report)}", sections(charts.hatch() + _header(report), shown))


def _command(report: WhatIfReport) -> str:
    return shlex.join(report.command)


def _header(report: WhatIfReport) -> Html:
    said = answer(report)
    step = f" ({report.step})" if report.step else ""
    tiles = [
        ("Unchanged", format_ns(report.ns), f"a {report.measure}{step}"),
        ("Rounds", str(report.rounds), f"{len(report.runs)} runs"),
    ]
    if (noise := report.noise) is not None:
        low, high = (f"{100 * (ratio - 1):+.1f}" for ratio in (noise.low, noise.high))
        tiles.append(("Against itself", f"{100 * (noise.ratio - 1):+.1f} %", f"{low} to {high} %"))
    drawn = Html().join(
        Html('<div><dt>{}</dt><dd class="value">{}</dd><dd>{}</dd></div>').format(label, value, more)
        for label, value, more in tiles
    )
    return Html(
        '<header>\n<p class="brand"><b>stepscope whatif</b><code>{}</code>'
        '</p>\n<h1>{}</h1>\n<dl class="tiles">{}</dl>\n</header>'
    ).format(_command(report), said[0].upper() + said[1:], drawn)


# ---- trials


def _trials(report: WhatIfReport) -> Html:
    measured = [result for result in report.results if result.verdict in whatif_text.MEASURED]
    if not measured:
        return Html()
    cards = []
    for kind, title, note in (
        ("gain", "Gains", "What a change that lasts brings."),
        ("ceiling", "Ceilings", "The most that any change of a part can bring: the trial leaves the part out."),
    ):
        rows = [_trial(result) for result in measured if result.kind == kind]
        if rows:
            head = ("Trial", "Time", "", "Change", "What it does, and what to do")
            shown = table(head, rows, numeric=(1, 3))
            cards.append(Html('<div class="card"><h3>{}</h3><p class="note">{}</p>{}</div>').format(title, note, shown))
    return Html().join(cards)


def _trial(result: WhatIfResult) -> Html:
    said = [f"{result.text}{'' if result.keeps_results else ' Changes the results.'}"]
    if result.reason and result.expected_ratio:
        said.append(f"Tried because {result.reason}.")
    said += [text for text in (result.note, whatif_text.how_text(result), *whatif_text.memory_lines(result)) if text]
    lines = paragraphs(said)
    if (result.verdict == "faster" or whatif_text.saves_cpu(result)) and result.lasting:
        what = "To keep it" if result.kind == "gain" else "Look at"
        lines += Html("<p>{}: <code>{}</code></p>").format(what, result.lasting)
    verdict = whatif_text.VERDICTS.get(result.verdict, result.verdict)
    return Html(
        '<th scope="row">{}</th><td class="n">{}</td><td class="b">{}</td><td class="n">{}<br>{}</td><td>{}</td>'
    ).format(
        code(result.remedy),
        whatif_text.times_text(result),
        _ratio_bar(result),
        whatif_text.change_text(result),
        verdict,
        lines,
    )


def _ratio_bar(result: WhatIfResult) -> Html:
    """Time left of the unchanged job's, with its interval; the line across marks the unchanged job."""

    def place(ratio: float) -> str:
        return f"{100 * min(max(ratio, 0.0), MOST_RATIO) / MOST_RATIO:.2f}%"

    css = {"faster": "sev-info", "slower": "sev-high"}.get(result.verdict, "track")
    css = "fill" if result.verdict == "faster" and result.kind == "gain" else css
    parts = [
        el("rect", {"width": place(1.0), "height": BAR, "rx": 2, "class": "track"}),
        el("rect", {"width": place(result.ratio), "height": BAR, "rx": 2, "class": css}),
        el("line", {"x1": place(1.0), "x2": place(1.0), "y1": 0, "y2": BAR, "class": "mark"}),
    ]
    if result.high:
        low, high, middle = place(result.low), place(result.high), BAR / 2
        parts.append(el("line", {"x1": low, "x2": high, "y1": middle, "y2": middle, "class": "whisker"}))
        parts += [el("line", {"x1": at, "x2": at, "y1": 2, "y2": BAR - 2, "class": "whisker"}) for at in (low, high)]
    said = f"{100 * result.ratio:.0f} % of the unchanged job's time"
    return el("svg", {"class": "bar", "width": "100%", "height": BAR, "role": "img", "aria-label": said}, *parts)


# ---- the step


def _waterfall(report: WhatIfReport) -> Html:
    if not report.parts:
        return Html()
    whole = sum(part.ratio for part in report.parts)
    at, rows = 0.0, []
    for part in report.parts:
        if part.ratio < whatif_text.SHOWN_RATIO:
            continue
        rows.append(_part_row(part, at / whole, part.ratio / whole))
        at += part.ratio
    head = ("Component", "Share", "Per step", "", "Left out by", "That saves")
    note = Html(
        '<p class="note">Shares were measured in the unchanged job; what leaving a part out saves was '
        "measured by a trial. Where a trial saves less than the share, other parts grow or hide behind "
        "it.</p>"
    )
    return Html('<div class="card">{}{}</div>').format(note, table(head, rows, numeric=(1, 2, 5)))


def _part_row(part: WhatIfPart, start: float, width: float) -> Html:
    css = charts.component_class(part.component)
    size: dict[str, Attribute] = {"x": f"{100 * start:.2f}%", "width": f"{100 * max(width, 0.002):.2f}%", "height": BAR}
    drawn = el(
        "svg",
        {"class": "bar", "width": "100%", "height": BAR, "aria-hidden": "true"},
        el("rect", {"width": "100%", "height": BAR, "rx": 2, "class": "track"}),
        el("rect", {**size, "class": f"{css} part"}),
    )
    return Html(
        '<th scope="row">{}</th><td class="n">{} %</td><td class="n">{}</td><td class="b wide-bar">{}</td>'
        '<td>{}</td><td class="n">{}</td>'
    ).format(
        words.component_word(part.component),
        words.percent(part.ratio),
        format_ns(part.ns),
        drawn,
        code(part.trial),
        whatif_text.saved_text(part),
    )


# ---- flame graphs


def _flames(flames: Flames | None) -> Html:
    if flames is None:
        return Html()
    if flames.why:
        return Html('<p class="card left-out">Flame graphs are not drawn: {}.</p>').format(flames.why)
    pictures = Html().join(
        Html('<figure class="card"><figcaption><h3>{}</h3></figcaption>{}</figure>').format(title, _picture(title, svg))
        for title, svg in (("Unchanged", flames.before), (f"With {flames.trial}", flames.after))
    )
    more = Html('<p><a href="{}">The difference, stack by stack</a></p>').format(flames.link) if flames.link else Html()
    return Html('<div class="grid charts">{}</div>{}').format(pictures, more)


def _picture(title: str, svg: str) -> Html:
    data = base64.b64encode(svg.encode()).decode()
    return Html('<img class="flame" alt="Flame graph: {}" src="data:image/svg+xml;base64,{}">').format(title, data)


# ---- the rest


def _not_measured(report: WhatIfReport) -> Html:
    left = [result for result in report.results if result.verdict not in whatif_text.MEASURED]
    rows = [
        Html('<th scope="row">{}</th><td>{}</td><td>{}</td>').format(
            code(result.remedy), whatif_text.VERDICTS[result.verdict], result.note
        )
        for result in left
    ]
    return Html('<div class="card">{}</div>').format(table(("Trial", "", "Why"), rows)) if rows else Html()


def _runs(report: WhatIfReport) -> Html:
    rows = [
        Html('<td class="n">{}</td><td>{}{}</td><td class="n">{}</td><td>{}</td><td>{}</td>').format(
            run.round,
            _changes(run),
            " on and off" if run.switched else "",
            format_ns(run.ns) if run.ns else "",
            ", ".join(run.findings),
            code(run.session),
        )
        for run in report.runs
    ]
    return Html('<div class="card">{}</div>').format(
        table(("Round", "Trial", "Time", "Findings", "Session"), rows, numeric=(0, 2))
    )


def _changes(run: WhatIfRun) -> Html:
    """What was in effect in a run."""
    return Html(", ").join(code(change) for change in (*run.kept, run.remedy) if change) or Html("unchanged")


def _how(report: WhatIfReport) -> Html:
    ended = f"after {report.trial_s:g} s of steady steps" if report.trial_s else "at the program's own end"
    rows = [
        ("Measure", f"steady time of a {report.measure}" if report.measure != "run" else "time of the whole run"),
        ("A run ends", ended),
        ("Intervals", "at the 99 % level; the unchanged job is compared with itself in the same rounds"),
        ("Files", "what the job wrote was thrown away" if report.isolated else "the job wrote where it writes"),
        ("Network", "the job could reach it" if report.network else "none"),
        ("Folder", Html("<code>{}</code>").format(report.folder)),
    ]
    if report.joined:
        said = Html('of the unchanged job, with what was found: <a href="{}/report.html">{}</a>')
        rows.append(("Report", said.format(quote(report.joined), report.joined)))
    outside = [
        ("Wants to reach", whatif_text.peers_text((one.peer, one.attempts) for one in report.peers)),
        ("Set offline", ", ".join(report.trackers)),
    ]
    rows += [(label, text) for label, text in outside if text]
    return Html('<div class="card">{}</div>').format(facts(rows))
