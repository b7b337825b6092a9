"""The input pipeline of a trace: its tree, whose work is whose, and what calling a function costs."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import US, Maker

from stepscope.derive.optrace.host.traced_stages import Tree, as_model


def _pipeline() -> Maker:
    """Ten batches: prefetch of a batch of two elements, each from a map of 32 us over a range of 1 us.

    Each run of the map's function begins 4 us after it was asked for, and works for 20.
    """
    made = Maker()
    fetch, own, pool = made.thread("get_next"), made.thread("tf_data_prefetch"), made.thread("tf_data_pool")
    for i in range(10):
        at = 100.0 * i
        made.step(at, 99, i)
        made.get_next(fetch, at, 90)
        made.stage(fetch, "Root", at + 1, 88)
        made.stage(fetch, "Root::Prefetch", at + 2, 86, buffered_elements=0, name="PrefetchDataset:3")
        made.span(own, "PrefetchProduce", at + 3, 80, element_id=i)
        made.stage(own, "Root::Prefetch::Batch", at + 4, 76)
        for k in range(2):
            start, run = at + 6 + 34 * k, 1000 + 2 * i + k
            made.stage(own, "Root::Prefetch::Batch::Map", start, 32)
            made.stage(own, "Root::Prefetch::Batch::Map::Range", start + 0.5, 1)
            made.span(own, "InstantiatedCapturedFunction::Run", start + 2, 29, id=run)
            made.op(pool, "map/Decode:DecodeJpeg", start + 6, 20, run)
    return made


def _tree(made: Maker) -> Tree:
    tree = made.view().pipeline
    assert tree is not None
    return tree


def test_the_tree_has_every_stage_once_with_its_own_time() -> None:
    tree = _tree(_pipeline())
    per_batch = {node.type: tree.per_batch(node.self_ns) / US for node in tree.root.walk()}
    assert tree.batches == 10
    assert [(n.type, n.calls) for n in tree.root.walk()] == [
        ("Root", 10),
        ("Prefetch", 10),
        ("Batch", 10),
        ("Map", 20),
        ("Range", 20),
    ]
    assert per_batch == pytest.approx({"Root": 2, "Prefetch": 4, "Batch": 12, "Map": 62, "Range": 2})
    assert tree.blocking.type == "Map"
    prefetch = tree.root.inputs[0]
    assert (prefetch.parallel, prefetch.buffered, prefetch.datasets) == (True, 0.0, "PrefetchDataset:3")


def test_what_a_function_does_and_what_calling_it_costs() -> None:
    function = _tree(_pipeline()).blocking.function
    assert function is not None
    assert (function.runs, function.run_ns, function.work_ns) == (20, 20 * 29 * US, 20 * 20 * US)
    assert function.types == {"DecodeJpeg": 20 * 20 * US}
    assert function.around_ratio == pytest.approx(9 / 29)


def test_a_stage_with_threads_of_its_own_works_there_and_its_calls_only_wait() -> None:
    """Runs that it started and that went on elsewhere are its work, also where a pool is shared with the step."""
    made = Maker()
    fetch, runner, pool = made.thread("get_next"), made.thread("runner"), made.thread("tf_Compute")
    for i in range(8):
        at = 100.0 * i
        made.step(at, 99, i)
        made.get_next(fetch, at, 60)
        made.stage(fetch, "Root", at + 1, 58)
        made.stage(fetch, "Root::ParallelMapV2", at + 2, 56, parallelism=2, buffered_elements=1)
        made.span(runner, "ParallelMapProduce", at, 10)
        made.stage(runner, "Root::ParallelMapV2::TFRecord", at + 1, 3)
        made.span(runner, "InstantiatedCapturedFunction::RunAsync", at + 5, 2, id=500 + i)
        made.op(pool, "map/Parse:ParseExampleV2", at + 12, 40, 500 + i)
        made.op(pool, "model/MatMul:MatMul", at + 61, 30, 900 + i)
    tree = _tree(made)
    node = tree.root.inputs[0]
    assert (node.parallel, node.parallelism, node.buffered) == (True, 2, 1.0)
    assert tree.per_batch(node.self_ns) == (10 - 3 + 52 - 7) * US
    assert tree.blocking is node
    assert made.view().breakdown.mean_ns("host-compute") == 30 * US


@pytest.mark.parametrize(("gap", "at_a_time"), [(0.0, 2), (40.0, 1)], ids=["together", "one after the other"])
def test_a_map_fused_with_its_batch_had_the_threads_that_its_calls_took(gap: float, at_a_time: int) -> None:
    """Its calls name no parallelism."""
    made = Maker()
    fetch, runner, pool = made.thread("get_next"), made.thread("runner"), made.thread("tf_Compute")
    for i in range(8):
        at = 100.0 * i
        made.step(at, 99, i)
        made.get_next(fetch, at, 90)
        made.stage(fetch, "Root", at + 1, 88)
        made.stage(fetch, "Root::MapAndBatch", at + 2, 86)
        made.span(runner, "MapAndBatchProduce", at, 80)
        made.stage(runner, "Root::MapAndBatch::Range", at + 1, 1)
        for k in range(2):
            made.span(runner, "InstantiatedCapturedFunction::RunAsync", at + 5 + (2 + gap) * k, 2, id=500 + 2 * i + k)
            made.op(pool, "map/Decode:DecodeJpeg", at + 8 + (2 + gap) * k, 35, 500 + 2 * i + k)
    assert _tree(made).root.inputs[0].parallelism == at_a_time


def test_inputs_of_one_kind_are_told_apart_and_elements_are_not() -> None:
    """Zip has two maps; interleave has as many readers as files, which are one stage."""
    made = Maker()
    fetch = made.thread("get_next")
    for i in range(4):
        at = 100.0 * i
        made.step(at, 99, i)
        made.get_next(fetch, at, 90)
        made.stage(fetch, "Root", at + 1, 80)
        made.stage(fetch, "Root::Zip", at + 2, 70)
        made.stage(fetch, "Root::Zip[0]::Map", at + 3, 10)
        made.stage(fetch, "Root::Zip[1]::Map", at + 14, 40)
        made.stage(fetch, "Root::Zip[1]::Map::Interleave", at + 15, 30)
        made.stage(fetch, f"Root::Zip[1]::Map::Interleave[{i}]::TFRecord", at + 16, 20)
    tree = _tree(made)
    assert [n.path[1:] for n in tree.root.walk()] == [
        (),
        ("Zip",),
        ("Zip[0]", "Map"),
        ("Zip[1]", "Map"),
        ("Zip[1]", "Map", "Interleave"),
        ("Zip[1]", "Map", "Interleave", "TFRecord"),
    ]
    assert [tree.per_batch(n.self_ns) / US for n in tree.root.walk()] == [10, 20, 10, 10, 10, 20]


def test_of_two_pipelines_the_one_counts_that_the_steps_took_more_from() -> None:
    made = _pipeline()
    fetch = made.thread("get_next/2")
    made.get_next(fetch, 995, 3)
    made.stage(fetch, "Root2", 995.5, 2)
    assert _tree(made).root.type == "Root"
    assert Maker().view().pipeline is None


def test_as_tf_datas_own_model() -> None:
    model = as_model(_tree(_pipeline()))
    assert [model.nodes[i].name for i in sorted(model.nodes)] == ["Root", "Prefetch", "Batch", "Map", "Range"]
    assert model.nodes[model.output].num_elements == 10
    assert model.nodes[4].processing_ns == 620 * US
    assert [model.nodes[i].inputs for i in (1, 2, 3, 4, 5)] == [(2,), (3,), (4,), (5,), ()]
