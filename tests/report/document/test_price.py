"""What samples cost at a price per hour of machine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.report import samples

from stepscope.model.report.step_summary import Throughput
from stepscope.report import text
from stepscope.report.document import price


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (Throughput(samples_per_s=10.0, steps_per_s=1.0), "at 3.6 an hour a thousand samples cost 0.1"),
        (Throughput(samples_per_s=1_000.0), "at 3.6 an hour a million samples cost 1"),
        (Throughput(steps_per_s=1.0), "at 3.6 an hour a thousand steps cost 1"),
    ],
)
def test_what_samples_cost(rate: Throughput, said: str) -> None:
    """The unit is the smaller one that costs a cent."""
    base = samples.input_bound()
    report = replace(base, session=replace(base.session, throughput=rate))
    first, *findings = price.lines(report, 3.6)
    assert first == said
    cost = float(said.rpartition(" ")[2])
    ratio = next(f.cost.ratio for f in report.findings if f.severity != "info")
    assert findings[0].startswith(f"finding 1: {cost * ratio:.3g} less (")
    assert said in text.render(report, price=3.6)


def test_nothing_is_said_without_a_price_or_a_rate() -> None:
    """Neither is guessed."""
    base = samples.input_bound()
    assert price.lines(base, 0.0) == ()
    assert price.lines(replace(base, session=replace(base.session, throughput=None)), 3.6) == ()
