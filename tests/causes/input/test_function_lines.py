"""The lines of the input's functions that an op trace shows."""

from __future__ import annotations

import pytest
from tests.derive.graph_tables import Tables
from tests.detectors.graph_jobs import running

from stepscope.causes.input import function_lines
from stepscope.derive.view import SessionView
from stepscope.model.log.events import Traced


def test_lines_of_maps_by_the_time_of_their_ops() -> None:
    """The step's own ops are left out, and so are those that no line is known of."""
    tables = Tables()
    step, mapped = tables.graph(of=1), tables.graph(of=2)
    step.op("product", "MatMul", line=3)
    mapped.op("resize", "ResizeBicubic", line=9, function="augment")
    mapped.op("warp", "ImageProjectiveTransformV3", line=12, function="warp")
    mapped.op("cast", "Cast")
    tables.more.append(Traced(id=1, function="step", function_key=1, owner="user"))
    tables.more.append(Traced(id=2, function="augment", function_key=2, owner="tf.data"))
    job = running(
        tables,
        ("product:MatMul", 50_000),
        ("resize:ResizeBicubic", 10_000),
        ("warp:ImageProjectiveTransformV3", 25_000),
        ("cast:Cast", 5_000),
    )
    found = function_lines.build(SessionView(job.session()))
    assert [(one.place.line, one.place.function) for one in found] == [(12, "warp"), (9, "augment")]
    assert [one.ratio for one in found] == pytest.approx([25 / 40, 10 / 40])
    assert function_lines.said(found) == "; 62 % of the map's op time is in warp (line 12)"
    assert function_lines.said(found[1:]) == ""


def test_without_a_trace_no_line_is_known() -> None:
    assert function_lines.build(SessionView(running(Tables()).session())) == ()
