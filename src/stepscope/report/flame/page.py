"""A flame graph as one offline page: zoom, search, invert, by thread, over time; keyboard, light and dark.

The page runs one script and has one style sheet, both allowed by hash, and loads nothing else. Without the script it
shows the sampled event, how complete the stacks are, the heaviest functions, and the flame graph without zoom.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from stepscope.report.flame import payload, svg, words
from stepscope.report.flame.graph import top_functions
from stepscope.report.flame.palette import style
from stepscope.report.marked import Html, verbatim
from stepscope.report.page import sheet
from stepscope.report.page.document import page_head
from stepscope.report.page.tables import cells, table
from stepscope.tables.units import NS_PER_S

if TYPE_CHECKING:
    from stepscope.derive.stacks.drawn_tree import Cut
    from stepscope.derive.stacks.profile_difference import Change
    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.stacks import Frame, StackProfile

_INSTALLED = re.compile(r".*/(site|dist)-packages/")
"""Paths up to here are dropped: they are the same for all libraries."""
MOST_FUNCTIONS = 40
MOST_CHANGES = 60
HEAT_FROM_NS = 3 * NS_PER_S
"""Shorter profiles cannot show events that recur every second."""


def render(shown: Graph) -> Html:
    """The page of one profile."""
    profile = shown.profile
    data, merged = payload.of_graph(shown)
    title = f"{words.event_text(profile)}: {words.samples_text(shown)}"
    legend = Html().join(
        Html('<li><i class="k-{}"></i>{} {}</li>').format(
            kind.name.lower(), words.KIND_WORDS[kind], words.percent(share)
        )
        for kind, share in words.kind_items(profile)
    )
    total = profile.total or 1.0
    rows = [
        Html('<td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td>{}</td>').format(
            _find(row.function),
            words.percent(row.self_weight / total),
            words.weight_text(row.self_weight, profile.unit),
            words.percent(row.total / total),
            _where(row.function),
        )
        for row in top_functions(profile, MOST_FUNCTIONS)
    ]
    functions = table(("Function", "Self", "", "Total", "Where"), rows, numeric=(1, 2, 3))
    lead = " \u00b7 ".join(part for part in (shown.source, shown.window) if part)
    doubtful = " doubtful" if words.is_doubtful(shown) else ""
    health = Html('<p class="health{}">{}.</p>').format(doubtful, "; ".join(words.health_items(shown)))
    at = profile.samples.at_ns[profile.samples.at_ns >= 0]
    timed = len(at) > 0 and int(at.max() - at.min()) >= HEAT_FROM_NS
    body = [
        _header(lead, title),
        Html('<main id="main">'),
        _graph_section(
            health,
            Html('<ul class="kinds">{}</ul>').format(legend),
            _tools(profile),
            _note(merged, profile.unit),
            svg.render(shown),
        ),
        _heat_section() if timed else Html(),
        _section("functions", "Functions by self weight", functions),
        _diagnostics(shown),
        Html("</main>"),
    ]
    return _page(title, body, data, compared=False)


def render_compared(compared: ComparedProfiles) -> Html:
    """The page of a difference."""
    found, unit, per = compared.difference, words.shown_bases(compared)[2], words.per_text(compared)
    data, merged = payload.of_compared(compared)
    title = words.verdict(compared)
    legend = Html().join(
        Html('<li><i class="k-{}"></i>{}</li>').format(name, text) for name, text in words.CHANGE_WORDS.items()
    )
    rows = [
        Html("<td>{}</td>{}{}").format(_find(row.function), _cells(row.own, compared), _cells(row.total, compared))
        for row in found.functions[:MOST_CHANGES]
    ]
    head = ("Function", f"Self{per} before", "after", "", f"Total{per} before", "after", "")
    changes = table(head, rows, numeric=(1, 2, 3, 4, 5, 6)) if rows else Html("<p>None.</p>")
    more = len(found.functions) - MOST_CHANGES
    if more > 0:
        changes += Html('<p class="note">{:,} more functions changed beyond noise, each by less.</p>').format(more)
    health = Html().join(
        Html('<p class="health{}"><b>{}</b> {}: {}; {}.</p>').format(
            " doubtful" if words.is_doubtful(one) else "",
            name,
            one.source,
            words.samples_text(one),
            "; ".join(words.health_items(one)),
        )
        for name, one in (("before", compared.before), ("after", compared.after))
    )
    lead = " ".join(words.difference_items(compared))
    tools = _search_tools() + _toggle("invert", "Invert", "i") + _toggle("first", "Widths of the first profile")
    sources = f"{compared.before.source} \u2192 {compared.after.source}"
    body = [
        _header(sources, title, Html('<p class="lead">{}</p>').format(lead)),
        Html('<main id="main">'),
        _graph_section(
            health,
            Html('<ul class="kinds">{}</ul>').format(legend),
            tools,
            _note(merged, unit),
            svg.render_compared(compared),
        ),
        _section("functions", "Functions that changed beyond noise", changes),
        _diagnostics(compared.before, compared.after),
        Html("</main>"),
    ]
    return _page(title, body, data, compared=True)


# ---- parts


def _page(title: str, body: list[Html], data: str, *, compared: bool) -> Html:
    styles = sheet.base() + style()
    script = resources.files("stepscope.report.flame").joinpath("flame.js").read_text(encoding="utf-8")
    policy = Html(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    ).format(_hash(script), _hash(styles))
    head = page_head(f"stepscope: {title}", policy, styles)
    tail = Html(
        '<div id="settings" data-compared="{}" hidden></div>\n'
        '<script type="application/octet-stream" id="data">{}</script>\n{}'
    ).format("yes" if compared else "no", data, verbatim("script", script))
    shown = Html("\n").join(part for part in body if part)
    return Html('<!doctype html>\n<html lang="en">\n<head>\n{}\n</head>\n<body>\n{}\n{}\n</body>\n</html>\n').format(
        head, shown, tail
    )


def _header(source: str, title: str, more: str = "") -> Html:
    brand = Html('<p class="brand"><b>stepscope</b><code>{}</code></p>').format(source)
    return Html("<header>\n{}\n<h1>{}</h1>\n{}\n</header>").format(brand, title, more)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _section(key: str, title: str, text: Html) -> Html:
    return Html(
        '<section id="{0}" aria-labelledby="{0}-h">\n<h2 id="{0}-h">{1}</h2>\n<div class="card">{2}</div>\n</section>'
    ).format(key, title, text)


def _graph_section(health: Html, legend: Html, tools: Html, note: Html, picture: Html) -> Html:
    still = base64.b64encode(picture.encode()).decode()
    keys = Html(
        '<p class="note" id="keys">Click or press <kbd>Enter</kbd> to zoom, <kbd>Esc</kbd> to show all; '
        "arrow keys move to callers, callees and neighbours; <kbd>/</kbd> searches, <kbd>n</kbd> goes to the "
        "next match, <kbd>i</kbd> inverts the stacks. Callers are drawn above their callees.</p>"
    )
    return _section(
        "graph",
        "Flame graph",
        Html(
            '{}<ul class="kinds">{}</ul><div class="tools">{}</div>{}<div class="now" id="now"></div>'
            '<div class="said" id="said" aria-live="polite"></div>'
            '<div class="drawing"><canvas id="flame" tabindex="0" role="application" aria-label="Flame graph" '
            'aria-describedby="keys"></canvas></div>{}<noscript>'
            '<img alt="Flame graph without zoom" src="data:image/svg+xml;base64,{}"></noscript>'
        ).format(health, legend, tools, note, keys, still),
    )


def _tools(profile: StackProfile) -> Html:
    used = np.unique(profile.samples.thread[profile.samples.thread >= 0]).tolist()
    threads = Html()
    if len(used) > 1:
        known = profile.samples.take(profile.samples.thread >= 0)
        weights = np.bincount(known.thread, known.weight)
        order = sorted(used, key=lambda number: -weights[number])
        options = Html().join(
            Html('<option value="{}">{} ({})</option>').format(
                number,
                payload.thread_text(profile.threads[number]),
                words.percent(weights[number] / (profile.total or 1.0)),
            )
            for number in order
        )
        threads = Html(
            '<label>Threads <select id="threads"><option value="-1">merged</option>'
            '<option value="-2">separate</option>{}</select></label>'
        ).format(options)
    lines = _toggle("lines", "Lines") if any(frame.line for frame in profile.frames) else Html()
    return _search_tools() + threads + _toggle("invert", "Invert", "i") + lines


def _search_tools() -> Html:
    return Html(
        '<label>Search <input id="search" type="search" autocomplete="off" spellcheck="false"></label>'
        '<output id="matched"></output><button type="button" id="zoom-out" disabled>Show all</button>'
    )


def _toggle(key: str, label: str, shortcut: str = "") -> Html:
    keys = Html(' aria-keyshortcuts="{}"').format(shortcut) if shortcut else Html()
    return Html('<button type="button" id="{}" aria-pressed="false"{}>{}</button>').format(key, keys, label)


def _heat_section() -> Html:
    return _section(
        "time",
        "Over time",
        Html(
            '<p class="note" id="heat-keys">Each column is one second; time runs from left to right and, within '
            "a column, downwards. Events that recur every second form a line, more frequent ones a pattern. Drag "
            "over columns, or hold <kbd>Shift</kbd> and use the arrow keys, to draw only that time.</p>"
            '<div class="tools"><button type="button" id="whole-time" disabled>Whole time</button>'
            '<output id="chosen">the whole time is drawn</output></div>'
            '<canvas id="heat" tabindex="0" role="application" aria-label="Samples over time" '
            'aria-describedby="heat-keys"></canvas>'
            '<p class="axis"><span id="heat-from"></span><span id="heat-to"></span></p>'
        ),
    )


def _note(merged: Cut | None, unit: str) -> Html:
    return Html('<p class="note">{}</p>').format(words.merged_text(merged, unit)) if merged is not None else Html()


def _find(function: Frame) -> Html:
    return Html('<button type="button" data-find="{0}">{0}</button>').format(function.function)


def _where(function: Frame) -> str:
    return _INSTALLED.sub("", function.file) or function.module


def _cells(change: Change, compared: ComparedProfiles) -> Html:
    one, other, unit = words.shown_bases(compared)
    before, after = change.before / one, change.after / other
    growth = (Html("<b>{}</b>") if change.significant else Html("<span>{}</span>")).format(
        words.growth_text(before, after)
    )
    return cells((words.amount_text(before, unit), words.amount_text(after, unit), growth), numeric=range(3))


def _diagnostics(*graphs: Graph) -> Html:
    found = dict.fromkeys(one for shown in graphs for one in shown.profile.diagnostics)
    items = Html().join(Html("<li><b>{}</b> {}</li>").format(one.code, one.text) for one in found)
    return _section("diagnostics", "What could not be read", Html("<ul>{}</ul>").format(items)) if items else Html()
