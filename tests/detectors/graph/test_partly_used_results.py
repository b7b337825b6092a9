"""GRF020 partly-used-results: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, Job
from tests.detectors.asking import asked, codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES, read, running
from tests.detectors.jobs import train_loop
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.partly_used_results import DETECTOR
from stepscope.detectors.shared.graph_pattern import LEAST_MODELLED

USED = 1 / 64


def tables(
    *, selects: str = "StridedSlice", kept: str = "float32[32,1]", between: str = "Tanh", used_whole: bool = False
) -> Tables:
    """A product of 32 x 64 elements, an op on each of them, and a node that takes one column."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs="float32[32,128]")
    weight = step.variable("w", "float32[128,64]")
    product = step.op("product", "MatMul", data, weight, outputs="float32[32,64]", line=LINE)
    inner = step.op("inner", between, product, outputs="float32[32,64]", line=LINE + 1)
    step.op("last", selects, inner, outputs=kept, line=LINE + 2)
    if used_whole:
        step.op("loss", "Sum", product, outputs="float32[]")
    step.op("other", "Conv2D", data)
    return made


def computing(spent: float, made: Tables | None = None, between: str = "Tanh") -> Job:
    """A step in which product and op take ``spent`` us of 100,000, the product three quarters of it."""
    return running(
        made or tables(),
        ("product:MatMul", 0.75 * spent),
        (f"inner:{between}", 0.25 * spent),
        ("other:Conv2D", 100_000 - spent),
    )


CALL_RATIO = 0.9
"""Share of a step in its call; the trace has nothing else."""
FIXTURES = Fixtures(
    firing=lambda: computing(60_000),
    expected=Expected(
        severity="high",
        cost=CALL_RATIO * 0.6 * (1 - USED),
        basis="modelled",
        where=(("train.py", LINE), ("train.py", LINE + 1), ("train.py", LINE + 2)),
        metrics=("result_ratio", "used_ratio", "traced_steps"),
        title=("1/64", "32 x 64", f"line {LINE + 2}", "60 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="select-first",
    ),
    silent=lambda: computing(60_000, tables(kept="float32[32,40]")),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: computing(10_100),
    at=lambda: computing(10_400),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("made", "between", "found"),
    [
        (tables(selects="MatrixDiagPartV3", kept="float32[32]"), "Tanh", ["GRF020"]),
        (tables(selects="GatherV2"), "Tanh", ["GRF020"]),
        (tables(selects="Sum", kept="float32[]"), "Tanh", []),
        (tables(between="Softmax"), "Softmax", []),
        (tables(kept="float32[?,1]"), "Tanh", []),
        (tables(used_whole=True), "Tanh", ["GRF020"]),
    ],
    ids=["diagonal", "gather", "sum-needs-all", "softmax-needs-all", "shape-not-known", "product-used-whole"],
)
def test_what_needs_all_of_it(made: Tables, between: str, found: list[str]) -> None:
    """Only what selects leaves elements unused, and only through ops that work element by element."""
    assert codes(computing(60_000, made, between)) == found


def test_a_product_that_is_used_whole_is_not_counted() -> None:
    """The search ends at what something else needs whole: a tenth of the step is left, too little for a finding."""
    assert codes(computing(38_000, tables(used_whole=True))) == []


def positions(*, last: str = "float32[32,64]", places: str = "?") -> Tables:
    """Two products on every position, of which a node takes one."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs=f"float32[32,{places},128]")
    hidden = data
    for at in (1, 2):
        rows = step.op(f"rows_{at}", "Reshape", hidden, outputs="float32[?,128]")
        weight = step.variable(f"w_{at}", "float32[128,128]")
        product = step.op(f"product_{at}", "MatMul", rows, weight, outputs="float32[?,128]", line=LINE + at)
        hidden = step.op(f"hidden_{at}", "Reshape", product, outputs=f"float32[32,{places},128]")
    step.op("last", "StridedSlice", hidden, outputs=last, line=LINE)
    return made


def on_positions(made: Tables) -> Job:
    return running(made, ("product_1:MatMul", 40_000), ("product_2:MatMul", 40_000), ("other:Conv2D", 20_000))


@pytest.mark.parametrize(
    ("made", "cost", "said"),
    [
        (positions(last="float32[32,128]"), 0.8 * 7 / 8, "only one place"),
        (positions(last="float32[32,1,128]"), 0.8 * 7 / 8, "only one place"),
        (positions(last="float32[32,128]", places="40"), 0.8 * 39 / 40, "only 1/40"),
        (positions(last="float32[32,40,2]", places="40"), 0.4 * 63 / 64, "only 1/64"),
    ],
    ids=["open-size", "kept-axis", "known-size", "columns"],
)
def test_one_place_of_an_axis(made: Tables, cost: float, said: str) -> None:
    """Rows that are not used need no product, and none before it; of columns only the last product is spared."""
    (found,) = look(DETECTOR, on_positions(made))[0]
    assert found.cost is not None
    assert found.cost.ratio == pytest.approx(CALL_RATIO * cost, abs=0.01)
    assert said in found.title


def jacobian(*, takes: str = "Einsum", kept: str = "float32[32,6,2]", name: str = "MatMul/pfor/MatMul") -> Tables:
    """The Jacobian of 32 samples' six results by 32 samples' two inputs, and what takes its blocks."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs="float32[192,32,2]")
    gradient = step.op(f"gradient_tape/{name}", "MatMul", data, outputs="float32[192,32,2]", line=LINE)
    whole = step.op("Reshape_1", "Reshape", gradient, outputs="float32[32,6,32,2]", line=LINE)
    step.op("blocks", takes, whole, outputs=kept, line=LINE + 1)
    return made


@pytest.mark.parametrize(
    ("made", "name", "found"),
    [
        (jacobian(), "MatMul/pfor/MatMul", ["GRF020"]),
        (jacobian(takes="Sum"), "MatMul/pfor/MatMul", ["GRF020"]),
        (jacobian(kept="float32[32,6,32]"), "MatMul/pfor/MatMul", []),
        (jacobian(name="MatMul"), "MatMul", []),
    ],
    ids=["einsum", "sum", "another-axis", "no-jacobian"],
)
def test_diagonal_blocks_of_a_jacobian(made: Tables, name: str, found: list[str]) -> None:
    """A gradient that TensorFlow vectorised over all results, of which one block a sample is used."""
    job = running(made, (f"gradient_tape/{name}:MatMul", 60_000), ("other:Conv2D", 40_000))
    assert codes(job) == found


def test_a_jacobian_is_called_one() -> None:
    """Its remedy is another method of the tape."""
    job = running(jacobian(), ("gradient_tape/MatMul/pfor/MatMul:MatMul", 60_000), ("other:Conv2D", 40_000))
    (found,) = look(DETECTOR, job)[0]
    assert (
        "a full Jacobian of step is made, 32 x 6 x 32 x 2 elements, of which the 32 diagonal blocks are used"
        in found.title
    )
    assert [remedy.id for remedy in found.remedies] == ["batch-jacobian"]


def wide(columns: int, *, of: int = 0) -> Tables:
    """A product of 32 x ``columns`` elements of which one column is used."""
    made = Tables()
    step = made.graph(of=of)
    data = step.op("data", "Placeholder", outputs="float32[32,512]")
    weight = step.variable("w", f"float32[512,{columns}]")
    attributes = '{"transpose_a":false,"transpose_b":false}'
    product = step.op(
        "product", "MatMul", data, weight, outputs=f"float32[32,{columns}]", line=LINE, attributes=attributes
    )
    step.op("last", "StridedSlice", product, outputs="float32[32]", line=LINE + 2)
    return made


def test_without_a_trace_the_cost_is_counted_from_shapes_and_asked() -> None:
    """Nearly all multiplications of this step make what is not used."""
    job = train_loop(60 * MS)
    read(job, wide(65_536, of=job.trace(0, MS, owner="user", updates=1).id))
    (found,) = look(DETECTOR, job)[0]
    assert found.cost.basis == "modelled"
    assert found.cost.low >= LEAST_MODELLED
    assert [one.metric for one in found.evidence][-1] == "counted_nodes"
    assert asked(wide(65_536)) == ["GRF020"]


def test_a_small_result_is_not_asked_about() -> None:
    assert asked(wide(64)) == []
