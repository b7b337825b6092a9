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

from stepscope.reports.flame import payload, svg, words
from stepscope.reports.flame.graph import top_functions
from stepscope.reports.flame.palette import style
from stepscope.reports.page import sheet
from stepscope.reports.page.document import ICON
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import table
from stepscope.units import NS_PER_S

if TYPE_CHECKING:
    from stepscope.derive.stacks.drawn_tree import Cut
    from stepscope.derive.stacks.profile_difference import Change
    from stepscope.model.session.stacks import Frame, StackProfile
    from stepscope.reports.flame.graph import Compared, Graph

_INSTALLED = re.compile(r".*/(site|dist)-packages/")
"""Paths up to here are dropped: they are the same for all libraries."""
MOST_FUNCTIONS = 40
MOST_CHANGES = 60
HEAT_FROM_NS = 3 * NS_PER_S
"""Shorter profiles cannot show events that recur every second."""


def render(shown: Graph) -> str:
    """The page of one profile."""
    profile = shown.profile
    data, merged = payload.of_graph(shown)
    title = f"{words.event_text(profile)}: {words.samples_text(shown)}"
    legend = "".join(
        f'<li><i class="k-{kind.name.lower()}"></i>{escape(words.KIND_WORDS[kind])} {words.percent(share)}</li>'
        for kind, share in words.kind_items(profile)
    )
    total = profile.total or 1.0
    rows = [
        f"<td>{_find(row.function)}</td>"
        f'<td class="n">{words.percent(row.self_weight / total)}</td>'
        f'<td class="n">{escape(words.weight_text(row.self_weight, profile.unit))}</td>'
        f'<td class="n">{words.percent(row.total / total)}</td><td>{escape(_where(row.function))}</td>'
        for row in top_functions(profile, MOST_FUNCTIONS)
    ]
    functions = table(("Function", "Self", "", "Total", "Where"), rows, numeric=(1, 2, 3))
    lead = " \u00b7 ".join(escape(part) for part in (shown.source, shown.window) if part)
    doubtful = " doubtful" if words.is_doubtful(shown) else ""
    health = f'<p class="health{doubtful}">{escape("; ".join(words.health_items(shown)))}.</p>'
    at = profile.samples.at_ns[profile.samples.at_ns >= 0]
    timed = len(at) > 0 and int(at.max() - at.min()) >= HEAT_FROM_NS
    body = [
        _header(lead, title),
        '<main id="main">',
        _graph_section(
            health, f'<ul class="kinds">{legend}</ul>', _tools(profile), _note(merged, profile.unit), svg.render(shown)
        ),
        _heat_section() if timed else "",
        _section("functions", "Functions by self weight", functions),
        _diagnostics(shown),
        "</main>",
    ]
    return _page(title, body, data, compared=False)


def render_compared(compared: Compared) -> str:
    """The page of a difference."""
    found, unit = compared.difference, compared.after.profile.unit
    data, merged = payload.of_compared(compared)
    title = words.verdict(compared)
    legend = "".join(f'<li><i class="k-{name}"></i>{text}</li>' for name, text in words.CHANGE_WORDS.items())
    rows = [
        f"<td>{_find(change.function)}</td>{_cells(change.own, unit)}{_cells(change.total, unit)}"
        for change in found.functions[:MOST_CHANGES]
    ]
    head = ("Function", "Self before", "after", "", "Total before", "after", "")
    changes = table(head, rows, numeric=(1, 2, 3, 4, 5, 6)) if rows else "<p>None.</p>"
    more = len(found.functions) - MOST_CHANGES
    if more > 0:
        changes += f'<p class="note">{more:,} more functions changed beyond noise, each by less.</p>'
    health = "".join(
        f'<p class="health{" doubtful" if words.is_doubtful(one) else ""}"><b>{name}</b> {escape(one.source)}: '
        f"{escape(words.samples_text(one))}; {escape('; '.join(words.health_items(one)))}.</p>"
        for name, one in (("before", compared.before), ("after", compared.after))
    )
    lead = " ".join(words.difference_items(compared))
    tools = _search_tools() + _toggle("invert", "Invert", "i") + _toggle("first", "Widths of the first profile")
    sources = f"{compared.before.source} \u2192 {compared.after.source}"
    body = [
        _header(escape(sources), title, f'<p class="lead">{escape(lead)}</p>'),
        '<main id="main">',
        _graph_section(
            health, f'<ul class="kinds">{legend}</ul>', tools, _note(merged, unit), svg.render_compared(compared)
        ),
        _section("functions", "Functions that changed beyond noise", changes),
        _diagnostics(compared.before, compared.after),
        "</main>",
    ]
    return _page(title, body, data, compared=True)


# ---- parts


def _page(title: str, body: list[str], data: str, *, compared: bool) -> str:
    styles = sheet.base() + style()
    script = resources.files("stepscope.reports.flame").joinpath("flame.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    head = "\n".join(
        (
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<link rel="icon" href="{ICON}">',
            f"<title>stepscope: {escape(title)}</title>",
            f"<style>{styles}</style>",
        )
    )
    tail = (
        f'<div id="settings" data-compared="{"yes" if compared else "no"}" hidden></div>\n'
        f'<script type="application/octet-stream" id="data">{data}</script>\n<script>{script}</script>'
    )
    shown = "\n".join(part for part in body if part)
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{shown}\n{tail}\n</body>\n</html>\n'


def _header(source: str, title: str, more: str = "") -> str:
    brand = f'<p class="brand"><b>stepscope</b><code>{source}</code></p>'
    return f"<header>\n{brand}\n<h1>{escape(title)}</h1>\n{more}\n</header>"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _section(key: str, title: str, text: str) -> str:
    return (
        f'<section id="{key}" aria-labelledby="{key}-h">\n<h2 id="{key}-h">{title}</h2>\n'
        f'<div class="card">{text}</div>\n</section>'
    )


def _graph_section(health: str, legend: str, tools: str, note: str, picture: str) -> str:
    still = base64.b64encode(picture.encode()).decode()
    keys = (
        '<p class="note" id="keys">Click or press <kbd>Enter</kbd> to zoom, <kbd>Esc</kbd> to show all; arrow keys '
        "move to callers, callees and neighbours; <kbd>/</kbd> searches, <kbd>n</kbd> goes to the next match, "
        "<kbd>i</kbd> inverts the stacks. Callers are drawn above their callees.</p>"
    )
    return _section(
        "graph",
        "Flame graph",
        f'{health}<ul class="kinds">{legend}</ul><div class="tools">{tools}</div>{note}'
        '<div class="now" id="now"></div><div class="said" id="said" aria-live="polite"></div>'
        '<div class="drawing"><canvas id="flame" tabindex="0" role="application" aria-label="Flame graph" '
        f'aria-describedby="keys"></canvas></div>{keys}'
        f'<noscript><img alt="Flame graph without zoom" src="data:image/svg+xml;base64,{still}"></noscript>',
    )


def _tools(profile: StackProfile) -> str:
    used = np.unique(profile.samples.thread[profile.samples.thread >= 0]).tolist()
    threads = ""
    if len(used) > 1:
        known = profile.samples.take(profile.samples.thread >= 0)
        weights = np.bincount(known.thread, known.weight)
        order = sorted(used, key=lambda number: -weights[number])
        options = "".join(
            f'<option value="{number}">{escape(payload.thread_text(profile.threads[number]))} '
            f"({words.percent(weights[number] / (profile.total or 1.0))})</option>"
            for number in order
        )
        threads = (
            '<label>Threads <select id="threads"><option value="-1">merged</option>'
            f'<option value="-2">separate</option>{options}</select></label>'
        )
    lines = _toggle("lines", "Lines") if any(frame.line for frame in profile.frames) else ""
    return _search_tools() + threads + _toggle("invert", "Invert", "i") + lines


def _search_tools() -> str:
    return (
        '<label>Search <input id="search" type="search" autocomplete="off" spellcheck="false"></label>'
        '<output id="matched"></output><button type="button" id="zoom-out" disabled>Show all</button>'
    )


def _toggle(key: str, label: str, shortcut: str = "") -> str:
    keys = f' aria-keyshortcuts="{shortcut}"' if shortcut else ""
    return f'<button type="button" id="{key}" aria-pressed="false"{keys}>{label}</button>'


def _heat_section() -> str:
    return _section(
        "time",
        "Over time",
        '<p class="note" id="heat-keys">Each column is one second; time runs from left to right and, within a column, '
        "downwards. Events that recur every second form a line, more frequent ones a pattern. Drag over columns, or "
        "hold <kbd>Shift</kbd> and use the arrow keys, to draw only that time.</p>"
        '<div class="tools"><button type="button" id="whole-time" disabled>Whole time</button>'
        '<output id="chosen">the whole time is drawn</output></div>'
        '<canvas id="heat" tabindex="0" role="application" aria-label="Samples over time" '
        'aria-describedby="heat-keys"></canvas>'
        '<p class="axis"><span id="heat-from"></span><span id="heat-to"></span></p>',
    )


def _note(merged: Cut | None, unit: str) -> str:
    return f'<p class="note">{escape(words.merged_text(merged, unit))}</p>' if merged is not None else ""


def _find(function: Frame) -> str:
    name = escape(function.function)
    return f'<button type="button" data-find="{name}">{name}</button>'


def _where(function: Frame) -> str:
    return _INSTALLED.sub("", function.file) or function.module


def _cells(change: Change, unit: str) -> str:
    strong = "b" if change.significant else "span"
    return (
        f'<td class="n">{escape(words.amount_text(change.before, unit))}</td>'
        f'<td class="n">{escape(words.amount_text(change.after, unit))}</td>'
        f'<td class="n"><{strong}>{words.growth_text(change)}</{strong}></td>'
    )


def _diagnostics(*graphs: Graph) -> str:
    found = dict.fromkeys(one for shown in graphs for one in shown.profile.diagnostics)
    items = "".join(f"<li><b>{escape(one.code)}</b> {escape(one.text)}</li>" for one in found)
    return _section("diagnostics", "What could not be read", f"<ul>{items}</ul>") if items else ""
