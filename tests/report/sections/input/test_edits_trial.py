"""The edits of the input as a trial."""

from __future__ import annotations

import pytest
from tests.detectors.jobs import train_loop

from stepscope.agent.trials.inputs.edits import Edits
from stepscope.causes.input.input_bound import Edit, EditKind
from stepscope.causes.input.source_change import SourceChange
from stepscope.derive.input.bound import BatchPace
from stepscope.derive.view import SessionView
from stepscope.experiments import interventions
from stepscope.model.log.events import DatasetMade
from stepscope.report.sections.input import chains, edits_trial

FILE = "/job/train.py"
MAP = DatasetMade(at=0, id=1, cls="ParallelMapDataset", file=FILE, line=15)
FILTER = DatasetMade(at=0, id=2, cls="FilterDataset", file=FILE, line=16)
ELSEWHERE = DatasetMade(at=0, id=3, cls="BatchDataset", file="/job/data.py", line=4)
MOVE = SourceChange(kind="move", made=FILTER, other=MAP)
CACHE = SourceChange(kind="insert", made=MAP, text="cache()")


def edit(kind: EditKind, *changes: SourceChange) -> Edit:
    """An edit with its changes of the text."""
    return Edit(kind=kind, text="", made=None, changes=changes, after=BatchPace(ns=1.0, binds="cores"))


@pytest.fixture(scope="module")
def view() -> SessionView:
    """A session without sources."""
    return SessionView(train_loop(10_000_000).session())


def test_all_edits_are_one_trial_that_the_agent_reads(view: SessionView) -> None:
    parallel = SourceChange(kind="keyword", made=MAP, text="num_parallel_calls=tf.data.AUTOTUNE")
    prefetch = SourceChange(kind="insert", made=FILTER, text="prefetch(tf.data.AUTOTUNE)")
    removed = SourceChange(kind="remove", made=MAP)
    found = edits_trial.of(view, [edit("earlier", MOVE), edit("cache", CACHE, removed), edit("prefetch", prefetch)], {})
    assert found.endswith("train.py:filter@16<map@15;map@15+cache;-map@15;filter@16+prefetch")
    assert edits_trial.of(view, [edit("parallel", parallel)], {}).endswith(":map@15+parallel")
    intervention, argument = interventions.parse(found)
    assert intervention.name == edits_trial.NAME
    assert Edits(argument).missing([]) == "filter@16 isn't called"


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [edit("earlier", MOVE), edit("prefetch")],
        [edit("earlier", MOVE), edit("cache", SourceChange(kind="insert", made=ELSEWHERE, text="cache()"))],
    ],
    ids=["none", "one at no call", "two files"],
)
def test_edits_that_no_trial_can_make(view: SessionView, edits: list[Edit]) -> None:
    assert edits_trial.of(view, edits, {}) == ""


def test_a_call_in_a_loop_over_epochs_is_one_call() -> None:
    """Each epoch takes from the same dataset; two maps of one input with different functions are two calls."""
    taken = [DatasetMade(at=0, id=20 + i, cls="TakeDataset", file=FILE, line=17, inputs=[2]) for i in range(9)]
    names = {one.id: "take" for one in taken}
    assert set(chains.ordinals(taken, names).values()) == {(1, 1)}
    pair = [
        DatasetMade(at=0, id=i, cls="MapDataset", file=FILE, line=18, inputs=[2], fn_name=name)
        for i, name in ((40, "image"), (41, "label"), (42, "image"))
    ]
    assert chains.ordinals(pair, dict.fromkeys((40, 41, 42), "map")) == {40: (1, 2), 41: (2, 2), 42: (1, 2)}


def test_the_second_of_two_maps_on_a_line_is_told_from_the_first(view: SessionView) -> None:
    """Calls of a chain are made in the order in which it is written."""
    second = DatasetMade(at=0, id=9, cls="MapDataset", file=FILE, line=15)
    ordinals = chains.ordinals((second, MAP, FILTER), {1: "map", 2: "filter", 9: "map"})
    assert ordinals == {1: (1, 2), 9: (2, 2), 2: (1, 1)}
    change = SourceChange(kind="insert", made=second, text="cache()")
    assert edits_trial.of(view, [edit("cache", change)], ordinals).endswith("train.py:map@15#2+cache")
    text = "rows = source().map(prepare).map(jitter)\n"
    moved = chains.edited(
        text,
        [SourceChange(kind="insert", made=DatasetMade(at=0, id=1, cls="", file=FILE, line=1), text="cache()")],
        {1: "map"},
        {1: (1, 2)},
    )
    assert moved == "rows = source().map(prepare).cache().map(jitter)\n"
