"""Which op trace of a session is joined, and what the report's table says of it."""

from __future__ import annotations

from msgspec.structs import replace
from tests.derive.graph_tables import FILE, Tables
from tests.derive.sessions import MS, Job

from stepscope.derive.view import SessionView
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.events import Traced
from stepscope.model.session.session import Session, StoredOpTrace
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.report.sections import op_table
from stepscope.tables.errors import SessionError
from stepscope.tables.optrace import OpTrace, PlaneKind, TraceSource

SOURCE = TraceSource(format="test")


def trace(*events: tuple[str, int], count: int = 3) -> OpTrace:
    """A trace of so many steps with these ops in each."""
    builder = OpTraceBuilder(SOURCE)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    at = 0
    for number in range(count):
        length = sum(dur for _, dur in events) + 10
        builder.event(line, "train", at, length, stats={"step_num": number}, step=True)
        inside = at
        for name, dur in events:
            builder.event(line, name, inside, dur)
            inside += dur
        at += length
    return builder.build()


def stored(name: str, worker: str, found: OpTrace | None) -> StoredOpTrace:
    """A trace of a session; None: a damaged one."""

    def load() -> OpTrace:
        if found is None:
            raise SessionError(f"{name} is damaged")
        return found

    return StoredOpTrace(name=name, worker=worker, source=SOURCE, load=load)


def session(*traces: StoredOpTrace) -> Session:
    """A job with a layer, a node of its own, one that nobody made, and steps."""
    tables = Tables()
    graph = tables.graph()
    layer = tables.layer("dense", line=5)
    graph.op("model/dense/MatMul", "MatMul", layer=layer)
    graph.op("scaled", "Mul", line=12)
    graph.op("Adam/Sqrt", "Sqrt")
    job = Job()
    job.function().every(100 * MS, 20, dur=50 * MS)
    job.event(*tables.events())
    made = job.session()
    (worker,) = made.workers
    return replace(made, workers=[replace(worker, graphs=tables.table())], op_traces=traces)


KEY = session().workers[0].info.key
OPS = (("model/dense/MatMul:MatMul", 300), ("scaled:Mul", 100))


def test_table() -> None:
    """Times of the whole trace by layer and line; a layer's ops without a line stand where it was built."""
    table, problems = op_table.build(SessionView(session(stored("ops-001", KEY, trace(*OPS)))))
    assert table is not None
    assert problems == ()
    assert (table.trace, table.steps, table.ns, table.joined_ratio) == ("ops-001", 3, 1200, 1.0)
    of_layer, of_line = table.makers
    assert (of_layer.layer, of_layer.layer_type, of_layer.line, of_layer.built, of_layer.ratio) == (
        *("dense", "Dense", 5, True),
        0.75,
    )
    assert (of_line.layer, of_line.file, of_line.line, of_line.built) == ("", FILE.rpartition("/")[2], 12, False)
    assert [op.name for op in table.ops] == ["model/dense/MatMul", "scaled"]
    assert [(kind.type, kind.calls) for kind in table.types] == [("MatMul", 3), ("Mul", 3)]


def test_ops_that_tf_data_calls_are_of_the_input() -> None:
    """They are separate from the model's, at their maker too, and their share is said."""
    tables = Tables()
    tables.graph().op("model/dense/MatMul", "MatMul", layer=tables.layer("dense", line=5))
    tables.graph(of=7, name="load").op("DecodeJpeg", "DecodeJpeg", line=12)
    job = Job()
    job.function().every(100 * MS, 20, dur=50 * MS)
    job.event(Traced(id=7, function="load", function_key=7, owner="tf.data"), *tables.events())
    found = job.session()
    ops = trace(("model/dense/MatMul:MatMul", 100), ("DecodeJpeg:DecodeJpeg", 300))
    worker = replace(found.workers[0], graphs=tables.table())
    made = replace(found, workers=[worker], op_traces=(stored("ops-001", KEY, ops),))
    table, _ = op_table.build(SessionView(made))
    assert table is not None
    assert [(op.name, op.input) for op in table.ops] == [("DecodeJpeg", True), ("model/dense/MatMul", False)]
    assert [(maker.line, maker.input) for maker in table.makers] == [(12, True), (5, False)]
    assert table.input_ratio == 0.75


def test_the_newest_of_the_process_that_makes_the_steps() -> None:
    """Not one of another process, not an older one; one that is damaged is passed over, and said."""
    older, newer = trace(("a:Mul", 10)), trace(("b:Mul", 10))
    found = session(
        stored("ops-001", KEY, older),
        stored("ops-002", KEY, newer),
        stored("ops-003", KEY, None),
        stored("ops-004", "9-9", trace(("c:Mul", 10))),
    )
    view = SessionView(found)
    table, _ = op_table.build(view)
    assert table is not None
    assert table.ops[0].name == "b"
    assert table.joined_ratio == 0.0
    assert view.traces.problems == ("ops-003 is damaged",)


def test_one_report_speaks_of_one_trace() -> None:
    """The table of ops, the traced steps and what detectors look at are of the same trace: that of the most steps."""
    few = stored("ops-002", KEY, trace(("b:Mul", 10), count=2))
    report = report_of(session(stored("ops-001", KEY, trace(*OPS)), few))
    assert report.ops is not None
    assert report.traced is not None
    assert (report.ops.trace, report.traced.trace) == ("ops-001", "ops-001")
    assert report.ops.steps == 3


def test_a_trace_of_another_process_shows_its_ops_alone() -> None:
    """Where the process that makes the steps has none, its ops are better than nothing; its steps are not the job's."""
    report = report_of(session(stored("ops-001", "9-9", trace(*OPS))))
    assert report.ops is not None
    assert (report.ops.trace, report.traced) == ("ops-001", None)


def test_a_trace_of_nobody() -> None:
    """An imported trace has no graph: its ops stand in the table all the same."""
    table, _ = op_table.build(SessionView(session(stored("ops-001", "", trace(*OPS)))))
    assert table is not None
    assert (table.joined_ratio, table.makers, len(table.ops)) == (0.0, (), 2)


def test_an_op_is_found_where_its_maker_is_known() -> None:
    """A node that no line and no layer made is a name: its time counts as not known, and says of what type it is."""
    both = trace(("scaled:Mul", 100), ("Adam/Sqrt:Sqrt", 300))
    table, _ = op_table.build(SessionView(session(stored("ops-001", KEY, both))))
    assert table is not None
    assert (table.joined_ratio, table.named_ratio, table.unnamed_types) == (1.0, 0.25, ("Sqrt",))
    assert table.named_ratio == sum(maker.ratio for maker in table.makers)


def test_none() -> None:
    """Without a readable trace there is no table."""
    assert op_table.build(SessionView(session())) == (None, ())
    view = SessionView(session(stored("ops-001", KEY, None)))
    assert op_table.build(view) == (None, ())
    assert view.traces.problems == ("ops-001 is damaged",)


def test_a_trace_of_another_process_is_not_read_for_detectors() -> None:
    """They look at the process that makes the steps; the sidecar asks them while the job runs."""

    def load() -> OpTrace:
        raise AssertionError("read")

    view = SessionView(session(StoredOpTrace(name="ops-001", worker="9-9", source=SOURCE, load=load)))
    assert (view.traces.main, view.traces.shown, view.traces.problems) == (None, None, ())
    assert [found.name for found in view.traces.elsewhere] == ["ops-001"]
