"""Claims from what the value trial saw."""

from __future__ import annotations

import msgspec
import pytest

from stepscope.experiments.values.claims import derive
from stepscope.model.log.values import FunctionWatched, ValueSeen

FUNCTION = FunctionWatched(function="step", calls=10, same_batch_calls=4, recurring_ratio=1.0)
BATCH = ValueSeen(
    number=1, function="step", dtype="float32", shape=(64, 256), steps=10, runs=10, looked_at=10,
    distinct=10, step_distinct=10, signature="batch",
)  # fmt: skip
MOVING = ValueSeen(
    number=2, function="step", type="MatMul", name="moving", dtype="float32", shape=(64, 256), file="train.py",
    line=7, inputs=(1, 0), input_dtypes=("float32", "float32"), input_shapes=((-1, 256), (256, 256)), steps=10, runs=10,
    looked_at=10, distinct=10, step_distinct=10, same_steps=4, same_distinct=4, signature="moving", expression="m",
)  # fmt: skip


def product(number: int, **changes: object) -> ValueSeen:
    """Another product of the same size."""
    name = f"op{number}"
    base = {"number": number, "name": name, "signature": name, "expression": name, "line": number}
    return msgspec.structs.replace(MOVING, **{**base, **changes})


def kinds(*values: ValueSeen, function: FunctionWatched = FUNCTION) -> dict[str, float]:
    """Kinds of the claims, with their shares."""
    return {claim.kind: claim.ratio for claim in derive((BATCH, MOVING, *values), (function,))}


def test_nothing_is_claimed_of_a_step_that_needs_all() -> None:
    """A step whose values all differ has no claim."""
    assert kinds(product(3), product(4)) == {}


def test_the_same_in_all_steps() -> None:
    """A value that never changes is claimed, unless the batch never changes either, or it is all zero."""
    constant = {"distinct": 1, "step_distinct": 1, "same_distinct": 1}
    assert kinds(product(3, **constant)) == {"constant": pytest.approx(0.5)}
    assert kinds(product(3, **constant, zeros_ratio=1.0)) == {}
    assert kinds(product(3, **constant, alive=False)) == {}
    fixed = msgspec.structs.replace(BATCH, distinct=1, step_distinct=1)
    assert derive((fixed, MOVING, product(3, **constant)), (FUNCTION,)) == ()


def test_twins() -> None:
    """Two ops with the same values are claimed once, unless TensorFlow merges them or they are of different types."""
    assert kinds(product(3, signature="moving")) == {"duplicate": pytest.approx(0.5)}
    assert kinds(product(3, signature="moving", expression="m")) == {}
    assert kinds(product(3, signature="moving", type="Einsum")) == {}


def test_what_depends_on_the_batch_alone() -> None:
    """It is claimed only if samples come again and other products change on the same batch."""
    frozen = product(3, same_distinct=1)
    assert kinds(frozen) == {"batch-only": pytest.approx(0.5)}
    once = msgspec.structs.replace(FUNCTION, recurring_ratio=0.0)
    assert kinds(frozen, function=once) == {}
    still = msgspec.structs.replace(MOVING, same_distinct=1)
    assert derive((BATCH, still, frozen), (FUNCTION,)) == ()


def test_zeros_and_equal_rows() -> None:
    """A product of an input that is nearly all zeros, or of equal rows, is claimed."""
    one_hot = msgspec.structs.replace(BATCH, number=3, zeros_ratio=0.9999)
    assert kinds(one_hot, product(4, inputs=(3, 0))) == {"zeros": pytest.approx(0.5, rel=0.01)}
    relu = msgspec.structs.replace(one_hot, zeros_ratio=0.6)
    assert kinds(relu, product(4, inputs=(3, 0))) == {}
    tiled = msgspec.structs.replace(BATCH, number=3, equal_rows_ratio=0.98)
    assert kinds(tiled, product(4, inputs=(3, 0))) == {"equal-rows": pytest.approx(0.49)}


def test_the_same_in_a_loop() -> None:
    """An op in a loop that gives one value in all its runs is claimed; one that differs in each run is not."""
    again = {"runs": 200, "looked_at": 200}
    assert "repeated" in kinds(product(3, **again, again=190))
    assert kinds(product(3, **again, again=100, distinct=100)) == {}


def test_padding() -> None:
    """Work on sequences that are mostly padding is claimed, in the share of the padding."""
    ids = ValueSeen(
        number=3, function="step", dtype="int32", shape=(64, 100), steps=10, step_distinct=10, padding_ratio=0.9
    )
    assert kinds(ids, product(4, shape=(64, 100, 256), input_shapes=((64, 100, 256), (256, 256))))["padding"] > 0.8
    assert kinds(ids, product(4)) == {}


def test_wide_types() -> None:
    """Work in float64 is claimed if its result is cast to float32."""
    wide = product(3, dtype="float64", input_dtypes=("float64", "float64"))
    cast = product(4, type="Cast", inputs=(3,), input_dtypes=("float64",), input_shapes=((64, 256),))
    assert "wide-type" in kinds(wide, cast)
    assert kinds(wide) == {}


def test_a_claim_names_lines_and_the_ops_to_leave_out() -> None:
    """Lines come most work first; of a chain of ops only the last is to be left out."""
    constant = {"distinct": 1, "step_distinct": 1, "same_distinct": 1}
    small = product(4, **constant, inputs=(3, 0), shape=(64, 64), input_shapes=((64, 256), (256, 64)))
    (claim,) = derive((BATCH, MOVING, product(3, **constant), small, product(5, inputs=(4, 0))), (FUNCTION,))
    assert [(place.file, place.line) for place in claim.places] == [("train.py", 3), ("train.py", 4)]
    assert claim.ops == ("op3", "op4")
    assert claim.ends == ("op4",)


def test_little_work_is_not_worth_a_claim() -> None:
    """Below 5 % of the work nothing is said."""
    tiny = product(3, distinct=1, step_distinct=1, same_distinct=1, shape=(2, 2), input_shapes=((2, 256), (256, 2)))
    assert kinds(tiny) == {}


def test_wide_integers() -> None:
    """Arithmetic in int64 is claimed if its numbers fit into int32; a lookup and larger numbers are not."""
    wide = {"type": "FloorMod", "dtype": "int64", "input_dtypes": ("int64", "int64"), "shape": (64, 4096)}
    assert "wide-integer" in kinds(product(3, **wide, low=-5, high=2**31 - 1))
    assert kinds(product(3, **wide, high=2**31)) == {}
    assert kinds(product(3, **wide, low=-(2**31) - 1)) == {}
    assert kinds(product(3, **{**wide, "type": "GatherV2"})) == {}
