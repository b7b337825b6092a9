"""GRF005 row-by-row-loop-in-graph: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES, mapped, mapping, read, unseen
from tests.detectors.jobs import train_loop
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.base import run
from stepscope.detectors.graph.row_by_row_loop_in_graph import DETECTOR
from stepscope.detectors.registry import ALL

FIXTURES = Fixtures(
    firing=lambda: mapped(60_000),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(("train.py", LINE),),
        metrics=("loop_ratio", "saved_ratio", "turns_per_step", "traced_steps"),
        title=("a loop of the graph in loss", "100 iterations", "60 %", "map_fn"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="whole-batch",
        basis="modelled",
    ),
    silent=lambda: mapped(60_000, tables=mapping(carries=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: mapped(9_900),
    at=lambda: mapped(10_100),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (mapping(sums=True), ["GRF005"]),
        (mapping(carries=True), []),
        (mapping(changes=True), []),
    ],
    ids=["sum-over-rows", "recurrence", "training-steps"],
)
def test_turns_that_need_each_other_are_no_rows(tables: Tables, found: list[str]) -> None:
    """A sum over rows is one as well; a recurrence, or a loop around training steps, is none, whatever it takes."""
    assert codes(mapped(60_000, tables=tables)) == found
    assert asked(tables) == found


def test_without_a_trace_the_turns_are_counted_from_the_graph() -> None:
    """Many thousand ops in each step are too many to trace first; where nobody knows the turns, it is only asked."""

    def job(rows: int) -> Job:
        made = train_loop(60 * MS)
        read(made, mapping(rows_of=rows, of=made.trace(0, MS, owner="user", updates=1).id))
        return made

    (found,) = look(DETECTOR, job(50_000))[0]
    assert "50,000 iterations" in found.title
    assert (found.cost.basis, found.evidence[-1].metric) == ("modelled", "counted_nodes")
    assert look(DETECTOR, job(0))[0] == ()
    assert look(DETECTOR, job(8))[0] == ()


def test_long_turns_gain_nothing() -> None:
    """A loop whose ops work for a millisecond each spends its time in them: the whole batch would too."""
    assert codes(mapped(60_000, each=600.0)) == []


def test_a_loop_of_which_no_op_is_seen_takes_what_passes_until_it_is_needed() -> None:
    """TensorFlow leaves cheap ops out of traces once they ran some 90 times."""
    findings, _, _ = run(ALL, unseen(60_000).view())
    assert [f.code for f in findings] == ["GRF005"]
    assert findings[0].cost.ratio == pytest.approx(0.6, abs=0.01)
    assert "turns" not in findings[0].title


def test_what_others_may_have_done_meanwhile_is_not_the_loop_s() -> None:
    """Another op runs all that time; or many nodes beside it are not seen either."""
    assert codes(unseen(60_000, other=59_000)) == []
    assert codes(unseen(60_000, beside=200)) == []
