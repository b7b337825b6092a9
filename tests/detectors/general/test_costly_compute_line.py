"""GEN001 costly-compute-line: its fixtures."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, graph_only, running

from stepscope.detectors.general.costly_compute_line import DETECTOR


def tables(kind: str = "TopKV2") -> Tables:
    """A step with one op of a line, and one of no line."""
    found = Tables()
    step = found.graph()
    data = step.op("data", "Placeholder", outputs="float32[64,64]")
    step.op("rank", kind, data, line=LINE, function="rank")
    step.op("loss", "Conv2D", data)
    return found


def sorting(spent: float, *, kind: str = "TopKV2") -> Job:
    """A step in which the op of the line runs ``spent`` us of 100,000."""
    return running(tables(kind), (f"rank:{kind}", spent), ("loss:Conv2D", 100_000 - spent))


FIXTURES = Fixtures(
    firing=lambda: sorting(60_000.0),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", LINE),),
        metrics=("function_ratio", "call_ratio", f"part of line {LINE}", "part of TopKV2"),
        title=("ops of rank", "TopKV2"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="out-of-the-step",
    ),
    silent=lambda: sorting(60_000.0, kind="MatMul"),
    not_applicable=lambda: graph_only(tables()),
    missing="op trace of some steps",
    below=lambda: sorting(15_000.0),
    at=lambda: sorting(40_000.0),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def deep(*ops: tuple[str, str, int, str], weight: bool = False, kind: str = "TopKV2") -> Job:
    """Ops of (name, function, percent, lines that call it) in a step with a product."""
    found = Tables()
    step = found.graph()
    data = step.variable("w", "float32[64,64]") if weight else step.op("data", "Placeholder", outputs="float32[64,64]")
    for number, (name, function, _, callers) in enumerate(ops):
        step.op(name, kind, data, line=LINE + number, function=function, callers=callers)
    step.op("product", "MatMul", data, line=50, function="step")
    rest = 100_000.0 - sum(1_000 * spent for _, _, spent, _ in ops)
    return running(found, *((f"{name}:{kind}", 1_000.0 * spent) for name, _, spent, _ in ops), ("product:MatMul", rest))


STEP = "train.py\tstep\t40"
LOSS = f"train.py\tloss\t30\n{STEP}"


def test_a_function_below_the_step_stands_above_information() -> None:
    """The deepest function that has nearly all of it is named with its lines and the lines that lead to it."""
    (found,), _ = look(DETECTOR, deep(("a", "rank", 40, LOSS), ("b", "rank", 20, LOSS), ("c", "loss", 5, STEP)))
    assert found.severity == "high"
    assert [(place.line, place.function) for place in found.where] == [
        (LINE, "rank"),
        (LINE + 1, "rank"),
        (30, "loss"),
        (40, "step"),
    ]
    assert "ops of rank, called by loss," in found.title
    assert found.cost.basis == "modelled"
    assert (found.cost.low, found.cost.high) == (0.0, found.cost.ratio)


def test_time_in_many_functions_is_told_of_their_caller() -> None:
    """Where no callee has nearly all of the time, their caller is named; the step's own function is information."""
    (found,), _ = look(DETECTOR, deep(("a", "rank", 30, STEP), ("b", "norm", 30, STEP)))
    assert (found.severity, found.where[0].function, found.where[0].line) == ("info", "step", 40)


def test_less_than_two_fifths_is_information() -> None:
    """A third of the steps in one function is told, and not claimed."""
    (found,), _ = look(DETECTOR, deep(("a", "rank", 33, LOSS)))
    assert (found.severity, found.cost.ratio, found.cost.basis) == ("info", 0.0, "unknown")


@pytest.mark.parametrize(
    ("function", "weight", "remedy"),
    [
        ("Rank.update_state", True, "metric-less-often"),
        ("rank", False, "out-of-the-step"),
        ("rank", True, "compute-less"),
    ],
)
def test_the_remedy_follows_the_place(function: str, weight: bool, remedy: str) -> None:
    """A metric is to be computed less often; what depends on the batch alone may leave the step; else it shrinks."""
    (found,), _ = look(DETECTOR, deep(("a", function, 60, LOSS), weight=weight))
    assert found.remedies[0].id == remedy


def test_weights_of_a_session_are_nodes_of_its_graph() -> None:
    """A variable that an optimizer changes there is a weight: what reads it cannot leave the step."""
    found = Tables()
    step = found.graph("session")
    weights = step.op("w", "VariableV2", outputs="float32[64,64]")
    step.op("squash", "Tanh", step.op("w/read", "Identity", weights), line=LINE, function="rank", callers=LOSS)
    rate, slope = step.op("rate", "Const"), step.op("slope", "Const")
    step.op("update", "ApplyGradientDescent", weights, rate, slope, line=LINE + 1, function="rank", callers=LOSS)
    ops = (("squash:Tanh", 60_000.0), ("update:ApplyGradientDescent", 20_000.0))
    (seen,), _ = look(DETECTOR, running(found, *ops))
    assert seen.remedies[0].id == "compute-less"
    assert "ApplyGradientDescent" not in seen.title


def test_ops_that_hardly_run_are_no_part_of_the_step() -> None:
    """All op time of a step that mostly waits, for a parameter server say, is next to nothing of it."""
    found = Tables()
    step = found.graph()
    step.op("a", "Const", line=LINE, function="member", callers=LOSS)
    assert look(DETECTOR, running(found, ("a:Const", 900.0)))[0] == ()


@pytest.mark.parametrize("kind", ["StatelessRandomUniformV2", "TruncatedNormal", "RandomUniform", "TopKV2"])
@pytest.mark.parametrize("weight", [False, True])
def test_random_numbers_are_not_to_be_made_once(*, kind: str, weight: bool) -> None:
    """They are others in each step, and XLA makes them no faster on a CPU; the input may draw what reads no weight."""
    (found,), _ = look(DETECTOR, deep(("a", "rank", 60, LOSS), weight=weight, kind=kind))
    first = ["compute-less"] if weight else ["out-of-the-step"] if kind == "TopKV2" else ["into-the-input"]
    assert [one.id for one in found.remedies] == [*first, "fuse-ops" if kind == "TopKV2" else "draw-less"]


@pytest.mark.parametrize(
    ("kind", "ids"), [("RandomUniform", ["draw-less"]), ("Cumsum", ["out-of-the-step", "fuse-ops"])]
)
def test_a_line_of_layers_that_draw_is_not_to_be_computed_before_the_training(kind: str, ids: list[str]) -> None:
    """As of layers of Dropout that one line of the user's makes, whose ops belong to no function of the user's."""
    found = Tables()
    step = found.graph()
    data = step.op("data", "Placeholder", outputs="float32[64,64]")
    step.op("mask", kind, data, layer=found.layer("dropout", "Dropout", line=LINE))
    (seen,), _ = look(DETECTOR, running(found, (f"mask:{kind}", 60_000.0)))
    assert [one.id for one in seen.remedies] == ids
