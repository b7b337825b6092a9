"""What the value trial saw, on the page of an experiment: a table of claims, each with its lines, share and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.reports.page.svg import escape
from stepscope.reports.page.tables import table
from stepscope.reports.whatif import values_text as texts

if TYPE_CHECKING:
    from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfReport, WhatIfValues

HEAD = ("Claim", "Needless share", "Time without", "Where, what was seen, and what to do")


def section(report: WhatIfReport) -> str:
    """The section; "" if values were not looked at."""
    values = report.values
    if values is None:
        return ""
    return f'<div class="card"><p class="note">{escape(_note(values))}</p>{_claims(values)}</div>'


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


def _claims(values: WhatIfValues) -> str:
    return table(HEAD, [_claim(claim) for claim in values.claims], numeric=(1, 2)) if values.claims else ""


def _claim(claim: WhatIfClaim) -> str:
    said = [f"{claim.text[0].upper()}{claim.text[1:]}." if claim.text else "", f"Instead: {claim.remedy}."]
    if not claim.time_ratio:
        said.append(f"Not timed: {claim.note}.")
    elif claim.time_high >= 1.0:
        said.append("Leaving these ops out makes no step faster.")
    ops = f'<p>Ops: <code class="where">{escape(texts.ops_text(claim))}</code></p>' if claim.ops else ""
    return (
        f'<th scope="row">{escape(claim.kind)}</th><td class="n">{100 * claim.ratio:.0f} %</td>'
        f'<td class="n">{_time(claim)}</td>'
        f"<td>{_places(claim)}{''.join(f'<p>{escape(text)}</p>' for text in said)}{ops}</td>"
    )


def _places(claim: WhatIfClaim) -> str:
    """The lines, each with its share if there are several."""
    return "".join(f"<p>{_place(place, alone=len(claim.places) == 1)}</p>" for place in claim.places)


def _place(place: WhatIfPlace, *, alone: bool) -> str:
    share = "" if alone else f" <span>({100 * place.ratio:.0f} %)</span>"
    return f'<code class="where">{escape(f"{texts.line_text(place)} {place.function}".strip())}</code>{share}'


def _time(claim: WhatIfClaim) -> str:
    if not claim.time_ratio:
        return "not timed"
    change = f"{100 * (claim.time_ratio - 1):+.1f} %"
    if not claim.time_high:
        return f"{change}<br>no interval"
    return f"{change}<br>{100 * (claim.time_low - 1):+.1f} to {100 * (claim.time_high - 1):+.1f} %"
