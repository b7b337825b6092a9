"""Claims of the value trial on the page of an experiment."""

from __future__ import annotations

import msgspec
import pytest
from tests.report.whatif_samples import CLAIM, REPORT

from stepscope.model.report.whatif import WhatIfClaim, WhatIfPlace, WhatIfValues
from stepscope.report.whatif import page as whatif_page


def page(*claims: WhatIfClaim, **fields: object) -> str:
    """The page of an experiment with these claims."""
    values = msgspec.structs.replace(WhatIfValues(claims=claims, tensors=53, steps=10), **fields)
    return whatif_page.render(msgspec.structs.replace(REPORT, values=values))


def test_a_claim_is_a_row() -> None:
    """Kind, lines, share with what it is a share of, time with its interval, and the remedy stand in the table."""
    shown = page(CLAIM)
    for text in (
        '<section id="values"',
        "53 tensors in 10 steps.",
        '<th scope="row">constant</th><td class="n">37 %</td>',
        '<p><code class="where">train.py:17 loss</code></p>',
        "one of the work (by shapes, no share of time).",
        "-40.0 %<br>-45.0 to -35.0 %",
        "Instead: compute it once.",
        "Cholesky, Solve, Mul ...",
    ):
        assert text in shown


def test_each_of_several_lines_has_its_share() -> None:
    """With one line the claim's share says it; with two each has its own, and a library's has no line."""
    places = (*CLAIM.places, WhatIfPlace(file="", line=0, function="", ratio=0.05))
    shown = page(msgspec.structs.replace(CLAIM, places=places))
    assert '<code class="where">train.py:17 loss</code> <span>(32 %)</span>' in shown
    assert '<code class="where">no line of the program</code> <span>(5 %)</span>' in shown


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"time_ratio": 0.0, "note": "its trial failed"}, "<p>Not timed: its trial failed.</p>"),
        ({"time_low": 0.0, "time_high": 0.0}, "-40.0 %<br>no interval"),
        (
            {"time_ratio": 0.99, "time_low": 0.97, "time_high": 1.01},
            "<p>Leaving these ops out makes no step faster.</p>",
        ),
        ({"basis": "op-times"}, "one of the measured time of all ops."),
    ],
)
def test_no_more_is_said_than_was_measured(fields: dict[str, object], said: str) -> None:
    """What was not timed, not often enough, or without an effect, says so; so does a share of time."""
    assert said in page(msgspec.structs.replace(CLAIM, **fields))


def test_without_claims() -> None:
    """Nothing claimed and nothing possible are different sentences; without the trial there is no section."""
    assert "53 tensors in 10 steps. Nothing need not be computed." in page()
    assert "Not possible: no step was seen." in page(note="no step was seen")
    assert 'id="values"' not in whatif_page.render(REPORT)


def test_names_of_the_program_are_escaped() -> None:
    """Files, functions and ops are the program's."""
    places = (WhatIfPlace(file="<script.py", line=1, function="<lambda>", ratio=0.3),)
    shown = page(msgspec.structs.replace(CLAIM, places=places, ops=("<while>",)))
    assert "&lt;script.py:1 &lt;lambda&gt;" in shown
    assert "<lambda>" not in shown
    assert "<while>" not in shown
