"""What the value trial saw, on the page of an experiment: a table of claims, each with its lines, share and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.marked import Html
from stepscope.report.page.tables import paragraphs, table
from stepscope.report.whatif import values_text as texts

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfReport, WhatIfValues

HEAD = ("Claim", "Needless share", "Time without", "Where, what was seen, and what to do")


def section(report: WhatIfReport) -> Html:
    """The section; "" if values were not looked at."""
    values = report.values
    if values is None:
        return Html()
    return Html('<div class="card"><p class="note">{}</p>{}</div>').format(_note(values), _claims(values))


def _note(values: WhatIfValues) -> str:
    looked = texts.title(values).removeprefix("values: ")
    said = f"{looked[0].upper()}{looked[1:]}."
    if not values.claims:
        return said if values.note else f"{said} Nothing need not be computed."
    bases = " or ".join(dict.fromkeys(texts.basis_text(claim).removeprefix("of ") for claim in values.claims))
    return (
        f"{said} The needless share is one of {bases}. The time is that of the job without these ops, measured in the "
        "same rounds as all trials: the most that a way around them can bring."
    )


def _claims(values: WhatIfValues) -> Html:
    return table(HEAD, [_claim(claim) for claim in values.claims], numeric=(1, 2)) if values.claims else Html()


def _claim(claim: WhatIfClaim) -> Html:
    said = [f"{claim.text[0].upper()}{claim.text[1:]}." if claim.text else "", f"Instead: {claim.remedy}."]
    if not claim.time_ratio:
        said.append(f"Not timed: {claim.note}.")
    elif claim.time_high >= 1.0:
        said.append("Leaving these ops out makes no step faster.")
    ops = Html('<p>Ops: <code class="where">{}</code></p>').format(texts.ops_text(claim)) if claim.ops else Html()
    return Html('<th scope="row">{}</th><td class="n">{:.0f} %</td><td class="n">{}</td><td>{}{}{}</td>').format(
        claim.kind,
        100 * claim.ratio,
        _time(claim),
        _places(claim),
        paragraphs(text for text in said if text),
        ops,
    )


def _places(claim: WhatIfClaim) -> Html:
    """The lines, each with its share if there are several."""
    return paragraphs(_place(place, alone=len(claim.places) == 1) for place in claim.places)


def _place(place: WhatIfPlace, *, alone: bool) -> Html:
    share = Html() if alone else Html(" <span>({:.0f} %)</span>").format(100 * place.ratio)
    return Html('<code class="where">{}</code>{}').format(f"{texts.line_text(place)} {place.function}".strip(), share)


def _time(claim: WhatIfClaim) -> Html:
    if not claim.time_ratio:
        return Html("not timed")
    change = f"{100 * (claim.time_ratio - 1):+.1f} %"
    if not claim.time_high:
        return Html("{}<br>no interval").format(change)
    return Html("{}<br>{:+.1f} to {:+.1f} %").format(change, 100 * (claim.time_low - 1), 100 * (claim.time_high - 1))
