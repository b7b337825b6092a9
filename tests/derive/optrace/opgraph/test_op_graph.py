"""The graph of a step: its times are the trace's, its path is the report's, folding loses nothing."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Node
from tests.derive.op_traces import US, Maker
from tests.derive.optrace.opgraph.op_graphs import RUNS, STEPS, Traced, loop, maker, of, tables

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace.opgraph import folding, op_graph, picture
from stepscope.derive.optrace.opgraph.scopes import MOST, ROOT
from stepscope.derive.optrace.steps import critical_path


@pytest.fixture(scope="module")
def traced() -> Traced:
    """Two layers and their gradients."""
    return of(maker().view(), tables())


def _group(traced: Traced, *titles: str) -> int:
    """A group by the titles of the groups around it and its own."""
    at = ROOT
    for title in titles:
        at = next(one for one in traced.scopes.groups[at].groups if traced.scopes.groups[one].title == title)
    return at


def test_ops_have_their_times_and_hand_over_what_the_graph_says(traced: Traced) -> None:
    """Times are own times of one step; an op of no node has no arrows."""
    times = {node.name: node.own_ns for node in traced.graph.nodes}
    assert times == {name: US * dur for name, dur in (RUNS | {"beside/aside": 60, "beside/more": 60}).items()}
    arrows = {
        (traced.graph.nodes[one.source].name, traced.graph.nodes[taker].name)
        for one in traced.graph.tensors
        for taker in one.takers
    }
    assert arrows == set(zip(list(RUNS), list(RUNS)[1:], strict=False))
    assert {(one.text, one.bytes) for one in traced.graph.tensors} == {("float32[32,64]", 32 * 64 * 4)}


def test_time_of_an_op_is_without_that_of_the_ops_inside() -> None:
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(STEPS):
        made.step(1000.0 * i, 999, i)
        made.op(pool, "outer:Outer", 1000.0 * i + 100, 300)
        made.op(pool, "outer/inner:Inner", 1000.0 * i + 150, 100)
    times = {node.name: node.own_ns for node in of(made.view(), tables()).graph.nodes}
    assert times == {"outer": 200 * US, "outer/inner": 100 * US}


def test_the_path_is_the_step_and_its_ops_are_those_of_the_report() -> None:
    """Every typical step's path adds up to it; over all of them each op has the share that its gain says."""
    view, index = maker().view(), GraphIndex(tables().worker())
    path_ns: dict[str, int] = {}
    wall = 0
    for step in critical_path.typical(view.periods):
        graph = op_graph.build(view, index, None, step)
        assert graph is not None
        assert sum(part.dur_ns for part in graph.path) == graph.end_ns - graph.begin_ns
        by_node = dict.fromkeys(range(len(graph.nodes)), 0)
        for part in graph.path:
            if part.node >= 0:
                by_node[part.node] += part.dur_ns
        assert by_node == {at: node.path_ns for at, node in enumerate(graph.nodes)}
        wall += graph.end_ns - graph.begin_ns
        for node in graph.nodes:
            path_ns[node.name] = path_ns.get(node.name, 0) + node.path_ns
    gains = {gain.what[0]: gain.path_ratio for gain in view.gains() if gain.what[1]}
    assert gains == pytest.approx({name: ns / wall for name, ns in path_ns.items() if ns})
    assert set(gains) == set(RUNS)


def test_a_step_that_is_not_typical_is_refused() -> None:
    with pytest.raises(LookupError):
        op_graph.build(maker().view(), GraphIndex(tables().worker()), None, 99)


def test_layers_and_their_gradients_are_groups_of_their_own(traced: Traced) -> None:
    """Gradients are groups beside the layers; a group of one is none."""
    kinds = {group.title: group.kind for group in traced.scopes.groups[1:]}
    assert kinds == {"net": "scope", "one": "layer", "two": "layer", "gradient": "gradient", "beside": "scope"}
    assert traced.scopes.groups[_group(traced, "net", "one")].about == "Dense"


@pytest.mark.parametrize("opened", [(), ("net",), ("net", "two"), ("gradient",)], ids=str)
def test_folding_keeps_sums(traced: Traced, opened: tuple[str, ...]) -> None:
    """Whatever is open, what is in view adds up to all ops, and a group is the sum of what it holds."""
    groups = [_group(traced, *opened[: i + 1]) for i in range(len(opened))]
    folded = folding.build(traced.graph, traced.scopes, traced.sums, groups)
    assert folded.opened == set(groups)
    for of_item in ("own_ns", "path_ns", "calls"):
        whole = sum(getattr(node, of_item) for node in traced.graph.nodes)
        assert sum(getattr(item, of_item) for item in folded.visible()) == whole
    for item in folded.items:
        if item.open:
            inside = [other for other in folded.items if other.outer == item.group]
            assert item.own_ns == sum(other.own_ns for other in inside)
            assert item.ops == sum(other.ops for other in inside)


def test_arrows_between_groups_count_each_tensor_once() -> None:
    """One result that two ops of a group take is one tensor."""
    made, run = tables(), maker()
    step = made.graphs[0][0]
    step.op("net/two/Neg", "Neg", Node(step.id, 4, "net/one/Relu"))
    pool = run.thread("tf_Compute/3")
    for i in range(STEPS):
        run.op(pool, "net/two/Neg:Neg", 1000.0 * i + 260, 5, 10 + i)
    traced = of(run.view(), made)
    folded = folding.build(traced.graph, traced.scopes, traced.sums, [_group(traced, "net")])
    titles = [traced.scopes.groups[item.group].title for item in folded.items]
    found = {(titles[one.source], titles[one.target]): one for one in folded.arrows}
    assert (found["one", "two"].bytes, len(found["one", "two"].tensors)) == (32 * 64 * 4, 1)
    assert (found["net", "gradient"].bytes, found["net", "gradient"].unknown) == (32 * 64 * 4, 0)


def test_a_loop_leads_back_and_is_placed() -> None:
    """The turn's end gives to the next turn's begin: an arrow upwards, and nothing that is placed twice."""
    traced = loop()
    folded = folding.build(traced.graph, traced.scopes, traced.sums, range(1, len(traced.scopes.groups)))
    places = picture.build(folded)
    assert [group.kind for group in traced.scopes.groups[1:]] == ["loop"]
    names = [traced.scopes.titles[item.node] if item.node >= 0 else "loop" for item in folded.items]
    arrows = {(names[one.source], names[one.target]): at for at, one in enumerate(folded.arrows)}
    assert set(arrows) == {("first", "loop"), ("product", "tanh"), ("tanh", "product"), ("loop", "after")}
    assert places.back == {arrows["tanh", "product"]}
    assert len(set(places.corners)) == len(folded.items)
    calls = {names[at]: item.calls for at, item in enumerate(folded.items)}
    assert calls["product"] == 5


def test_very_many_ops_are_divided_and_a_few_are_shown() -> None:
    """10,000 ops of one scope: opening a group never shows more than a screenful, and all of them are in one."""
    made = Maker()
    pool = made.thread("tf_Compute")
    for i in range(2):
        made.step(30_000.0 * i, 29_999, i)
        for number in range(10_000):
            made.op(pool, f"all/op_{number}:Mul", 30_000.0 * i + 10 + 2 * number, 1)
    traced = of(made.view(), tables())
    assert len(traced.graph.nodes) == 10_000
    assert all(len(group.groups) + len(group.ops) <= MOST for group in traced.scopes.groups)
    assert sorted(at for group in traced.scopes.groups for at in group.ops) == list(range(10_000))
    usual = folding.build(traced.graph, traced.scopes, traced.sums, folding.usual(traced.scopes, traced.sums))
    assert len(list(usual.visible())) <= folding.SHOWN
    every = folding.build(traced.graph, traced.scopes, traced.sums, range(1, len(traced.scopes.groups)))
    assert len(list(every.visible())) <= folding.MOST_SHOWN
    assert every.left_folded > 0
    assert sum(item.own_ns for item in every.visible()) == traced.graph.own_ns
