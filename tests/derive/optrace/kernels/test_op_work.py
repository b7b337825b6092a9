"""Operations of ops by formulas: against values that follow from the definitions."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from stepscope.derive.optrace.kernels import op_work
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor

CONV = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NHWC"}


def recipe(kind: str, shapes: Sequence[Sequence[int]], output: Sequence[int], **attributes: object) -> Recipe:
    """An op of one node."""
    return Recipe(
        inputs=tuple(ReplayInput(dtype="float32", shape=tuple(shape)) for shape in shapes),
        nodes=(
            ReplayNode(
                type=kind,
                attributes=json.dumps(attributes) if attributes else "",
                inputs=tuple((-1 - i, 0) for i in range(len(shapes))),
            ),
        ),
        output=Tensor(dtype="float32", shape=tuple(output)),
    )


@pytest.mark.parametrize(
    ("op", "flops"),
    [
        (recipe("MatMul", [(8, 16), (16, 4)], (8, 4), transpose_a=False), 2 * 8 * 16 * 4),
        (recipe("MatMul", [(16, 8), (16, 4)], (8, 4), transpose_a=True), 2 * 8 * 16 * 4),
        (recipe("BatchMatMulV2", [(3, 8, 16), (3, 16, 4)], (3, 8, 4), adj_x=False), 2 * 3 * 8 * 16 * 4),
        (recipe("BatchMatMulV2", [(3, 16, 8), (3, 16, 4)], (3, 8, 4), adj_x=True), 2 * 3 * 8 * 16 * 4),
        (recipe("Conv2D", [(2, 8, 8, 3), (5, 5, 3, 7)], (2, 8, 8, 7), **CONV), 2 * 2 * 8 * 8 * 7 * 5 * 5 * 3),
        (
            recipe("Conv2DBackpropFilter", [(2, 8, 8, 3), (4,), (2, 8, 8, 7)], (5, 5, 3, 7), **CONV),
            2 * 2 * 8 * 8 * 7 * 5 * 5 * 3,
        ),
        (
            recipe("Conv2DBackpropInput", [(4,), (5, 5, 3, 7), (2, 8, 8, 7)], (2, 8, 8, 3), **CONV),
            2 * 2 * 8 * 8 * 7 * 5 * 5 * 3,
        ),
        (
            recipe("DepthwiseConv2dNative", [(2, 8, 8, 6), (3, 3, 6, 2)], (2, 8, 8, 12), **CONV),
            2 * 2 * 8 * 8 * 12 * 9,
        ),
        (recipe("Conv3D", [(1, 4, 4, 4, 2), (3, 3, 3, 2, 5)], (1, 4, 4, 4, 5)), 2 * 64 * 5 * 27 * 2),
        (recipe("Einsum", [(2, 3, 4), (2, 4, 5)], (2, 3, 5), equation="bij,bjk->bik"), 2 * 2 * 3 * 4 * 5),
        (recipe("Einsum", [(9, 2, 3, 4), (4, 5)], (9, 2, 3, 5), equation="...ij,jk->...ik"), 2 * 18 * 3 * 4 * 5),
        (recipe("Mul", [(8, 4), (4,)], (8, 4)), 32),
        (recipe("Mean", [(8, 4), (1,)], (8,)), 33),
        (recipe("Softmax", [(8, 10)], (8, 10)), 5 * 80),
        (recipe("MaxPool", [(1, 8, 8, 3)], (1, 4, 4, 3), ksize=[1, 2, 2, 1]), 48 * 4),
        (recipe("MatrixSolve", [(5, 6, 6), (5, 6, 2)], (5, 6, 2)), 5 * (144 + 144)),
        (recipe("MatrixTriangularSolve", [(5, 6, 6), (5, 6, 2)], (5, 6, 2)), 5 * 72),
        (recipe("Lu", [(6, 6)], (6, 6)), 144),
        (recipe("RFFT", [(4, 256), (1,)], (4, 129)), 2.5 * 4 * 256 * 8),
        (recipe("Transpose", [(8, 4), (2,)], (4, 8)), 0),
        (recipe("GatherV2", [(100, 8), (5,), ()], (5, 8)), 0),
        (recipe("Einsum", [(2, 3)], (2,), equation="no equation, at, all"), 0),
    ],
    ids=lambda value: value.nodes[0].type if isinstance(value, Recipe) else "",
)
def test_operations_follow_from_shapes(op: Recipe, flops: float) -> None:
    """Two operations for each product, one for each element, none for moving data."""
    assert op_work.flops(op) == pytest.approx(flops)


def test_what_is_fused_adds_an_operation_for_each_element() -> None:
    """A convolution with bias and activation does two more for each element of its output."""
    plain = recipe("MatMul", [(8, 16), (16, 4)], (8, 4), transpose_a=False)
    tail = (ReplayNode(type="Relu", inputs=((0, 0),)),)
    fused = Recipe(inputs=plain.inputs, nodes=plain.nodes + tail, output=plain.output)
    assert op_work.flops(fused) - op_work.flops(plain) == 8 * 4
