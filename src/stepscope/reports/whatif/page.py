"""What an experiment brought, as one offline page: the answer, the step as a waterfall, the trials, flame graphs."""

from __future__ import annotations

import base64
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from stepscope.reports import words
from stepscope.reports.page import charts
from stepscope.reports.page.document import document, sections
from stepscope.reports.page.svg import Attribute, el, escape
from stepscope.reports.page.tables import code, facts, table
from stepscope.reports.whatif import answer as whatif_answer
from stepscope.reports.whatif import text as whatif_text
from stepscope.reports.whatif import values_page as whatif_values_page
from stepscope.reports.whatif import way_page as whatif_way_page
from stepscope.units import format_ns

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfPart, WhatIfReport, WhatIfResult, WhatIfRun

MOST_RATIO = 1.5
"""Time of a trial over the unchanged job's at which its bar ends; what is slower than this has the same bar."""
BAR = 14
"""Height of a bar in a table."""
MIDDLE_DOT = " \u00b7 "


@dataclass(frozen=True, slots=True, kw_only=True)
class Flames:
    """Flame graphs of the unchanged job and of the best trial."""

    trial: str
    before: str
    """SVG of the unchanged job; "" if there is none."""
    after: str
    link: str = ""
    """File of the difference, relative to the page."""
    why: str = ""
    """Why there are none; "" if there are."""


def render(report: WhatIfReport, flames: Flames | None = None) -> str:
    """The page. ``flames``: None where no trial is better than the unchanged job."""
    shown = [
        ("way", "Step by step, until done", whatif_way_page.way(report)),
        ("trials", "What each change leaves of the time", _trials(report)),
        ("then", "What is left with everything kept", whatif_way_page.left(report)),
        ("values", "Work that the values show to be needless", whatif_values_page.section(report)),
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


def _header(report: WhatIfReport) -> str:
    said = whatif_answer.answer(report)
    step = f" ({report.step})" if report.step else ""
    tiles = [
        ("Unchanged", format_ns(report.ns), f"a {report.measure}{step}"),
        ("Rounds", str(report.rounds), f"{len(report.runs)} runs"),
    ]
    if (noise := report.noise) is not None:
        low, high = (f"{100 * (ratio - 1):+.1f}" for ratio in (noise.low, noise.high))
        tiles.append(("Against itself", f"{100 * (noise.ratio - 1):+.1f} %", f"{low} to {high} %"))
    drawn = "".join(
        f'<div><dt>{escape(label)}</dt><dd class="value">{escape(value)}</dd><dd>{escape(more)}</dd></div>'
        for label, value, more in tiles
    )
    return (
        f'<header>\n<p class="brand"><b>stepscope whatif</b><code>{escape(_command(report))}</code></p>\n'
        f'<h1>{escape(said[0].upper() + said[1:])}</h1>\n<dl class="tiles">{drawn}</dl>\n</header>'
    )


# ---- trials


def _trials(report: WhatIfReport) -> str:
    measured = [result for result in report.results if result.verdict in whatif_text.MEASURED]
    if not measured:
        return ""
    cards = []
    for kind, title, note in (
        ("gain", "Gains", "What a change that lasts brings."),
        ("ceiling", "Ceilings", "The most that any change of a part can bring: the trial leaves the part out."),
    ):
        rows = [_trial(result) for result in measured if result.kind == kind]
        if rows:
            head = ("Trial", "Time left", "", "Change", "What it does, and what to do")
            shown = table(head, rows, numeric=(1, 3))
            cards.append(f'<div class="card"><h3>{title}</h3><p class="note">{note}</p>{shown}</div>')
    return "".join(cards)


def _trial(result: WhatIfResult) -> str:
    said = [f"{result.text}{'' if result.keeps_results else ' Changes the results.'}"]
    if result.reason and result.expected_ratio:
        said.append(f"Tried because {result.reason}.")
    said += [text for text in (result.note, whatif_text.how_text(result), *whatif_text.memory_lines(result)) if text]
    lines = "".join(f"<p>{escape(text)}</p>" for text in said)
    if (result.verdict == "faster" or whatif_text.saves_cpu(result)) and result.lasting:
        what = "To keep it" if result.kind == "gain" else "Look at"
        lines += f"<p>{what}: <code>{escape(result.lasting)}</code></p>"
    verdict = whatif_text.VERDICTS.get(result.verdict, result.verdict)
    return (
        f'<th scope="row">{code(result.remedy)}</th>'
        f'<td class="n">{format_ns(result.ns)}</td><td class="b">{_ratio_bar(result)}</td>'
        f'<td class="n">{escape(whatif_text.change_text(result))}<br>{escape(verdict)}</td><td>{lines}</td>'
    )


def _ratio_bar(result: WhatIfResult) -> str:
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


def _waterfall(report: WhatIfReport) -> str:
    if not report.parts:
        return ""
    whole = sum(part.ratio for part in report.parts)
    at, rows = 0.0, []
    for part in report.parts:
        if part.ratio < whatif_text.SHOWN_RATIO:
            continue
        rows.append(_part_row(part, at / whole, part.ratio / whole))
        at += part.ratio
    head = ("Component", "Share", "Per step", "", "Left out by", "That saves")
    note = (
        '<p class="note">Shares were measured in the unchanged job; what leaving a part out saves was measured by a '
        "trial. Where a trial saves less than the share, other parts grow or hide behind it.</p>"
    )
    return f'<div class="card">{note}{table(head, rows, numeric=(1, 2, 5))}</div>'


def _part_row(part: WhatIfPart, start: float, width: float) -> str:
    css = charts.component_class(part.component)
    size: dict[str, Attribute] = {"x": f"{100 * start:.2f}%", "width": f"{100 * max(width, 0.002):.2f}%", "height": BAR}
    drawn = el(
        "svg",
        {"class": "bar", "width": "100%", "height": BAR, "aria-hidden": "true"},
        el("rect", {"width": "100%", "height": BAR, "rx": 2, "class": "track"}),
        el("rect", {**size, "class": f"{css} part"}),
    )
    return (
        f'<th scope="row">{escape(words.component_word(part.component))}</th>'
        f'<td class="n">{words.percent(part.ratio)} %</td><td class="n">{format_ns(part.ns)}</td>'
        f'<td class="b wide-bar">{drawn}</td><td>{code(part.trial)}</td>'
        f'<td class="n">{escape(whatif_text.saved_text(part))}</td>'
    )


# ---- flame graphs


def _flames(flames: Flames | None) -> str:
    if flames is None:
        return ""
    if flames.why:
        return f'<p class="card left-out">Flame graphs are not drawn: {escape(flames.why)}.</p>'
    pictures = "".join(
        f'<figure class="card"><figcaption><h3>{escape(title)}</h3></figcaption>{_picture(title, svg)}</figure>'
        for title, svg in (("Unchanged", flames.before), (f"With {flames.trial}", flames.after))
    )
    more = f'<p><a href="{escape(flames.link)}">The difference, stack by stack</a></p>' if flames.link else ""
    return f'<div class="grid charts">{pictures}</div>{more}'


def _picture(title: str, svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img class="flame" alt="Flame graph: {escape(title)}" src="data:image/svg+xml;base64,{data}">'


# ---- the rest


def _not_measured(report: WhatIfReport) -> str:
    left = [result for result in report.results if result.verdict not in whatif_text.MEASURED]
    rows = [
        f'<th scope="row">{code(result.remedy)}</th><td>{escape(whatif_text.VERDICTS[result.verdict])}</td>'
        f"<td>{escape(result.note)}</td>"
        for result in left
    ]
    return f'<div class="card">{table(("Trial", "", "Why"), rows)}</div>' if rows else ""


def _runs(report: WhatIfReport) -> str:
    rows = [
        f'<td class="n">{run.round}</td><td>{_changes(run)}{" on and off" if run.switched else ""}</td>'
        f'<td class="n">{format_ns(run.ns) if run.ns else ""}</td><td>{escape(", ".join(run.findings))}</td>'
        f"<td>{code(run.session)}</td>"
        for run in report.runs
    ]
    return f'<div class="card">{table(("Round", "Trial", "Time", "Findings", "Session"), rows, numeric=(0, 2))}</div>'


def _changes(run: WhatIfRun) -> str:
    """What was in effect in a run."""
    return ", ".join(code(change) for change in (*run.kept, run.remedy) if change) or "unchanged"


def _how(report: WhatIfReport) -> str:
    ended = f"after {report.trial_s:g} s of steady steps" if report.trial_s else "at the program's own end"
    rows = [
        ("Measure", f"steady time of a {report.measure}" if report.measure != "run" else "time of the whole run"),
        ("A run ends", ended),
        ("Intervals", "at the 99 % level; the unchanged job is compared with itself in the same rounds"),
        ("Files", "what the job wrote was thrown away" if report.isolated else "the job wrote where it writes"),
        ("Network", "the job could reach it" if report.network else "none"),
        ("Folder", f"<code>{escape(report.folder)}</code>"),
    ]
    if report.joined:
        link = f'<a href="{escape(quote(report.joined))}/report.html">{escape(report.joined)}</a>'
        rows.append(("Report", f"of the unchanged job, with what was found: {link}"))
    outside = [
        ("Wants to reach", whatif_text.peers_text((one.peer, one.attempts) for one in report.peers)),
        ("Set offline", ", ".join(report.trackers)),
    ]
    rows += [(label, escape(text)) for label, text in outside if text]
    return f'<div class="card">{facts(rows)}</div>'
