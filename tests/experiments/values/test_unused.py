"""Results of which only a part is used."""

from __future__ import annotations

import msgspec
import pytest

from stepscope.experiments.values import unused
from stepscope.experiments.values.claims import derive
from stepscope.model.log.values import FunctionWatched, Use, ValueSeen

FUNCTION = FunctionWatched(function="step", calls=10)
T, V = 64, 1000
LAST = Use(type="StridedSlice", name="cut", shape=(-1, V), of=(-1, T, V))
COLUMN = Use(type="StridedSlice", name="cut", shape=(-1, T), of=(-1, T, V))
RETURNED = Use(type="")
BATCH = ValueSeen(number=9, function="step", dtype="float32", shape=(32, T, 128), steps=10, runs=10, step_distinct=10)


def op(number: int, name: str, kind: str, *uses: Use, **fields: object) -> ValueSeen:
    """An op of the step that gives logits for all positions."""
    made = msgspec.structs.replace(BATCH, number=number, type=kind, name=name, shape=(32, T, V), uses=uses)
    return msgspec.structs.replace(made, distinct=10, signature=name, expression=name, **fields)


def use(name: str, kind: str, place: int = 0) -> Use:
    """A use by an op that is looked at, too."""
    return Use(type=kind, name=name, place=place, shape=(-1, T, V), of=(-1, T, V))


def product(*uses: Use) -> ValueSeen:
    """The product in question."""
    return op(1, "logits", "MatMul", *uses, input_shapes=((-1, 128), (128, V)), input_dtypes=("float32", "float32"))


def found(*values: ValueSeen) -> dict[str, float]:
    """Needless shares by name."""
    return {value.name: ratio for value, ratio in unused.find(values, values).items()}


def test_the_last_position_of_all() -> None:
    """A product of which one row in 64 is taken is needless but for that row, and so is what is elementwise behind."""
    bias = op(2, "bias", "BiasAdd", LAST)
    assert found(product(use("bias", "BiasAdd")), bias) == {
        "logits": pytest.approx(63 / 64),
        "bias": pytest.approx(63 / 64),
    }


@pytest.mark.parametrize(
    "uses",
    [
        (),
        (LAST, RETURNED),
        (LAST, Use(type="Sum", name="sum", shape=(), of=(-1, T, V))),
        (Use(type="StridedSlice", name="most", shape=(-1, T - 1, V), of=(-1, T, V)),),
        (Use(type="StridedSlice", name="unknown", shape=(-1, -1, V), of=(-1, T, V)),),
        (Use(type="StridedSlice", name="index", place=1, shape=(-1, V), of=(-1, T, V)),),
        (Use(type="GatherV2", name="action", shape=(-1, T), of=(-1, T, V)),),
        tuple(Use(type="Slice", name=f"part{i}", shape=(-1, T, V // 4), of=(-1, T, V)) for i in range(4)),
    ],
    ids=["unknown", "returned", "summed", "shifted", "dynamic", "index", "a column for each row", "all parts"],
)
def test_what_is_used_is_not_claimed(uses: tuple[Use, ...]) -> None:
    """All uses must be cuts, and together take at most half."""
    assert found(product(*uses)) == {}


def test_a_softmax_needs_its_columns() -> None:
    """One column of a softmax needs the sum over all; one of its rows does not."""
    column, row = (op(2, "soft", "Softmax", cut) for cut in (COLUMN, LAST))
    logits = product(use("soft", "Softmax"))
    assert found(logits, column) == {}
    assert set(found(logits, row)) == {"logits", "soft"}
    assert found(product(COLUMN)) == {"logits": pytest.approx(1 - 1 / V)}


def test_the_gradient_of_a_cut_does_not_use_the_rest() -> None:
    """Backward ops take the result with a gradient that is zero elsewhere: claimed with it. Half of zeros is none."""
    relu = op(2, "relu", "Relu", LAST, use("gradient_tape/back", "ReluGrad", 1), inputs=(1,))
    gradient = op(3, "slice_grad", "StridedSliceGrad", zeros_ratio=63 / 64)
    back = op(4, "gradient_tape/back", "ReluGrad", inputs=(3, 2), zeros_ratio=0.99)
    weights = op(5, "weights", "MatMul", inputs=(9, 4), shape=(128, V))
    logits = product(use("relu", "Relu"))
    assert set(found(logits, relu, gradient, back, weights)) == {"logits", "relu", "gradient_tape/back", "weights"}
    half = msgspec.structs.replace(gradient, zeros_ratio=0.5)
    assert found(logits, relu, half, back, weights) == {}


def test_rows_that_a_matrix_picks_are_used() -> None:
    """A one-hot matrix is as full of zeros as the gradient of a cut, and picks any row."""
    picked = op(2, "picked", "MatMul", inputs=(3, 1))
    zeros = op(3, "one_hot", "OneHot", zeros_ratio=63 / 64)
    assert found(product(LAST, use("picked", "MatMul", 1)), picked, zeros) == {}
    gradient = msgspec.structs.replace(zeros, name="gradient_tape/zeros", type="Pad")
    assert "logits" in found(product(LAST, use("picked", "MatMul", 1)), picked, gradient)


def test_a_mask_is_no_cut() -> None:
    """Dropout of half gives zeros, and uses everything."""
    dropped = op(2, "dropped", "Mul", RETURNED, zeros_ratio=0.5)
    assert found(product(use("dropped", "Mul")), dropped) == {}


def test_the_claim() -> None:
    """It is one of its kind, with the ops to leave out if nearly all is needless."""
    (claim,) = derive((BATCH, product(LAST)), (FUNCTION,))
    assert (claim.kind, claim.ends) == ("unused", ("logits",))
    assert "98.44 %" in claim.text
    quarter = Use(type="Slice", name="cut", shape=(-1, T // 4, V), of=(-1, T, V))
    (claim,) = derive((BATCH, product(quarter)), (FUNCTION,))
    assert claim.ratio == pytest.approx(0.75)
    assert claim.ends == ()
