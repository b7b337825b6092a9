"""The table of ops, where a trace was joined to the graph."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.report.samples import input_bound

from stepscope.model.report.op_table import MakerTime, OpTable
from stepscope.report import html, markdown, text
from stepscope.report.document.traces import ops

MS = 1_000_000
TABLE = OpTable(
    trace="ops-001",
    steps=10,
    ns=400 * MS,
    joined_ratio=1.0,
    named_ratio=0.985,
    unnamed_types=("Cast", "Assign|X"),
    makers=(
        MakerTime(
            layer="dense_1",
            layer_type="Dense",
            file="train.py",
            line=8,
            function="call",
            types=("_MklMatMul", "BiasAddGrad"),
            calls=1_200,
            ns=300 * MS,
            ratio=0.75,
            gradient_ratio=0.5,
        ),
        MakerTime(layer="b|a*d", layer_type="L", file="train.py", line=30, built=True, ns=60 * MS, ratio=0.15),
        MakerTime(file="train.py", line=41, function="loss", types=("Mul",), calls=10, ns=20 * MS, ratio=0.05),
        MakerTime(layer="adam", layer_type="Adam", types=("Square",), calls=10, ns=12 * MS, ratio=0.03),
    ),
)
WITH = replace(input_bound(), ops=TABLE)


def test_terminal() -> None:
    """The first rows, with layer, share in gradients, and line; where there is no layer, the op types."""
    lines = text.render(WITH).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("ops"))
    assert lines[at : at + 6] == [
        "ops       400 ms of op time over all threads in 10 traced steps; 98 % attributed to lines and layers",
        "          75 % dense_1 (Dense), including 50 % in gradients: train.py:8 call",
        "          15 % b|a*d (L): built at train.py:30",
        "          5.0 % Mul: train.py:41 loss",
        "          3.5 % other lines and layers",
        "          1.5 % no known line or layer (Cast, Assign|X)",
    ]


@pytest.mark.parametrize("count", [0, 2, 30])
def test_rows_add_up(count: int) -> None:
    """What is named, what is not, and what small makers took are all op time, however many rows there are."""
    shown = sum(float(row.share.removesuffix(" %")) for row in ops.rows(TABLE, count))
    assert shown == pytest.approx(100, abs=1)


def test_markdown_and_page() -> None:
    """All rows; what could be markup is text."""
    page = html.render(WITH)
    for shown in (markdown.render(WITH), page):
        for part in (
            "Ops",
            "75 %",
            "train.py:8",
            "1,200",
            "BiasAddGrad",
            "adam (Adam)",
            "12 ms",
            "no known line or layer",
        ):
            assert part in shown
    assert "b\\|a\\*d" in markdown.render(WITH)
    assert 'href="#ops"' in page


def test_without_a_trace() -> None:
    """Nothing is said of ops where none were traced."""
    assert not any(line.startswith("ops ") for line in text.render(input_bound()).splitlines())
    assert "### Ops" not in markdown.render(input_bound())
    assert 'id="ops"' not in html.render(input_bound())
