"""Where an op that XLA compiled was made: a line of the program, or none; never a placeholder of TensorFlow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.graph_tables import Tables
from tests.derive.op_traces import Maker

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import compiled_ops, line_times
from stepscope.tables.optrace import OpTrace, Program
from stepscope.tables.program_ops import Frame, ProgramOp

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


def _of_programs(*programs: tuple[int, int, str], described: int = 0) -> OpTrace:
    """A run of ``dot.3`` of each program of one function, (id, line, shape); described under ids that much higher."""
    made = Maker()
    found = []
    for at, (number, line, shape) in enumerate(programs):
        made.span(made.main, "dot.3", 10.0 * at, 5, hlo_op="dot.3", hlo_module="jit_f", program_id=number)
        op = ProgramOp(
            name="dot.3", opcode="dot", shape=shape, op_name="jit(f)/dot", frames=(USER._replace(line=line),)
        )
        found.append(Program(name="jit_f", id=number + described, parameters=(shape,), ops=(op,)))
    return replace(made.trace(), programs=tuple(found))


def _lines(trace: OpTrace) -> set[tuple[int, int, str]]:
    """(line, calls, shape) of its ops."""
    ops = line_times.build(trace, GraphIndex(Tables().worker())).ops
    return {(op.line.line if op.line is not None else 0, op.calls, op.shape) for op in ops}


def test_an_op_of_a_function_that_was_compiled_for_several_shapes_has_its_line() -> None:
    assert _lines(_of_programs((1, 7, "f32[8]"), (2, 7, "f32[6]"), (3, 7, "f32[4]"))) == {(7, 3, "")}
    assert _lines(_of_programs((1, 7, "f32[8]"), (2, 7, "f32[8]"))) == {(7, 2, "f32[8]")}


def test_ops_of_one_name_and_different_lines_are_two() -> None:
    assert _lines(_of_programs((1, 7, "f32[8]"), (2, 9, "f32[6]"))) == {(7, 1, "f32[8]"), (9, 1, "f32[6]")}


def test_an_op_of_an_unknown_program_has_what_all_of_its_name_have() -> None:
    """JAX's compilation cache (0.10): programs run under other ids than they are described with."""
    assert _lines(_of_programs((1, 7, "f32[8]"), (4, 7, "f32[6]"), described=100)) == {(7, 2, "")}
    assert _lines(_of_programs((1, 7, "f32[8]"), (4, 9, "f32[6]"), described=100)) == {(0, 2, "")}
