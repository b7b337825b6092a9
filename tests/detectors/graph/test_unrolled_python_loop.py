"""GRF002 unrolled-python-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import unrolled_and_read
from tests.detectors.jobs import CALL, LAYER_SOURCE, TURN, keras_fit, unrolled

from stepscope.detectors.base import run
from stepscope.detectors.graph.unrolled_python_loop import DETECTOR
from stepscope.detectors.registry import ALL

UNROLLED_STEPS = 9_920 * MS
FIXTURES = Fixtures(
    firing=lambda: unrolled_and_read(UNROLLED_STEPS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("layer.py", TURN),),
        metrics=("tracing_ratio", "graph_nodes", "loop_ratio", "turns", "variables"),
        per_step=UNROLLED_STEPS // 100,
        title=("unrolled", "1,000 nodes", "50 %"),
        introduced="model building",
        exposed="initialization",
        pipeline_stage="forward-backward",
        remedy="vectorise",
    ),
    silent=lambda: unrolled_and_read(UNROLLED_STEPS, turns=12),
    not_applicable=lambda: keras_fit(20 * MS),
    missing="traces of tf.functions",
    below=lambda: unrolled_and_read(UNROLLED_STEPS * 15 // 85 - MS),
    at=lambda: unrolled_and_read(UNROLLED_STEPS * 15 // 85 + MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_loop_over_layers_is_not_an_unrolled_loop() -> None:
    """A stack of a dozen large layers makes a large graph too, but each turn brings its own variables."""
    assert codes(unrolled(9_920 * MS, nodes=11_940, variables=578)) == []
    assert codes(unrolled(9_920 * MS, nodes=4_226, variables=11)) == ["GRF002"]


@pytest.mark.parametrize(
    ("turns", "of", "found"),
    [
        (15, "", []),
        (16, "", ["GRF002"]),
        (40, "layers", []),
        (40, "weights", []),
    ],
)
def test_a_loop_is_told_by_what_the_graph_repeats(turns: int, of: str, found: list[str]) -> None:
    """Enough turns of one computation; turns over layers or weights of their own are none, however many."""
    job = unrolled_and_read(9_920 * MS, turns=turns, layers=of == "layers", weights=of == "weights")
    assert codes(job) == found


def test_samples_tell_the_loop_where_the_graph_was_not_read() -> None:
    """A job that ends soon after its trace: the loop by the samples, and that it is one by nodes per variable."""
    (found,) = find(unrolled(9_920 * MS))
    assert (found.code, found.where[0].line) == ("GRF002", 4)
    assert [e.metric for e in found.evidence if e.threshold is not None][-2:] == ["nodes_per_variable", "samples"]


@pytest.mark.parametrize("below", [True, False], ids=["made-the-ops", "around-the-trace"])
def test_a_loop_around_a_trace_makes_no_ops(*, below: bool) -> None:
    """A callback of Keras' that loops around predict has its loop on the stack of predict's trace, and unrolls none."""
    job = unrolled(9_920 * MS, samples=0)
    keras = Frame("/usr/lib/python3/site-packages/keras/src/trainers/trainer.py", "fit", 371, own=False)
    trace = Frame("/usr/lib/python3/site-packages/tensorflow/python/framework/func_graph.py", "func", 1060, own=False)
    loop = Frame("/job/layer.py", "call", TURN + 1)
    stack = (trace, loop) if below else (loop, trace, Frame("/job/layer.py", "body", 1))
    job.samples([(i + 1) * 9_920 * MS // 21 for i in range(20)], Frame(SCRIPT, "main", CALL), keras, *stack)
    assert ("GRF002" in codes(job)) == below


def test_a_graph_that_nobody_saw_is_undecided() -> None:
    """A large graph that took long to trace, without nodes or samples: nothing is cleared."""
    _, checked, _ = run(ALL, unrolled(9_920 * MS, samples=0).view())
    outcomes = {c.detector: c for c in checked}
    assert (outcomes["GRF002"].outcome, outcomes["GRF002"].missing) == ("undecided", ("nodes of traced graphs",))


@pytest.mark.parametrize("folder", ["/home/me/job", "/home/me/tensorflow"])
def test_a_loop_around_the_fit_is_none_wherever_the_program_lies(folder: str) -> None:
    """A program in a folder that is called like the framework is still the user's."""
    job = unrolled(9_920 * MS, samples=0)
    job.sources |= {
        f"{folder}/train.py": "def main():\n    for turn in range(9):\n        model.fit(x)\n",
        "/job/layer.py": LAYER_SOURCE,
    }
    keras = Frame("/usr/lib/python3/site-packages/keras/src/layers/layer.py", "__call__", 900, own=False)
    stack = (Frame(f"{folder}/train.py", "main", 3), keras, Frame("/job/layer.py", "call", TURN - 1))
    job.samples([(i + 1) * 400 * MS for i in range(20)], *stack)
    assert codes(job) == []
