"""Graphs that look like a known problem and are another one, or none; and graphs whose time nobody knows."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.graph_jobs import (
    bag_tables,
    category_tables,
    checked,
    checked_tables,
    debug,
    double,
    double_tables,
    flattened_tables,
    graph_only,
    looked_up,
    mapped,
    mapping,
    one_hot_tables,
    padded,
    python_in_step,
    running,
    table_tables,
    unseen,
)
from tests.detectors.test_look_alikes import codes

from stepscope.derive.optrace.node_costs import OpShare
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL


def asked(tables: Tables) -> list[str]:
    """Codes of the detectors that ask for an op trace of a job with these graphs."""
    return asked_of(graph_only(tables))


def asked_of(job: Job) -> list[str]:
    """The same of a job in which nothing is found."""
    findings, outcomes, _ = run(ALL, job.view())
    assert findings == ()
    return [c.detector for c in outcomes if c.outcome == "undecided" and c.capture == "ops"]


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


@pytest.mark.parametrize(
    ("tables", "remedy"),
    [
        (category_tables(2048, 512), "segment-sum"),
        (category_tables(512, 512), "segment-sum"),
        (category_tables(512, 512, table=True), "gather"),
    ],
    ids=["by-category", "sizes-do-not-tell", "table-of-as-many-rows"],
)
def test_rows_added_up_by_category(tables: Tables, remedy: str) -> None:
    """With the matrix on its side it is a segment sum; counts of it beside that make no bag."""
    findings, _, _ = run(ALL, running(tables, ("MatMul:MatMul", 60_000)).view())
    assert [(f.code, f.remedies[0].id) for f in findings] == [("GRF007", remedy)]
    assert "one-hot matrix" in findings[0].title
    assert ("by category" in findings[0].title) == (remedy == "segment-sum")


@pytest.mark.parametrize("bincount", [False, True], ids=["one-hot-rows-joined", "counted"])
def test_a_multi_hot_matrix_is_a_sum_of_looked_up_rows(*, bincount: bool) -> None:
    """Keras' CategoryEncoding counts; written by hand it is the maximum of one-hot rows."""
    job = running(bag_tables(bincount=bincount), ("table/MatMul:MatMul", 60_000))
    findings, _, _ = run(ALL, job.view())
    assert [f.code for f in findings] == ["GRF007"]
    assert "added up by multiplying with a multi-hot matrix of 12,000 columns: 60 %" in findings[0].title
    assert "add them up" in findings[0].remedies[0].text
    assert asked(bag_tables(bincount=bincount)) == ["GRF007"]


def test_a_one_hot_matrix_joined_over_its_columns_is_none_any_more() -> None:
    """The maximum over the columns of each row leaves a mask of positions."""
    assert codes(running(bag_tables(over_columns=True), ("table/MatMul:MatMul", 60_000))) == []


def test_a_debugging_mode_that_is_off_again_is_none() -> None:
    """The mode was turned off, or nobody turned it on: what checks numbers then was asked for."""
    assert codes(checked(60_000, off=True)) == []


def test_checks_whose_time_nobody_knows_are_asked_about() -> None:
    """Without an op trace the graph shows the checks: one is wanted."""
    assert asked_of(debug(graph_only(checked_tables()), on=True)) == ["CFG005"]
    assert asked(checked_tables()) == []


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


def test_python_now_and_then_is_none() -> None:
    """Python that is put into the step's graph but takes a hundredth of the time."""
    assert codes(python_in_step(MS)) == []


def test_a_moment_that_others_share_counts_half() -> None:
    """Ops beside others cost between nothing and all of that time."""
    tables = Tables()
    node = tables.graph().op("model/MatMul", "MatMul")
    view = running(tables, ("model/MatMul:MatMul", 40_000), beside=20_000).view()
    assert view.node_costs is not None
    assert view.graphs is not None
    share = view.node_costs.of_nodes([view.graphs.node_of(node.name)])
    assert isinstance(share, OpShare)
    assert (share.low, share.ratio, share.high) == pytest.approx((0.2, 0.3, 0.4), abs=0.001)
    assert share.calls_per_step == 1


def test_small_things_are_not_asked_about() -> None:
    """What cannot cost anything, whatever its time, does not ask for a trace; what may, does."""
    assert asked(one_hot_tables(10)) == []
    assert asked(one_hot_tables(12_000)) == ["GRF007"]
    assert asked(double_tables(elements="")) == []
    assert asked(double_tables()) == ["GRF009"]
    assert asked(flattened_tables(units=4)) == []
    assert asked(flattened_tables()) == ["GRF011"]


def test_a_learning_rate_in_double_precision_is_none() -> None:
    """Scalars of a schedule are float64 often, and cost nothing."""
    assert codes(double(30, elements="")) == []


@pytest.mark.parametrize(
    ("job", "found"),
    [
        (looked_up(60_000, table_tables(resource=True)), ["GRF012"]),
        (looked_up(60_000, table_tables(batch="?")), ["GRF012"]),
        (looked_up(60_000, table_tables(rows=20_000)), []),
        (looked_up(60_000, table_tables(rows=100_000, batch="512,64")), []),
    ],
    ids=["by-handle", "batch-not-known", "small-table", "most-rows-in-use"],
)
def test_tables_of_which_some_rows_are_looked_up(job: Job, found: list[str]) -> None:
    """Keras 2 gathers by the variable's handle; small tables and those that a batch covers are no matter."""
    assert codes(job) == found


def test_what_work_on_a_table_costs_is_asked() -> None:
    """The graph alone does not say it."""
    assert asked(table_tables()) == ["GRF012"]
    assert asked(table_tables(tied=True)) == []


@pytest.mark.parametrize(
    ("works_on", "found"),
    [
        ("float32[?,400,64]", ["INP008"]),
        ("float32[400,?,64]", ["INP008"]),
        ("float32[?,8,400,400]", ["INP008"]),
        ("int32[?,400]", ["INP008"]),
        ("float32[?,400]", []),
        ("float32[1024,400]", []),
        ("float32[?,14,14,400]", []),
    ],
)
def test_a_layer_as_wide_as_the_sequences_are_long_is_no_padding(works_on: str, found: list[str]) -> None:
    """The same number is the width of a dense layer, its weights', or the channels of a convolution."""
    assert codes(padded(80_000, works_on=works_on)) == found


def test_what_is_only_stored_in_half_precision() -> None:
    """A table of float16 whose rows are gathered and cast: nothing is computed in it."""
    tables = double_tables(kind="float16")
    assert codes(running(tables, ("features/MatMul:MatMul", 60_000))) == ["GRF015"]
    assert codes(running(tables, ("Cast:Cast", 60_000))) == []
