"""GRF022 large-kernel-convolution: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import Job
from tests.detectors.asking import asked, codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.graph_jobs import LINE, NODES, running
from tests.detectors.traced_jobs import untraced

from stepscope.causes.graph import large_kernel_convolution
from stepscope.derive.graph.index import GraphIndex
from stepscope.detectors.graph.large_kernel_convolution import DETECTOR

LEFT = 5 * 9 / 121
"""Of the multiplications, in five of 3 x 3."""
PLAIN = '{"strides":[1,1,1,1],"padding":"SAME","data_format":"NHWC"}'


def tables(*, kernel: str = "11,11,16,16", channels: int = 16, attributes: str = PLAIN) -> Tables:
    """The graph of ``convolving``."""
    made = Tables()
    step = made.graph()
    image = step.op("x", "Placeholder", outputs=f"float32[?,24,24,{channels}]")
    weight = step.variable("kernel", f"float32[{kernel}]")
    step.op("conv/Conv2D", "Conv2D", image, weight, outputs="float32[?,24,24,16]", line=LINE, attributes=attributes)
    step.op("gradient_tape/conv/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", image, outputs="float32[1]")
    return made


def convolving(spent: float, made: Tables | None = None) -> Job:
    """Steps compute one convolution for ``spent`` us, two thirds of it in its gradient."""
    return running(
        made if made is not None else tables(),
        ("conv/Conv2D:Conv2D", spent / 3),
        ("gradient_tape/conv/Conv2D/Conv2DBackpropFilter:Conv2DBackpropFilter", 2 * spent / 3),
    )


FIXTURES = Fixtures(
    firing=lambda: convolving(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * (1 - LEFT),
        where=(("train.py", LINE),),
        metrics=("convolution_ratio", "saved_ratio", "kernel", "left_ratio", "traced_steps"),
        title=("11 x 11", "60 %", "5 convolutions of 3 x 3", "37 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="small-kernels",
        basis="modelled",
    ),
    silent=lambda: convolving(60_000, tables(kernel="7,7,16,16")),
    not_applicable=untraced,
    missing=NODES,
    below=lambda: convolving(7_800),
    at=lambda: convolving(8_200),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (tables(kernel="9,9,16,16"), ["GRF022"]),
        (tables(kernel="9,9,3,32", channels=3), []),
        (tables(kernel="9,9,64,3", channels=64), []),
        (tables(kernel="11,11,4,16"), []),
        (tables(kernel="1,11,16,16"), []),
        (tables(kernel="10,10,16,16"), []),
        (tables(attributes=PLAIN.replace("1,1,1,1", "1,2,2,1")), []),
        (tables(attributes=PLAIN[:-1] + ',"dilations":[1,2,2,1]}'), []),
    ],
    ids=["nine", "from-a-picture", "to-a-picture", "in-groups", "one-way", "even", "with-strides", "with-dilations"],
)
def test_kernels_whose_stack_is_less_work(made: Tables, found: list[str]) -> None:
    """Few channels at one end, strides, dilations and groups make a large kernel cheap."""
    assert codes(convolving(60_000, made)) == found
    assert asked(made) == found


def test_the_work_of_a_stack_is_that_of_its_widest_layers() -> None:
    """From 8 channels to 16: one layer of 8 to 16, four of 16 to 16."""
    (found,) = large_kernel_convolution.build(GraphIndex(tables(kernel="11,11,8,16", channels=8).worker()), 1.0)
    assert (found.size, found.layers) == (11, 5)
    assert found.left == pytest.approx(9 * (8 * 16 + 4 * 16 * 16) / (121 * 8 * 16))


def test_a_smaller_kernel_helps_the_first_layer_too() -> None:
    """The stack is no less work from a picture's three channels; the upper end holds that layer all the same."""
    made = Tables()
    step = made.graph()
    image = step.op("x", "Placeholder", outputs="float32[?,24,24,3]")
    first, second = (
        step.variable(name, f"float32[11,11,{taken},16]") for name, taken in (("first", 3), ("kernel", 16))
    )
    seen = step.op("a/Conv2D", "Conv2D", image, first, outputs="float32[?,24,24,16]", line=LINE, attributes=PLAIN)
    step.op("b/Conv2D", "Conv2D", seen, second, outputs="float32[?,24,24,16]", line=LINE, attributes=PLAIN)
    job = running(made, ("a/Conv2D:Conv2D", 20_000), ("b/Conv2D:Conv2D", 60_000))
    (found,) = [one for one in find(job) if one.code == "GRF022"]
    assert found.cost.ratio == pytest.approx(0.6 * (1 - LEFT), abs=0.01)
    assert found.cost.high == pytest.approx(0.8, abs=0.02)
