"""Other ways to compute an op: with another type of its numbers, with a larger batch, or with the width of a
convolution as its channels.

A convolution over one channel whose kernel is as wide as its input (a text's embeddings as an image) has one place per
row. With the width as channels it multiplies and adds the same numbers, which lie in memory in the same order.

Serves cheaper_way_measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.model.session.replays import BATCH_FACTOR

if TYPE_CHECKING:
    from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor, Variant

KINDS: tuple[Variant, ...] = ("float32", "channels", "batch", "bfloat16")
"""In the order measured."""
FIRST = KINDS[:2]
"""Measured for each op right after it."""
_FROM = {"float32": "float64", "bfloat16": "float32"}
"""Type that a variant replaces."""
_HALF = frozenset({"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "MatMul", "BatchMatMulV2", "Einsum"})
"""Types that processors have instructions for in 16 bits."""
_BATCHED: dict[str, tuple[int, ...]] = {
    "Conv2D": (0,),
    "Conv2DBackpropInput": (2,),
    "Conv2DBackpropFilter": (0, 2),
    "DepthwiseConv2dNative": (0,),
    "DepthwiseConv2dNativeBackpropInput": (2,),
    "DepthwiseConv2dNativeBackpropFilter": (0, 2),
    "Conv3D": (0,),
    "Conv3DBackpropInputV2": (2,),
    "Conv3DBackpropFilterV2": (0, 2),
}
"""Type -> the inputs whose first dimension is the batch."""
_WIDE: dict[str, tuple[int | None, int | None]] = {
    "Conv2D": (0, 1),
    "Conv2DBackpropInput": (None, 1),
    "Conv2DBackpropFilter": (0, None),
}
"""Type -> the inputs that are its image and its filter, None for what it computes."""
_IMAGE, _WIDTH, _CHANNELS = 4, 2, 3
"""Dimensions of an image in NHWC; a filter is (height, width, channels, number)."""
_MATRIX = 2
"""Dimensions of a matrix: a product of more has a batch."""
_MAX_BYTES = 256 << 20
"""A larger batch is measured up to this size."""


def changed(recipe: Recipe, variant: Variant) -> Recipe | None:
    """The recipe as a variant has it; None where it does not apply."""
    if variant in _FROM:
        return _typed(recipe, variant)
    if variant == "channels":
        return _width_as_channels(recipe)
    return _batched(recipe) if variant == "batch" else recipe


def _width_as_channels(recipe: Recipe) -> Recipe | None:
    node = recipe.nodes[recipe.main]
    numbers = [-1 - number for number, _ in node.inputs if number < 0]
    if node.type not in _WIDE or len(numbers) != len(node.inputs):
        return None
    attributes = msgspec.json.decode(node.attributes or "{}")
    if attributes.get("data_format", "NHWC") != "NHWC" or attributes.get("padding") != "VALID":
        return None
    given = [recipe.inputs[number] for number in numbers]
    image, weights = (given[at].shape if at is not None else recipe.output.shape for at in _WIDE[node.type])
    if len(image) != _IMAGE or len(weights) != _IMAGE or image[_CHANNELS] != 1 or weights[_CHANNELS - 1] != 1:
        return None
    if image[_WIDTH] != weights[1] or image[_WIDTH] == 1:
        return None
    shapes = {image: (*image[:_WIDTH], 1, image[_WIDTH]), weights: (weights[0], 1, weights[1], weights[_CHANNELS])}
    inputs = tuple(
        msgspec.structs.replace(
            one, shape=shapes.get(one.shape, one.shape), values=shapes.get(tuple(one.values), one.values)
        )
        for one in recipe.inputs
    )
    output = msgspec.structs.replace(recipe.output, shape=shapes.get(recipe.output.shape, recipe.output.shape))
    return msgspec.structs.replace(recipe, inputs=inputs, output=output)


def _typed(recipe: Recipe, variant: Variant) -> Recipe | None:
    before = _FROM[variant]
    wanted = variant == "float32" or recipe.type in _HALF
    if not wanted or all(given.dtype != before for given in recipe.inputs):
        return None

    def other(dtype: str) -> str:
        return variant if dtype == before else dtype

    return msgspec.structs.replace(
        recipe,
        inputs=tuple(msgspec.structs.replace(given, dtype=other(given.dtype)) for given in recipe.inputs),
        nodes=tuple(msgspec.structs.replace(node, out_dtype=other(node.out_dtype)) for node in recipe.nodes),
        output=msgspec.structs.replace(recipe.output, dtype=other(recipe.output.dtype)),
    )


def _batched(recipe: Recipe) -> Recipe | None:
    node = recipe.nodes[recipe.main]
    numbers = [-1 - number for number, _ in node.inputs if number < 0]
    if len(numbers) != len(node.inputs):
        return None
    given = [recipe.inputs[number] for number in numbers]
    scaled = {numbers[position] for position in _positions(node, given)}
    if not scaled:
        return None
    batch = recipe.inputs[min(scaled)].shape[0]
    after = {i for i, g in enumerate(recipe.inputs) if i not in numbers and g.shape == recipe.output.shape}
    inputs = tuple(
        _larger(g, batch) if i in scaled | after else _resized(g, batch, node.type) for i, g in enumerate(recipe.inputs)
    )
    larger = msgspec.structs.replace(recipe, inputs=inputs, output=_grown(recipe.output, batch))
    return larger if larger.bytes <= _MAX_BYTES else None


def _positions(node: ReplayNode, given: list[ReplayInput]) -> tuple[int, ...]:
    """The inputs of a node that the batch is the first dimension of."""
    if node.type == "MatMul":
        attributes = msgspec.json.decode(node.attributes or "{}")
        if not attributes.get("transpose_a"):
            return (0,)
        return () if attributes.get("transpose_b") else (0, 1)
    if node.type in {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}:
        same = len({g.shape[0] for g in given}) == 1 and min(len(g.shape) for g in given) > _MATRIX
        return (0, 1) if same else (0,)
    return _BATCHED.get(node.type, ())


def _larger(given: ReplayInput, batch: int) -> ReplayInput:
    return msgspec.structs.replace(given, shape=(batch * BATCH_FACTOR, *given.shape[1:]))


def _resized(given: ReplayInput, batch: int, kind: str) -> ReplayInput:
    """An input that is a shape with the batch in it."""
    if "BackpropInput" in kind and given.values and given.values[0] == batch:
        return msgspec.structs.replace(given, values=(batch * BATCH_FACTOR, *given.values[1:]))
    return given


def _grown(output: Tensor, batch: int) -> Tensor:
    if not output.shape or output.shape[0] != batch:
        return output
    return msgspec.structs.replace(output, shape=(batch * BATCH_FACTOR, *output.shape[1:]))
