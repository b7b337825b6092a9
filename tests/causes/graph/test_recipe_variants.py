"""Other ways to compute an op: the width of a convolution over one channel as its channels."""

from __future__ import annotations

import json

import pytest

from stepscope.causes.graph import recipe_variants
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor

IMAGE, FILTER, MADE = (64, 56, 128, 1), (5, 128, 1, 100), (64, 52, 1, 100)


def convolution(kind: str, image: tuple[int, ...], weights: tuple[int, ...], padding: str = "VALID") -> Recipe:
    """A recipe of a convolution or of one of its gradients."""
    tensor = {"image": image, "filter": weights, "made": (image[0], image[1] - weights[0] + 1, 1, weights[3])}
    sizes = {name: ReplayInput(dtype="int32", shape=(4,), values=shape) for name, shape in tensor.items()}
    given = {name: ReplayInput(dtype="float32", shape=shape) for name, shape in tensor.items()}
    inputs, output = {
        "Conv2D": ((given["image"], given["filter"]), "made"),
        "Conv2DBackpropInput": ((sizes["image"], given["filter"], given["made"]), "image"),
        "Conv2DBackpropFilter": ((given["image"], sizes["filter"], given["made"]), "filter"),
    }[kind]
    attributes = json.dumps({"strides": [1, 1, 1, 1], "padding": padding, "data_format": "NHWC"})
    numbers = tuple((-1 - i, 0) for i in range(len(inputs)))
    node = ReplayNode(type=kind, attributes=attributes, inputs=numbers)
    return Recipe(inputs=inputs, nodes=(node,), output=Tensor(dtype="float32", shape=tensor[output]))


@pytest.mark.parametrize("kind", ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"])
def test_the_width_becomes_the_channels(kind: str) -> None:
    """Tensors and the numbers that are shapes change; what has neither width nor filter stays."""
    changed = recipe_variants.changed(convolution(kind, IMAGE, FILTER), "channels")
    assert changed is not None
    wide: dict[tuple[int, ...], tuple[int, ...]] = {IMAGE: (64, 56, 1, 128), FILTER: (5, 1, 128, 100), MADE: MADE}
    before = convolution(kind, IMAGE, FILTER)
    assert [i.shape for i in changed.inputs] == [wide.get(i.shape, i.shape) for i in before.inputs]
    assert [i.values for i in changed.inputs] == [wide.get(i.values, i.values) for i in before.inputs]
    assert changed.output.shape == wide[before.output.shape]
    assert changed.bytes == before.bytes


@pytest.mark.parametrize(
    ("image", "weights", "padding"),
    [
        ((64, 56, 128, 3), (5, 128, 3, 100), "VALID"),
        ((64, 56, 128, 1), (5, 5, 1, 100), "VALID"),
        ((64, 56, 128, 1), (5, 128, 1, 100), "SAME"),
    ],
    ids=["channels", "narrow", "padded"],
)
def test_other_convolutions_have_no_such_way(image: tuple[int, ...], weights: tuple[int, ...], padding: str) -> None:
    """Channels of its own, a kernel that moves over the width, or padding."""
    assert recipe_variants.changed(convolution("Conv2D", image, weights, padding), "channels") is None
