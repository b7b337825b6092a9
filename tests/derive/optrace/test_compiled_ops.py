"""Where an op that XLA compiled was made: a line of the program, or none; never a placeholder of TensorFlow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import compiled_ops, line_times
from stepscope.model.session.optrace import OpTrace, Program
from stepscope.model.session.program_ops import Frame, ProgramOp

USER = Frame("/home/me/train.py", "step", 7)
PLACEHOLDERS = (
    Frame("dummy_file_name", "dummy_function_name", 10),
    Frame("/venv/lib/python3.11/site-packages/tensorflow/python/framework/ops.py", "", 1221),
)
LIBRARY = Frame("/venv/lib/python3.11/site-packages/optax/_src/update.py", "apply_updates", 43)


def _trace(*frames: Frame) -> OpTrace:
    made = Maker()
    made.span(made.main, "dot.3", 0, 5, hlo_op="dot.3", program_id=1)
    op = ProgramOp(name="dot.3", opcode="dot", shape="f32[8]", op_name="sequential/head/MatMul", frames=frames)
    return replace(made.trace(), programs=(Program(name="jit_f", id=1, parameters=(), ops=(op,)),))


def _place(*frames: Frame) -> Frame | None:
    (one,) = compiled_ops.build(_trace(*frames)).ops[1:]
    return one.place


@pytest.mark.parametrize("frame", PLACEHOLDERS)
def test_a_placeholder_is_no_place(frame: Frame) -> None:
    assert _place(frame) is None
    assert _place(frame, USER) == USER


def test_a_line_of_a_library_is_one_where_the_program_has_none() -> None:
    assert _place(LIBRARY) == LIBRARY
    assert _place(LIBRARY, USER) == USER


@pytest.mark.parametrize("frame", PLACEHOLDERS)
def test_an_op_without_a_place_has_the_layer_of_the_op_that_it_was_made_of(frame: Frame) -> None:
    tables = Tables()
    layer = tables.layer("head", line=5)
    tables.graph().op("sequential/head/MatMul", "MatMul", layer=layer)
    (op,) = line_times.build(_trace(frame), GraphIndex(tables.worker())).ops
    assert op.layer is not None
    assert (op.name, op.layer.id) == ("sequential/head/MatMul", layer)


def test_without_a_graph_it_has_that_op_s_name() -> None:
    (op,) = line_times.build(_trace(PLACEHOLDERS[0]), GraphIndex(Tables().worker())).ops
    assert (op.name, op.named) == ("sequential/head/MatMul", False)
