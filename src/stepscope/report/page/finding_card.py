"""A finding on the page: cost, evidence, remedies, and the source of the culprit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.marked import Html
from stepscope.report.page import bars
from stepscope.report.page.excerpt import excerpt, find_source
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.report.blocks import Found
    from stepscope.report.page.excerpt import Excerpt
    from stepscope.tables.findings import Finding
    from stepscope.tables.place import Place

Heat = Mapping[tuple[str, int], float]
"""Known cost of each (file, line), as a share of the steady wall time."""
EXCERPTS = 2
"""Most source excerpts in one finding; further places are only listed."""


def finding_card(found: Found, evidence: Html, sources: Mapping[str, str]) -> Html:
    """The card. ``evidence``: its table, ``sources``: path to text of the user's files."""
    number, finding, heat = found.number, found.finding, found.heat
    cost = words.cost_text(finding.cost, between_steps=words.is_between_steps(finding))
    per_step = f", {format_ns(finding.cost.ns_per_step)} per step" if finding.cost.ns_per_step else ""
    facts = (
        ("Symptom", finding.symptom),
        ("Cause", finding.cause),
        ("Where to edit", finding.introduced_stage),
        ("Where time is lost", f"{finding.exposed_stage}, {words.stage_word(finding.pipeline_stage)}"),
        ("Confidence", f"{words.percent(finding.confidence)} %"),
    )
    listed = Html().join(Html("<div><dt>{}</dt><dd>{}</dd></div>").format(name, value) for name, value in facts)
    explanation = Html("<p>{}</p>").format(finding.explanation) if finding.explanation else Html()
    left = Html('{}<div class="cost"><p>{}{}</p>{}</div>').format(
        explanation, cost[0].upper() + cost[1:], per_step, bars.cost_bar(finding.cost, finding.severity)
    )
    remedies = _remedies(finding)
    where = _places(finding.where, sources, heat)
    left, right = (left + evidence + remedies, where) if where else (left + remedies, evidence)
    columns = Html('<div class="wide">{}</div><div class="wide">{}</div>').format(left, right)
    return Html(
        '<article class="card finding" aria-labelledby="finding-{number}">'
        '<h3 id="finding-{number}"><span class="badge sev-{finding.severity}">{finding.severity}</span> '
        "{finding.title}</h3>"
        '<p class="note"><b>{finding.code}</b> {finding.name}{dot}<code>stepscope rule {finding.code}</code>{rules}</p>'
        '<div class="columns">{columns}</div><dl class="facts">{listed}</dl></article>'
    ).format(
        number=number,
        finding=finding,
        dot=words.SEPARATOR,
        rules=_rules(finding),
        columns=columns if right else Html("<div>{}</div>").format(left),
        listed=listed,
    )


def _rules(finding: Finding) -> str:
    """Which rules of the static checker see the same in the source."""
    if finding.origin != "joined":
        return ""
    return f"{words.SEPARATOR}also in the source: {', '.join(finding.related_codes)}"


def _remedies(finding: Finding) -> Html:
    parts = []
    said = words.proof_word(finding).capitalize()
    for remedy in finding.remedies:
        proof = Html(" {}: <code>{}</code>").format(said, remedy.what_if) if remedy.what_if is not None else Html()
        proof += Html(" Edit: <code>{}</code>").format(remedy.edit) if remedy.edit is not None else Html()
        safety = {"safe": "safe to apply", "review": "review the change", "unsafe": "may change results"}[remedy.safety]
        rule = f"{remedy.rule}, " if remedy.rule and remedy.rule != finding.code else ""
        parts.append(Html('<li>{} <span class="tag">{}{}</span>{}</li>').format(remedy.text, rule, safety, proof))
    head = "Remedy" if len(parts) == 1 else "Remedies"
    listed = Html().join(parts)
    return Html('<div class="remedy"><h4>{}</h4><ul>{}</ul></div>').format(head, listed) if parts else Html()


def _places(places: Sequence[Place], sources: Mapping[str, str], heat: Heat) -> Html:
    """The first places with their source, each line shown once; the others as a list."""
    parts: list[Html] = []
    seen: set[tuple[str, int]] = set()
    for place in places:
        shown = excerpt(place, sources) if (place.file, place.line) not in seen and len(parts) < EXCERPTS else None
        label = words.place_text(place)
        if shown is not None:
            shares = {n.number: heat[key] for n in shown.lines if (key := (place.file, n.number)) in heat}
            parts.append(_source_figure(label, shown, shares))
            seen |= {(place.file, line.number) for line in shown.lines}
        else:
            absent = find_source(place.file, sources) is None and not parts
            note = " (no source in the session)" if absent else ""
            parts.append(Html('<p class="place"><code>{}</code>{}</p>').format(label, note))
    return Html().join(parts)


def _source_figure(label: str, shown: Excerpt, heat: Mapping[int, float]) -> Html:
    lines = Html().join(
        Html('<span class="line{}"><i>{}</i>{}{}\n</span>').format(
            " hit" if line.marked else "",
            line.number,
            _share(heat.get(line.number)) if heat else "",
            line.text,
        )
        for line in shown.lines
    )
    left = words.plural(shown.left_out, "more line")
    rest = Html('<p class="note">{}.</p>').format(left) if shown.left_out else Html()
    return Html(
        '<figure class="source"><figcaption><code>{0}</code></figcaption>'
        '<pre tabindex="0" role="region" aria-label="Source of {0}"><code>{1}</code></pre>{2}</figure>'
    ).format(label, lines, rest)


def _share(ratio: float | None) -> Html:
    """The cost of a line, in a column next to its number."""
    return Html("<b>{}</b>").format(f"{words.percent(ratio)} %" if ratio is not None else "")
