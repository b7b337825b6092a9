"""INP007 where two profilers recorded one process: JAX's shows the steps, TensorFlow's what makes their batches."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job
from tests.detectors.fixture import look

from stepscope.detectors.input.traced_input_wait import DETECTOR
from stepscope.model.session.session import StoredOpTrace
from stepscope.tables.optrace import OpTrace, TraceSource

STEPS, STEP, WAIT, THREAD = 8, 100_000, 80_000, 4_711


def _maker(host: str) -> Maker:
    return Maker(TraceSource(format="xplane", hostnames=(host,)))


def _jax(host: str = "a") -> OpTrace:
    made = _maker(host)
    main = made.builder.line(made.plane, "python", line_id=THREAD)
    for i in range(STEPS):
        made.main = main
        made.step(STEP * i, STEP - 10, i)
        made.span(main, "$builtins next", STEP * i + 10, WAIT)
        made.span(main, "PjitFunction(train_step)", STEP * i + 20 + WAIT, 10_000)
    return made.trace()


def _tensorflow(host: str = "a", thread: int = THREAD, *, batches: int = STEPS, stage: str = "Map") -> OpTrace:
    """``next`` of a dataset on the thread of the steps; its stage works on that thread too."""
    made = _maker(host)
    main = made.builder.line(made.plane, "python", line_id=thread)
    for i in range(batches):
        at = STEP * STEPS / batches * i + 12
        made.get_next(main, at, WAIT - 20)
        made.stage(main, "Root", at + 1, WAIT - 22)
        made.stage(main, f"Root::{stage}", at + 2, WAIT - 24)
    return made.trace()


def _job(*traces: OpTrace) -> Job:
    job = Job(ended_ns=4_000 * MS)
    job.mode = "import"
    job.resources["op_traces"] = [
        StoredOpTrace(name=f"import-{number:03d}", worker="", source=trace.source, load=partial(replace, trace))
        for number, trace in enumerate(traces, 1)
    ]
    return job


@pytest.mark.parametrize("stage", ["Map", "Shuffle", "FlatMap"])
def test_the_pipeline_of_the_other_trace_is_what_the_steps_wait_for(stage: str) -> None:
    for job in (_job(_jax(), _tensorflow(stage=stage)), _job(_tensorflow(stage=stage), _jax())):
        (found,) = look(DETECTOR, job)[0]
        assert f"the input pipeline's {stage} stage takes" in found.title
        assert found.remedies, "tf.data is in the process"


def test_the_marked_steps_are_the_job_s_though_the_other_trace_repeats_more() -> None:
    job = _job(_jax(), _tensorflow(batches=3 * STEPS))
    main = job.view().traces.main
    assert main is not None
    assert (main.name, len(main.periods)) == ("import-001", STEPS - 1)


@pytest.mark.parametrize(
    "other",
    [_tensorflow(host="b"), _tensorflow(thread=4_712), _tensorflow().shifted(STEPS * STEP * 1000)],
    ids=["another host", "another process", "another time"],
)
def test_a_trace_of_another_process_or_time_says_nothing(other: OpTrace) -> None:
    assert not look(DETECTOR, _job(_jax(), other))[0]


def test_small_numbers_of_threads_are_no_proof() -> None:
    """Those of trace events are the kernel's, which begin at 1 in each container."""
    other = replace(_tensorflow(), source=TraceSource(format="trace-event", hostnames=("a",)))
    assert not look(DETECTOR, _job(_jax(), other))[0]
