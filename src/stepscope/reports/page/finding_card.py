"""A finding on the page: cost, evidence, remedies, and the source of the culprit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stepscope.reports import verdict, words
from stepscope.reports.page import bars
from stepscope.reports.page.excerpt import excerpt, find_source
from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import table
from stepscope.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.finding import Evidence, Finding, Place, Report
    from stepscope.reports.page.excerpt import Excerpt

Heat = Mapping[tuple[str, int], float]
"""Known cost of each (file, line), as a share of the steady wall time."""
EXCERPTS = 2
"""Most source excerpts in one finding; further places are only listed."""
MIDDLE_DOT = " \u00b7 "


def findings(report: Report, sources: Mapping[str, str]) -> str:
    """All findings as cards, or a note that there are none."""
    if not report.findings:
        said = verdict.nothing_text(report)
        css = "card calm" if report.session.steps else "card"
        return f'<p class="{css}">{said[0].upper()}{said[1:]}.</p>'
    heat = {(h.file, h.line): h.ratio for h in report.line_heat}
    said = verdict.nothing_text(report)
    calm = "" if words.significant(report) else f'<p class="card calm">{escape(said[0].upper() + said[1:])}.</p>'
    return calm + "\n".join(_finding(i, f, sources, heat) for i, f in enumerate(report.findings, 1))


def _finding(number: int, finding: Finding, sources: Mapping[str, str], heat: Heat) -> str:
    cost = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    per_step = f", {format_ns(finding.cost.ns_per_step)} per step" if finding.cost.ns_per_step else ""
    facts = (
        ("Symptom", finding.symptom),
        ("Cause", finding.cause),
        ("Where to edit", finding.introduced_stage),
        ("Where time is lost", f"{finding.exposed_stage}, {words.stage_word(finding.pipeline_stage)}"),
        ("Confidence", f"{words.percent(finding.confidence)} %"),
    )
    listed = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    explanation = f"<p>{escape(finding.explanation)}</p>" if finding.explanation else ""
    left = (
        f'{explanation}<div class="cost"><p>{escape(cost[0].upper() + cost[1:])}{escape(per_step)}</p>'
        f"{bars.cost_bar(finding.cost, finding.severity)}</div>"
    )
    evidence, remedies = _evidence(finding.evidence), _remedies(finding)
    where = _places(finding.where, sources, heat)
    left, right = (f"{left}{evidence}{remedies}", where) if where else (f"{left}{remedies}", evidence)
    columns = f'<div class="wide">{left}</div><div class="wide">{right}</div>' if right else f"<div>{left}</div>"
    return (
        f'<article class="card finding" aria-labelledby="finding-{number}">'
        f'<h3 id="finding-{number}"><span class="badge sev-{finding.severity}">{finding.severity}</span> '
        f"{escape(finding.title)}</h3>"
        f'<p class="note"><b>{escape(finding.code)}</b> {escape(finding.name)}'
        f"{MIDDLE_DOT}<code>stepscope rule {escape(finding.code)}</code>{_rules(finding)}</p>"
        f'<div class="columns">{columns}</div><dl class="facts">{listed}</dl></article>'
    )


def _rules(finding: Finding) -> str:
    """Which rules of the static checker see the same in the source."""
    if finding.origin != "joined":
        return ""
    return f"{MIDDLE_DOT}also in the source: {escape(', '.join(finding.related_codes))}"


def _evidence(evidence: Sequence[Evidence]) -> str:
    if not evidence:
        return ""
    rows = []
    for item in evidence:
        threshold = "" if item.threshold is None else escape(words.value_text(item.threshold, item.unit))
        value = escape(words.value_text(item.value, item.unit))
        name = escape(words.metric_text(item.metric))
        rows.append(f'<th scope="row">{name}</th><td class="n">{value}</td><td class="n">{threshold}</td>')
    return table(("Evidence", "Value", "Threshold"), rows, numeric=(1, 2))


def _remedies(finding: Finding) -> str:
    parts = []
    said = words.proof_word(finding).capitalize()
    for remedy in finding.remedies:
        proof = f" {said}: <code>{escape(remedy.what_if)}</code>" if remedy.what_if is not None else ""
        proof += f" Edit: <code>{escape(remedy.edit)}</code>" if remedy.edit is not None else ""
        safety = {"safe": "safe to apply", "review": "review the change", "unsafe": "may change results"}[remedy.safety]
        rule = f"{escape(remedy.rule)}, " if remedy.rule and remedy.rule != finding.code else ""
        parts.append(f'<li>{escape(remedy.text)} <span class="tag">{rule}{safety}</span>{proof}</li>')
    head = "Remedy" if len(parts) == 1 else "Remedies"
    return f'<div class="remedy"><h4>{head}</h4><ul>{"".join(parts)}</ul></div>' if parts else ""


def _places(places: Sequence[Place], sources: Mapping[str, str], heat: Heat) -> str:
    """The first places with their source, each line shown once; the others as a list."""
    parts: list[str] = []
    seen: set[tuple[str, int]] = set()
    for place in places:
        shown = excerpt(place, sources) if (place.file, place.line) not in seen and len(parts) < EXCERPTS else None
        label = escape(words.place_text(place))
        if shown is not None:
            shares = {n.number: heat[key] for n in shown.lines if (key := (place.file, n.number)) in heat}
            parts.append(_source_figure(label, shown, shares))
            seen |= {(place.file, line.number) for line in shown.lines}
        else:
            absent = find_source(place.file, sources) is None and not parts
            parts.append(f'<p class="place"><code>{label}</code>{" (no source in the session)" if absent else ""}</p>')
    return "".join(parts)


def _source_figure(label: str, shown: Excerpt, heat: Mapping[int, float]) -> str:
    lines = "".join(
        f'<span class="line{" hit" if line.marked else ""}"><i>{line.number}</i>'
        f"{_share(heat.get(line.number)) if heat else ''}{_source(line.text)}\n</span>"
        for line in shown.lines
    )
    rest = f'<p class="note">{words.plural(shown.left_out, "more line")}.</p>' if shown.left_out else ""
    return (
        f'<figure class="source"><figcaption><code>{label}</code></figcaption>'
        f'<pre tabindex="0" role="region" aria-label="Source of {label}"><code>{lines}</code></pre>{rest}</figure>'
    )


def _share(ratio: float | None) -> str:
    """The cost of a line, in a column next to its number."""
    return f"<b>{f'{words.percent(ratio)} %' if ratio is not None else ''}</b>"


def _source(line: str) -> str:
    """A line of source with its indentation, otherwise escaped by :func:`escape`."""
    body = line.lstrip(" ")
    return " " * (len(line) - len(body)) + " ".join(escape(word) for word in body.split(" "))
