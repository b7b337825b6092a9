"""Which sizes of layers KER013 reports: variants and near-misses."""

from __future__ import annotations

import pytest
from tests.check.checking import codes, hits

HEAD = """
import keras
from keras import layers

"""
HALF = 'keras.mixed_precision.set_global_policy("mixed_float16")\n'


@pytest.mark.parametrize(
    "layer",
    [
        "layers.Conv2D(30, 3)",
        "layers.Conv2D(filters=100, kernel_size=(3, 3), activation='relu')",
        "layers.Conv2DTranspose(70, 3, strides=2)",
        "layers.Dense(100)",
        "layers.Dense(units=50257)",
    ],
)
def test_sizes_that_are_no_multiple(layer: str) -> None:
    """By position and keyword, with either policy, if there is one."""
    text = f"layer = {layer}\n"
    assert codes(HEAD + HALF + text) == ["KER013"]
    assert codes(HEAD + HALF.replace("float16", "bfloat16") + text) == ["KER013"]
    assert codes(HEAD + HALF.replace("mixed_float16", "float32") + text) == []
    assert codes(HEAD + text) == []


@pytest.mark.parametrize(
    "layer",
    [
        "layers.Conv2D(32, 3)",
        "layers.Conv2D(20, 3)",
        "layers.Conv2D(n, 3)",
        "layers.Dense(50)",
        "layers.Dense(101, activation='softmax')",
        "layers.Dense(101, dtype='float32')",
        "other.Conv2D(30, 3)",
    ],
)
def test_sizes_that_are_left_alone(layer: str) -> None:
    """Multiples of 8, few filters, unknown ones, classes, full precision, other libraries."""
    assert codes(f"{HEAD}{HALF}layer = {layer}\n") == []


def test_one_finding_for_a_file() -> None:
    """The first layer is reported, and the others are shown with it."""
    (hit,) = hits(HEAD + HALF + "layers.Dense(100)\nlayers.Conv2D(50, 3)\nlayers.Conv2D(64, 3)\nlayers.Dense(90)\n")
    assert "100 units of Dense" in hit.message
    assert "2 more layers" in hit.message
    assert len(hit.also) == 2


def test_a_policy_of_the_caller() -> None:
    """The program that sets the policy may have its layers elsewhere; a policy of a program that does not use them is
    no matter.
    """
    net = HEAD + "def net():\n    return layers.Dense(100)\n"
    train = f"import keras\nfrom net import net\n{HALF}model = net()\n"
    assert [h.span.path for h in hits({"net.py": net, "train.py": train})] == ["net.py"]
    assert hits({"net.py": net, "train.py": train.replace("model = net()", "")}) == []
