"""Which graphs steps run."""

from __future__ import annotations

from tests.derive.graph_tables import Tables
from tests.derive.sessions import MS, SCRIPT, Job

from stepscope.derive.graph import step_graphs
from stepscope.wire.kinds import Kind


def _job(tables: Tables, *, epoch_call: int) -> Job:
    """Forty steps of a function at line 10; one at line 20 takes ``epoch_call`` once in twenty steps."""
    job = Job()
    job.function().every(100 * MS, 40, dur=50 * MS)
    job.function("evaluate", line=20).every(2_000 * MS, 2, dur=epoch_call, start=60 * MS)
    job.trace(0, MS)
    job.trace(0, MS, line=20, function="evaluate")
    job.trace(0, MS, line=30, function="parse", owner="tf.data")
    job.graphs = tables.table()
    job.event(*tables.events())
    return job


def _tables() -> Tables:
    """Graphs 1 to 6: a step, a loop's body in it, its gradient, one in that, an evaluation, a map of the input."""
    tables = Tables()
    step, body = tables.graph(of=1), tables.graph("body")
    step.call(step.op("while", "While"), body, "body")
    gradient, inner = tables.graph("gradient", of=step.id), tables.graph("f")
    gradient.call(gradient.op("call", "PartitionedCall"), inner)
    for of in (2, 3):
        tables.graph(of=of).op("x", "Mul")
    return tables


def test_the_step_s_function_with_all_that_it_calls() -> None:
    """Its loops and its gradient belong to it; what runs once in an epoch, and the input, do not."""
    assert step_graphs.build(_job(_tables(), epoch_call=5 * MS).steps()) == {1, 2, 3, 4}


def test_what_runs_rarely_and_long_counts() -> None:
    """A function of one call in twenty steps that takes a tenth of the time."""
    assert step_graphs.build(_job(_tables(), epoch_call=400 * MS).steps()) == {1, 2, 3, 4, 5}


def test_functions_of_keras_have_no_lines_in_common_with_its_steps() -> None:
    """In fit the step is Keras' own call: the functions that Keras traced are taken."""
    tables = Tables()
    tables.graph(of=1).op("x", "Mul")
    tables.graph(of=2).op("x", "Mul")
    job = Job()
    job.loop("fit").at(0, 4_000 * MS)
    job.execution().every(100 * MS, 40, dur=50 * MS)
    job.trace(0, MS, file="/lib/keras/trainer.py", owner="keras")
    job.trace(0, MS, file=SCRIPT, line=70)
    job.event(*tables.events())
    assert step_graphs.build(job.steps()) == {1}


def test_runs_of_sessions_run_its_graph() -> None:
    """A session has one graph; a function beside it that no step calls is none of it."""
    tables = Tables()
    tables.graph("session").op("x", "Mul")
    tables.graph(of=1).op("x", "Mul")
    job = Job()
    job.call(Kind.SESSION_RUN, "train").every(100 * MS, 40, dur=50 * MS)
    job.trace(0, MS)
    job.event(*tables.events())
    assert step_graphs.build(job.steps()) == {1}
