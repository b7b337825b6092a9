"""GRF021 wasteful-operands: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import SCRIPT, Job
from tests.detectors.asking import asked, codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.graph_jobs import LINE, NODES, bag_tables, category_tables, one_hot, one_hot_tables, running
from tests.detectors.traced_jobs import untraced

from stepscope.detectors.graph.wasteful_operands import DETECTOR
from stepscope.model.log.program import InputSeen

COPIES, SIZE = 32, 96
FACTORS = 2 / 3 * SIZE / (2 / 3 * SIZE + 2)
"""Share of a solve with one right-hand side that only the matrix decides."""


def tables(*, own: bool = False, kind: str = "MatrixSolve") -> Tables:
    """A matrix that is tiled over a batch and solved for a right-hand side of each sample.

    ``own``: each sample adds something to its matrix.
    """
    made = Tables()
    step = made.graph()
    rhs = step.op("rhs", "Placeholder", outputs=f"float32[{COPIES},{SIZE},1]")
    matrix = step.variable("a", f"float32[1,{SIZE},{SIZE}]")
    times = step.op("times", "Const", outputs="int32[3]", attributes=f'{{"value":[{COPIES},1,1]}}')
    batch = f"float32[{COPIES},{SIZE},{SIZE}]"
    taken = step.op("tile", "Tile", matrix, times, outputs=batch, line=LINE)
    if own:
        taken = step.op("own", "AddV2", taken, step.op("data", "Placeholder", outputs=batch), outputs=batch)
    step.op("solve", kind, taken, rhs, outputs=f"float32[{COPIES},{SIZE},1]", line=LINE + 2)
    step.op("other", "Conv2D", rhs)
    return made


def computing(spent: float, made: Tables | None = None, kind: str = "MatrixSolve") -> Job:
    """A step of 100,000 us that solves for ``spent`` of them."""
    return running(made or tables(), (f"solve:{kind}", spent), ("other:Conv2D", 100_000 - spent))


CALL_RATIO = 0.9
"""Share of a step in its call; the trace has nothing else."""
FIXTURES = Fixtures(
    firing=lambda: computing(60_000),
    expected=Expected(
        severity="high",
        cost=CALL_RATIO * 0.6 * FACTORS * (1 - 1 / COPIES),
        basis="modelled",
        where=(("train.py", LINE + 2), ("train.py", LINE)),
        metrics=("operand_ratio", "saved_ratio", "copies", "traced_steps"),
        title=(f"MatrixSolve (line {LINE + 2})", f"{COPIES} copies of one matrix", f"Tile (line {LINE})", "56 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="solve-once",
    ),
    silent=lambda: computing(60_000, tables(own=True)),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: computing(10_500),
    at=lambda: computing(10_800),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def product(columns: int) -> Job:
    """A matrix of 96 x 96, tiled over the batch, times ``columns`` columns of each sample."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs=f"float32[?,{SIZE},{columns}]")
    matrix = step.variable("a", f"float32[1,{SIZE},{SIZE}]")
    times = step.op("times", "Pack", data, outputs="int32[3]")
    tiled = step.op("tile", "Tile", matrix, times, outputs=f"float32[?,{SIZE},{SIZE}]", line=LINE)
    adjoint = '{"adj_x":false,"adj_y":false}'
    step.op(
        "product", "BatchMatMulV2", tiled, data, outputs=f"float32[?,{SIZE},{columns}]", line=LINE, attributes=adjoint
    )
    step.op("other", "Conv2D", data)
    return running(made, ("product:BatchMatMulV2", 60_000), ("other:Conv2D", 40_000))


def test_a_product_is_charged_with_reading_the_matrix() -> None:
    """A matrix times one column is read for each sample; with many columns the multiplications take the time."""
    (found,) = look(DETECTOR, product(1))[0]
    assert found.remedies[0].id == "multiply-once"
    assert "multiplies with" in found.title
    assert codes(product(512)) == []


def layer(*, joined: bool) -> Job:
    """A layer on an input that is tiled; ``joined``: with other data first."""
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs="float32[64,256]")
    weight = step.variable("w", "float32[256,128]")
    times = step.op("times", "Const", outputs="int32[2]", attributes='{"value":[10,1]}')
    shape = "float32[640,256]"
    taken = step.op("tile", "Tile", data, times, outputs=shape, line=LINE)
    if joined:
        taken = step.op("noise", "Mul", taken, step.op("random", "RandomUniform", times, outputs=shape), outputs=shape)
    flags = '{"transpose_a":false,"transpose_b":false}'
    out = "float32[640,128]"
    made_by = step.op("product", "MatMul", taken, weight, outputs=out, line=LINE + 1, attributes=flags)
    step.op("active", "Relu", made_by, outputs=out, line=LINE + 2)
    return running(made, ("product:MatMul", 60_000), ("active:Relu", 40_000))


def test_a_layer_on_a_repeated_input_computes_the_same_for_each_copy() -> None:
    """Up to the op that joins it with what differs, all but one of the copies are needless."""
    (found,) = look(DETECTOR, layer(joined=False))[0]
    assert found.remedies[0].id == "copy-later"
    assert found.cost.ratio == pytest.approx(CALL_RATIO * 0.9, rel=1e-3)
    assert "computes the same for 10 copies" in found.title
    assert codes(layer(joined=True)) == []


def diagonal(*, added: bool = False, kind: str = "BatchMatMulV2") -> Job:
    """A diagonal matrix of each sample times a matrix; ``added``: another matrix is added to it first."""
    made = Tables()
    step = made.graph()
    values = step.op("values", "Placeholder", outputs=f"float32[16,{SIZE}]")
    shape = f"float32[16,{SIZE},{SIZE}]"
    other = step.op("x", "Placeholder", outputs=shape)
    taken = step.op("diag", "MatrixDiagV3", values, outputs=shape, line=LINE)
    taken = step.op("next", "AddV2" if added else "Mul", taken, other, outputs=shape)
    step.op("product", kind, taken, other, outputs=shape, line=LINE + 1, attributes='{"adj_x":false,"adj_y":false}')
    return running(made, (f"product:{kind}", 60_000), ("next:Mul", 40_000))


@pytest.mark.parametrize("kind", ["BatchMatMulV2", "MatrixSolve"])
def test_products_and_solves_with_a_diagonal_matrix_scale(kind: str) -> None:
    """What is multiplied with it stays diagonal; what is added to it does not."""
    (found,) = look(DETECTOR, diagonal(kind=kind))[0]
    assert found.remedies[0].id == "scale-rows"
    assert f"diagonal matrix, made by MatrixDiagV3 (line {LINE})" in found.title
    assert look(DETECTOR, diagonal(added=True, kind=kind))[0] == ()


@pytest.mark.parametrize(
    ("made", "remedy"),
    [
        (one_hot_tables(12_000), "gather"),
        (category_tables(2048, 512), "segment-sum"),
        (category_tables(512, 512), "segment-sum"),
        (category_tables(512, 512, table=True), "gather"),
    ],
    ids=["rows", "by-category", "sizes-do-not-tell", "table-of-as-many-rows"],
)
def test_products_with_a_one_hot_matrix_are_look_ups_or_sums_by_category(made: Tables, remedy: str) -> None:
    """With the matrix on its side it is a segment sum."""
    (name,) = [row.texts[0] for row in made.rows if row.texts[0].endswith("MatMul") and "tape" not in row.texts[0]]
    (found,) = find(running(made, (f"{name}:MatMul", 60_000)))
    assert (found.code, found.remedies[0].id) == ("GRF021", remedy)
    assert ("by category" in found.title) == (remedy == "segment-sum")
    assert f"made by OneHot (line {LINE})" in found.title


@pytest.mark.parametrize("bincount", [False, True], ids=["one-hot-rows-joined", "counted"])
def test_a_multi_hot_matrix_is_a_sum_of_looked_up_rows(*, bincount: bool) -> None:
    """Keras' CategoryEncoding counts; written by hand it is the maximum of one-hot rows."""
    (found,) = find(running(bag_tables(bincount=bincount), ("table/MatMul:MatMul", 60_000)))
    assert "adds rows up by a product with a multi-hot matrix of 12,000 columns" in found.title
    assert "sum them" in found.remedies[0].text
    assert asked(bag_tables(bincount=bincount)) == ["GRF021"]


@pytest.mark.parametrize(
    "job",
    [
        one_hot(60_000, smoothed=True),
        one_hot(9_900),
        one_hot(60_000, depth=10),
        running(bag_tables(over_columns=True), ("table/MatMul:MatMul", 60_000)),
    ],
    ids=["smoothed", "little-time", "few-columns", "maximum-over-columns"],
)
def test_what_is_no_needless_product(job: Job) -> None:
    """A matrix without zeros, a small product, and a mask of positions that is left of a one-hot matrix."""
    assert codes(job) == []


def given(
    *, zeros: float = 0.0, distinct: int = 64, position: int = 0, shape: str = "float32[?,8000]", right: bool = False
) -> Job:
    """A layer on a batch of which ``zeros`` of the elements are zero, and ``distinct`` of 64 rows differ.

    ``right``: the array is the second factor.
    """
    made = Tables()
    step = made.graph()
    data = step.op("data", "Placeholder", outputs=shape)
    columns = shape.rpartition(",")[2].rstrip("]")
    rows = step.variable("rows", f"float32[{columns},256]")
    factors = (rows, data) if right else (data, rows)
    step.op("layer/MatMul", "MatMul", *factors, outputs="float32[?,256]", line=LINE)
    job = running(made, ("layer/MatMul:MatMul", 60_000))
    seen = InputSeen(
        position=position,
        shape=(64, 8000),
        rows=64,
        distinct=distinct,
        zeros_ratio=zeros,
        file=SCRIPT,
        line=5,
        function="main",
    )
    job.event(seen)
    return job


def test_a_batch_of_nearly_empty_rows_is_multiplied() -> None:
    """The line that passes the batch is named; a remedy is to look up what is not zero."""
    (found,) = find(given(zeros=0.999))
    assert found.remedies[0].id == "look-up"
    assert "zeros but for 8 of 8,000 columns in each row, of the batches that it is given (line 5)" in found.title
    assert [place.line for place in found.where] == [LINE, 5]


def over_edges(zeros: float, *, right: bool = False) -> Job:
    """A layer of a graph network: the matrix of edges times what the nodes hold; ``right``: filters, not edges."""
    made = Tables()
    step = made.graph()
    matrix = step.constant("edges", "float32[2700,2700]", zeros=zeros)
    held = step.op("held", "Placeholder", outputs="float32[2700,2700]" if right else "float32[2700,64]")
    factors = (held, matrix) if right else (matrix, held)
    step.op("MatMul", "MatMul", *factors, outputs="float32[2700,64]", line=LINE)
    return running(made, ("MatMul:MatMul", 60_000))


def test_a_captured_matrix_of_edges_is_multiplied() -> None:
    """The edges of a graph, as a dense matrix: no batch shows it, the function captures it."""
    (found,) = find(over_edges(0.998))
    assert found.remedies[0].id == "sparse-matrix"
    assert "zeros but for 5 of 2,700 columns in each row, made once, outside of the function" in found.title
    assert [place.line for place in found.where] == [LINE]
    assert codes(over_edges(0.0)) == codes(over_edges(0.998, right=True)) == []


def test_a_batch_of_equal_rows_is_computed_for_each() -> None:
    """Each row once would do."""
    (found,) = find(given(distinct=2))
    assert found.remedies[0].id == "rows-once"
    assert "computes the same for 32 equal rows" in found.title


@pytest.mark.parametrize(
    "job",
    [
        given(zeros=0.8),
        given(distinct=40),
        given(zeros=0.999, position=1),
        given(zeros=0.999, shape="float32[?,784]"),
        given(zeros=0.999, right=True),
    ],
    ids=["many-are-not-zero", "most-rows-differ", "another-argument", "another-shape", "filters"],
)
def test_batches_without_waste(job: Job) -> None:
    """Zeros and equal rows as most data has them, and what was seen of another tensor."""
    assert codes(job) == []
