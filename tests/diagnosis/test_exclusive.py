"""Costs of findings about the same time do not add up: what each adds is never more than what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.sessions import MS
from tests.detectors.jobs import called_back
from tests.report.samples import finding

from stepscope.diagnosis import exclusive
from stepscope.diagnosis.analyze import report_of
from stepscope.model.report.report import Component
from stepscope.report import markdown
from stepscope.tables.findings import Evidence, Finding

STEP = {"input-wait": 0.61, "call": 0.31, "callbacks": 0.05, "other-python": 0.03}


def anatomy(shares: dict[str, float]) -> tuple[Component, ...]:
    """Components with these shares."""
    return tuple(
        Component(component=name, pipeline_stage="none", ratio=ratio, ns_per_step=0) for name, ratio in shares.items()
    )


def costing(ratio: float, *components: str, **fields: object) -> Finding:
    """A finding that claims time of components, of any where none is named."""
    refs = tuple(f"component:{name}" for name in components)
    evidence = (Evidence(metric="share", value=ratio, unit="ratio", refs=refs),)
    made = finding(ratio=ratio, pipeline_stage="none", cause="unknown", evidence=evidence)
    return replace(made, cost=replace(made.cost, ratio=ratio), **fields)


def added(*findings: Finding, shares: dict[str, float] = STEP) -> list[float]:
    """What each adds."""
    found = exclusive.annotated(findings, anatomy(shares))
    return [f.cost.exclusive_ratio for f in found if f.cost.exclusive_ratio is not None]


@pytest.mark.parametrize(
    ("findings", "adds"),
    [
        ([costing(0.58, "input-wait")], [0.58]),
        ([costing(0.58, "input-wait"), costing(0.58, "input-wait")], [0.58, 0.03]),  # one wait, seen twice
        ([costing(0.58, "input-wait"), costing(0.2, "call")], [0.58, 0.2]),  # two times of the step
        ([costing(0.58, "input-wait"), costing(0.6)], [0.58, 0.42]),  # what slows all has the rest
        ([costing(0.6), costing(0.58, "input-wait")], [0.6, 0.4]),  # in either order
        ([costing(0.3), costing(0.3, "call")], [0.3, 0.3]),  # the first may have been saved elsewhere
        ([costing(0.5, "call")], [0.5]),  # more than the component has: the rest lies elsewhere
        ([costing(0.9, exposed_stage="initialization"), costing(0.61, "input-wait")], [0.9, 0.61]),  # two wholes
    ],
)
def test_what_a_finding_adds(findings: list[Finding], adds: list[float]) -> None:
    """A finding adds what no finding before it claims of the time that it is about."""
    assert added(*findings) == pytest.approx(adds)


def test_without_an_anatomy_the_step_is_one() -> None:
    """Where the step was not taken apart, costs add up to it at most."""
    assert added(costing(0.7, "call"), costing(0.5), shares={}) == pytest.approx([0.7, 0.3])


_NAMES = st.sampled_from(list(STEP))
_RATIOS = st.floats(0, 1)
_CLAIMS = st.lists(st.tuples(_RATIOS, st.sets(_NAMES, max_size=3)), max_size=8)


@given(claims=_CLAIMS, weights=st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_the_whole_is_paid_once(claims: list[tuple[float, set[str]]], weights: list[float]) -> None:
    """For any findings and any split of the step: additions are within their costs, and sum to 1 at most."""
    total = sum(weights)
    shares = {n: w / total for n, w in zip(STEP, weights, strict=True)} if total > 1e-6 else {}
    adds = added(*(costing(r, *sorted(c)) for r, c in claims), shares=shares)
    assert len(adds) == len(claims)
    assert all(0 <= add <= ratio + 1e-9 for add, (ratio, _) in zip(adds, claims, strict=True))
    assert sum(adds) <= 1 + 1e-9


@given(claims=_CLAIMS)
def test_a_component_is_paid_once(claims: list[tuple[float, set[str]]]) -> None:
    """For any findings: those about some components add their share at most, where no claim exceeds it by itself."""
    fitting = [(r, c) for r, c in claims if c and r <= sum(STEP[name] for name in c)]
    adds = added(*(costing(r, *sorted(c)) for r, c in fitting))
    for name, share in STEP.items():
        assert sum(a for a, (_, c) in zip(adds, fitting, strict=True) if c == {name}) <= share + 1e-9


@given(claims=_CLAIMS)
def test_what_overlaps_with_nothing_is_whole(claims: list[tuple[float, set[str]]]) -> None:
    """The first finding adds its whole cost."""
    adds = added(*(costing(r, *sorted(c)) for r, c in claims))
    assert adds[:1] == pytest.approx([r for r, _ in claims[:1]])


def test_a_report_says_what_is_left() -> None:
    """Two costs that exceed the step together are not added up by whoever reads: the second says what it adds."""
    job = called_back(60 * MS)
    job.machine(10, cpus=2, got=0.6, waiting=1.4, others=1.4)
    report = report_of(job.session())
    costs = [f.cost for f in report.findings]
    assert sum(c.ratio for c in costs) > 1
    assert sum(c.exclusive_ratio or 0.0 for c in costs) <= 1 + 1e-9
    first, second = markdown.render(report).split("costs ")[1:3]
    assert "on top" not in first
    more = f"at most {100 * (costs[1].exclusive_ratio or 0.0):.0f} % more is saved once the findings above are fixed"
    assert more in second
