"""Programs of sessions whose graphs were read: which runs a step makes, and how long they take, is chosen here."""

from __future__ import annotations

from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.jobs import PERIOD, STEPS

from stepscope.wire.kinds import Kind

SOURCE = """\
def main(session, feeds):
    for feed in feeds:
        session.run(train_op, feed_dict=feed)
        value = session.run(
            loss, feed)
        other = session.run(loss, feed_dict=held_out)
        feed = next(feeds)
        later = session.run(loss, feed_dict=feed)
        session.run(loss)
"""
TRAIN, LOSS, HELD_OUT, LATER, UNFED = 3, 4, 6, 8, 9


def tables(*, takes: bool = False) -> Tables:
    """A forward pass, its loss, and a training op; ``takes``: the batch comes from an iterator of the graph."""
    made = Tables()
    graph = made.graph("session")
    x = graph.op("x", "IteratorGetNext" if takes else "Placeholder")
    weight = graph.op("w/read", "ReadVariableOp", graph.op("w", "VarHandleOp"))
    hidden = graph.op("MatMul", "MatMul", x, weight)
    loss = graph.op("Mean", "Mean", graph.op("Square", "Square", hidden))
    graph.op("accuracy", "Mean", graph.op("Cast", "Cast", graph.op("Equal", "Equal", graph.op("ArgMax", "ArgMax", x))))
    graph.op("Sum", "Sum", graph.op("Mul", "Mul", hidden))
    gradient = graph.op("gradients/MatMul_grad", "MatMul", loss, x)
    graph.op("GradientDescent/update_w", "ResourceApplyGradientDescent", gradient)
    graph.op("GradientDescent", "NoOp")
    graph.op("Adam", "NoOp")
    graph.op("Adam/update_v", "ResourceApplyAdam", graph.op("gradients_1/mul", "Mul", hidden))
    return made


def fetching(again: int, what: str = "Mean:0", *, line: int = LOSS, graph: Tables | None = None, every: int = 1) -> Job:
    """Steps of 100 ms: a run of the training op, and in each ``every``-th one of ``again`` that fetches ``what``."""
    job = Job()
    job.sources[SCRIPT] = SOURCE
    first = job.call(Kind.SESSION_RUN, "GradientDescent", call_file=SCRIPT, call_line=TRAIN, call_function="main")
    first.every(PERIOD, STEPS, dur=95 * MS - again)
    second = job.call(Kind.SESSION_RUN, what, call_file=SCRIPT, call_line=line, call_function="main")
    second.every(every * PERIOD, STEPS // every, dur=again, start=95 * MS - again)
    made = graph if graph is not None else tables()
    job.graphs = made.table()
    job.event(*made.events())
    return job
