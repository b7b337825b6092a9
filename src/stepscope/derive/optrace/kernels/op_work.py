"""Floating-point operations of an op, by its type and shapes: TensorFlow's CPU kernels report none.

A multiplication and an addition are two operations; a function of an element (exp, tanh) counts as one. Types without a
formula only move data: their work is bytes.

Source: the definitions of the ops, tensorflow.org/api_docs/python/tf/raw_ops.
"""

from __future__ import annotations

from math import log2, prod
from typing import TYPE_CHECKING

import msgspec

from stepscope.wire.replayed_ops import ELEMENTWISE, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.session.replays import Recipe, ReplayNode, Tensor

_FILTERED = {
    "Conv2D": (1, -1),
    "Conv2DBackpropInput": (1, 2),
    "Conv2DBackpropFilter": (-1, 2),
    "DepthwiseConv2dNative": (1, -1),
    "DepthwiseConv2dNativeBackpropInput": (1, 2),
    "DepthwiseConv2dNativeBackpropFilter": (-1, 2),
    "Conv3D": (1, -1),
    "Conv3DBackpropInputV2": (1, 2),
    "Conv3DBackpropFilterV2": (-1, 2),
}
"""Type -> the inputs that are the filter, and the result of the forward convolution; -1: the op's output."""
_PER_ELEMENT = {"Softmax": 5, "LogSoftmax": 5, "SoftmaxCrossEntropyWithLogits": 8, "FusedBatchNormV3": 8}
"""Operations for each element of the first input: exponentials, sums and divisions; a mean, a variance and the
scaling."""
_PER_ELEMENT |= {"SparseSoftmaxCrossEntropyWithLogits": 7, "FusedBatchNormGradV3": 11}
_SUMS = REDUCTIONS | {"BiasAddGrad", "AddN", "UnsortedSegmentSum", "ArgMax", "ArgMin", "Cumsum"}
"""Types with one operation for each element of their inputs."""
_THIRD = {"Cholesky": 1 / 3, "MatrixInverse": 2.0, "Lu": 2 / 3, "Qr": 4 / 3, "Svd": 20.0, "SelfAdjointEigV2": 9.0}
_THIRD |= {"MatrixDeterminant": 2 / 3, "LogMatrixDeterminant": 2 / 3}
"""Operations over the cube of a matrix's size."""
_SOLVES = {"MatrixSolve": (2 / 3, 2.0), "MatrixTriangularSolve": (0.0, 1.0)}
"""The same of the matrix's factors; operations over its square for each right-hand side."""
_TRANSFORMS = frozenset({"FFT", "IFFT", "RFFT", "IRFFT"})
_PER_POINT = 2.5
"""Operations of a transform of real numbers for each of them and each doubling of the length; twice as many of complex
ones. Source: split-radix FFT."""
_POOLS = frozenset({"AvgPool", "AvgPoolGrad", "MaxPool", "MaxPoolGrad"})
_RESIZED = {"ResizeBilinear": 8, "ResizeBilinearGrad": 8}


def flops(recipe: Recipe) -> float:
    """Operations of one run of an op; 0 for one that only moves data."""
    node = recipe.nodes[recipe.main]
    inputs = _inputs(recipe, node)
    main = of_type(node, inputs, recipe.output)  # those fused with it keep its shape
    tails = len(recipe.nodes) - 1
    return main + tails * recipe.output.elements


def _inputs(recipe: Recipe, node: ReplayNode) -> list[Tensor]:
    return [recipe.inputs[-1 - number] for number, _ in node.inputs if number < 0]


def of_type(node: ReplayNode, inputs: Sequence[Tensor], output: Tensor) -> float:
    """Operations of one run of a node on these inputs; 0 for one that only moves data."""
    kind = node.type
    if kind in _FILTERED:
        weights, made = ((*inputs, output)[at] for at in _FILTERED[kind])
        return 2.0 * made.elements * _taps(kind, weights)
    if kind == "MatMul":
        inner = inputs[0].shape[0 if _flag(node, "transpose_a") else 1]
        return 2.0 * output.elements * inner
    if kind.startswith("BatchMatMul"):
        inner = inputs[0].shape[-2 if _flag(node, "adj_x") else -1]
        return 2.0 * output.elements * inner
    if kind == "Einsum":
        return _einsum(node, inputs)
    return _by_element(kind, node, inputs, output)


def _by_element(kind: str, node: ReplayNode, inputs: Sequence[Tensor], output: Tensor) -> float:
    if kind in ELEMENTWISE:
        return float(output.elements)
    if kind in _SUMS:
        return float(sum(given.elements for given in inputs if given.shape))
    if kind in _PER_ELEMENT:
        return float(_PER_ELEMENT[kind] * inputs[0].elements)
    if kind in _POOLS:
        made = inputs[-1] if kind.endswith("Grad") else output
        return float(made.elements * prod(_list(node, "ksize")))
    if (kind in _THIRD or kind in _SOLVES or kind in _TRANSFORMS) and inputs[0].shape:
        return _of_matrices(kind, inputs[0], output)
    return float(_RESIZED.get(kind, 0) * output.elements)


def _of_matrices(kind: str, given: Tensor, output: Tensor) -> float:
    """Of what works on each matrix, or each line, of a tensor."""
    size = given.shape[-1]
    if kind in _SOLVES:
        factors, each = _SOLVES[kind]
        return given.elements * factors * size + each * size * output.elements
    if kind in _TRANSFORMS:
        size = max(2, size, *output.shape[-1:])
        return _PER_POINT * max(given.elements, output.elements) * log2(size)
    return _THIRD[kind] * given.elements * size


def _taps(kind: str, weights: Tensor) -> int:
    """Products that make one element of a convolution's result."""
    sizes = weights.shape
    return prod(sizes[:2]) if kind.startswith("Depthwise") else prod(sizes[:-1])


def _einsum(node: ReplayNode, inputs: Sequence[Tensor]) -> float:
    """Products over all labels of the equation; an ellipsis stands for the other dimensions of the first input."""
    text = str(_attributes(node).get("equation", "")).replace(" ", "")
    terms = text.partition("->")[0].split(",")
    if len(terms) != len(inputs):
        return 0.0
    sizes: dict[str, int] = {}
    for term, given in zip(terms, inputs, strict=True):
        before, dots, after = term.partition("...")
        sizes |= dict(zip(before, given.shape, strict=False))
        sizes |= dict(zip(reversed(after), reversed(given.shape), strict=False))
        if dots:
            rest = given.shape[len(before) : len(given.shape) - len(after)]
            sizes["..."] = max(sizes.get("...", 1), prod(rest))
    return float(len(inputs) * prod(sizes.values()))


def _flag(node: ReplayNode, name: str) -> bool:
    return bool(_attributes(node).get(name))


def _list(node: ReplayNode, name: str) -> list[int]:
    value = _attributes(node).get(name)
    return [int(v) for v in value] if isinstance(value, list) else []


def _attributes(node: ReplayNode) -> dict[str, object]:
    try:
        found = msgspec.json.decode(node.attributes or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
