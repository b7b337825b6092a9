"""Time per op: which events count, by what they are grouped, and what is taken away for self time."""

from stepscope.derive.optrace.op_times import OpRow, build
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import Category, LineKind, PlaneKind, TraceSource


def _builder() -> OpTraceBuilder:
    return OpTraceBuilder(TraceSource(format="test"))


def _rows(builder: OpTraceBuilder) -> dict[tuple[int, str], OpRow]:
    return {(row.plane, row.name): row for row in build(builder.build()).rows()}


def test_only_ops_take_from_the_self_time_of_the_op_around_them() -> None:
    builder = _builder()
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    builder.event(line, "outer/While:While", 0, 100)
    builder.event(line, "ExecutorState::Process", 5, 80)
    builder.event(line, "inner/MatMul:MatMul", 10, 30)
    builder.event(line, "inner/Mul:Mul", 50, 20)
    rows = _rows(builder)
    assert {name: (row.total_ps, row.self_ps) for (_, name), row in rows.items()} == {
        "outer/While": (100_000, 50_000),
        "inner/MatMul": (30_000, 30_000),
        "inner/Mul": (20_000, 20_000),
    }


def test_threads_do_not_nest_in_each_other_and_add_up() -> None:
    builder = _builder()
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    one, two = builder.line(host, "a"), builder.line(host, "b")
    builder.event(one, "x:MatMul", 0, 100)
    builder.event(two, "x:MatMul", 10, 30)
    row = _rows(builder)[0, "x"]
    assert (row.calls, row.total_ps, row.self_ps, row.type, row.category) == (
        2,
        130_000,
        130_000,
        "MatMul",
        Category.OP,
    )


def test_a_kernel_counts_for_its_op_or_else_for_itself() -> None:
    builder = _builder()
    gpu = builder.plane("/device:GPU:0", PlaneKind.GPU, ordinal=0)
    stream = builder.line(gpu, "Stream #7(Compute)", LineKind.STREAM)
    derived = builder.line(gpu, "TensorFlow Ops", LineKind.FRAMEWORK_OPS)
    for i in range(2):
        builder.event(stream, f"sgemm_{i}", 10 * i, 5, stats={"tf_op": "dense/MatMul:MatMul"})
    builder.event(stream, "stray", 40, 2)
    builder.event(stream, "blank", 50, 3, stats={"tf_op": ""})
    builder.event(derived, "dense/MatMul", 0, 15)
    rows = _rows(builder)
    assert {name: (row.type, row.calls, row.self_ps) for (_, name), row in rows.items()} == {
        "dense/MatMul": ("MatMul", 2, 10_000),
        "stray": ("", 1, 2_000),
        "blank": ("", 1, 3_000),
    }


def test_a_tpus_ops_have_the_times_of_its_own_clock_where_it_has_one() -> None:
    builder = _builder()
    line = builder.line(builder.plane("/device:TPU:0", PlaneKind.TPU, ordinal=0), "XLA Ops", LineKind.XLA_OPS)
    copies = builder.line(0, "Async XLA Ops", LineKind.ASYNC_OPS)
    own = {"device_offset_ps": 0, "device_duration_ps": 9_000}
    builder.event(line, "%while = f32[] while(f32[] %a)", 0, 5, stats=own)
    builder.event(
        line, "%add.1 = f32[] add(f32[] %a)", 7, 1, stats={"device_offset_ps": 2_000, "device_duration_ps": 4_000}
    )
    builder.event(copies, "%copy-start = f32[] copy-start(f32[] %a)", 0, 500)
    rows = _rows(builder)
    assert {name: (row.total_ps, row.self_ps) for (_, name), row in rows.items()} == {
        "while": (9_000, 5_000),
        "add.1": (4_000, 4_000),
    }


def test_the_longest_self_time_stands_first() -> None:
    builder = _builder()
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for i, name in enumerate(["b:B", "c:C", "a:A"]):
        builder.event(line, name, 100 * i, 10 * (i + 1))
    assert [row.name for row in build(builder.build()).rows()] == ["a", "c", "b"]
    assert len(build(_builder().build())) == 0
