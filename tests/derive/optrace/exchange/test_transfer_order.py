"""The order of transfers: what was needed when, what came too early, and what the best order gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.derive.exchanges import US, Exchange, layers

from stepscope.derive.optrace.exchange import transfer_order
from stepscope.derive.optrace.exchange.transfer_order import DeviceTransfers
from stepscope.readers import run_metadata

DATA = Path(__file__).parents[3] / "data" / "run-metadata-2.21"
IN_ORDER, REVERSED = (1_000, 2_000, 3_000, 4_000), (4_000, 3_000, 2_000, 1_000)


def of(came: tuple[float, ...], work: float) -> DeviceTransfers:
    """The order of layers whose weights came so."""
    found = transfer_order.build(layers(came, work))
    assert found is not None
    return found


def test_in_the_order_of_need_nothing_is_gained() -> None:
    """Compute stands still, but for the link, not for the order."""
    found = of(IN_ORDER, 500)
    assert (found.gain_ns, found.early, found.runs) == (0, 0, 3)
    assert [one.name for one in found.parameters] == [f"w{i}/read" for i in range(4)]
    assert [one.came_ns for one in found.parameters] == [US * at for at in IN_ORDER]
    assert found.still_ns == pytest.approx(US * (999 + 3 * 500))


def test_the_most_urgent_last_delays_everything() -> None:
    """The first layer waits for the whole of the link; of four layers three could have run meanwhile."""
    found = of(REVERSED, 500)
    assert found.early == 3
    assert [one.early for one in found.parameters] == [0, 3, 3, 3]
    first, second, *_ = found.parameters
    assert (first.name, first.came_ns) == ("w0/read", US * 4_000)
    assert first.waited_ns == pytest.approx(US * 3_999)
    assert (second.needed_ns, second.waited_ns) == (US * 4_500, 0)
    assert found.still_ns == pytest.approx(US * 3_999)
    assert found.gain_ns == pytest.approx(US * 1_500)


def test_where_compute_takes_as_long_as_the_link_the_most_is_gained() -> None:
    """And where it is next to nothing, nothing: the link alone says how long a step takes."""
    assert of(REVERSED, 1_000).gain_ns == pytest.approx(US * 3_000)
    assert of(REVERSED, 1).gain_ns == pytest.approx(US * 3, abs=1)


def test_weights_that_were_there_in_time_are_not_to_blame() -> None:
    """Layers take so long that what came out of order had come before it was needed."""
    found = of((1_000, 4_000, 3_000, 2_000), 9_000)
    assert found.early == 2
    assert found.gain_ns == 0
    assert [one.waited_ns > 0 for one in found.parameters] == [True, False, False, False]


def test_what_a_weight_goes_through_before_its_layer_does_not_hide_the_layer() -> None:
    """A cast of the weights alone needs nothing else; the layer behind it does."""
    made = Exchange()
    made.op("x", 0, 1, kind="IteratorGetNext")
    made.transfer("w0/read", 0, 200)
    made.transfer("w1/read", 0, 100)
    made.op("cast", 101, 1, "w1/read_S2", kind="Cast")
    made.op("scale", 0, 1, kind="Const")
    made.op("scaled", 103, 1, "cast, scale", kind="Mul")
    made.op("layer0", 201, 50, "x, w0/read_S1")
    made.op("layer1", 252, 50, "layer0:0, scaled, ^x")
    found = transfer_order.build(made.trace())
    assert found is not None
    assert [(one.name, one.needed_ns) for one in found.parameters] == [("w0/read", US), ("w1/read", US * 251)]


def test_links_are_judged_apart() -> None:
    """What came from another server took nothing of this link."""
    made = Exchange()
    made.op("x", 0, 1, kind="IteratorGetNext")
    made.transfer("w1/read", 0, 100)
    made.transfer("w0/read", 0, 400)
    made.op("layer0", 401, 50, "x, w0/read_S1")
    made.op("layer1", 452, 50, "layer0, w1/read_S2")
    same = transfer_order.build(made.trace())
    assert same is not None
    assert (same.early, same.gain_ns > 0) == (1, True)


def test_a_run_of_a_real_worker_in_the_worst_order() -> None:
    """TensorFlow sent six layers' weights over a slow link, the first layer's last."""
    found = transfer_order.build(run_metadata.read_file(DATA / "ps-worker-reversed.pb"))
    assert found is not None
    assert [one.name for one in found.parameters] == [f"MatMul{f'_{i}' if i else ''}/ReadVariableOp" for i in range(6)]
    assert (found.early, found.parameters[0].early, found.small) == (5, 0, 0)
    waited = found.parameters[0].waited_ns
    assert waited == max(one.came_ns for one in found.parameters) == pytest.approx(found.still_ns, rel=0.001)
    assert 0 < found.gain_ns < found.still_ns


def test_without_names_of_inputs_nothing_is_said() -> None:
    """Nor where nothing came."""
    made = Exchange()
    made.op("x", 0, 1, kind="IteratorGetNext")
    made.transfer("w0/read", 0, 400)
    assert transfer_order.build(made.trace()) is None
    made = Exchange()
    made.op("x", 0, 1, "y", kind="IteratorGetNext")
    assert transfer_order.build(made.trace()) is None


def test_a_loop_takes_the_newest_turn() -> None:
    """An op that ran twice gives the second of them what the first gave; a circle of names is no circle."""
    made = Exchange()
    made.op("x", 0, 1, kind="IteratorGetNext")
    made.transfer("w0/read", 0, 100)
    made.transfer("w1/read", 0, 50)
    made.op("body", 101, 10, "next, w0/read_S1")
    made.op("next", 112, 10, "body, w1/read_S3")
    made.op("body", 123, 10, "next, w0/read_S1")
    found = transfer_order.build(made.trace())
    assert found is not None
    assert [one.name for one in found.parameters] == ["w0/read", "w1/read"]
