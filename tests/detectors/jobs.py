"""Jobs with one trait each, whose size the caller chooses.

The usual step takes 100 ms; of 100 steps the first (warm-up) and the last (its end is not known) do not count.
"""

from __future__ import annotations

from typing import Any

from tests.derive.sessions import MS, NESTED, POOL, SCRIPT, TRACED, US, Frame, Job, node

from stepscope.model.log.events import GraphSize, ModelBuilt
from stepscope.model.session.session import HostInfo
from stepscope.wire.kinds import Kind

STEPS = 100
PERIOD = 100 * MS
HANDOVER = 300 * US
"""What a batch that is ready costs at most, of each pull: no wait."""
LOOP_LINE = 40
"""First line of ``main`` in SOURCE."""
SOURCE = (
    "\n" * (LOOP_LINE - 1)
    + """\
def main():
    total = 0.0
    for i in range(100):
        batch = make_batch(i)
        loss = train_step(batch)
        total = report(loss, total)
        tidy()
    return total
"""
)
MAKE, CALL, REPORT, TIDY = 43, 44, 45, 46
MAIN_CALL: dict[str, Any] = {"call_file": SCRIPT, "call_line": CALL, "call_function": "main"}
TF = "/usr/lib/python3/site-packages/tensorflow/python"


def train_loop(call: int, *, steps: int = STEPS, period: int = PERIOD, offset: int = 0) -> Job:
    """A custom loop: a tf.function called once a step from ``main``, ``offset`` into it."""
    job = Job()
    job.sources[SCRIPT] = SOURCE
    job.function(**MAIN_CALL).every(period, steps, dur=call, start=offset)
    return job


def keras_fit(call: int, *, steps: int = STEPS, period: int = PERIOD, role: str = "train") -> Job:
    """Keras' fit without a read of tf.data's model."""
    job = Job()
    job.loop("fit", line=50).at(0, steps * period)
    job.execution(role).every(period, steps, dur=call, arg=1)
    return job


def nothing() -> Job:
    """A job that makes no step."""
    job = Job()
    job.function().every(PERIOD, 2, dur=MS)
    return job


def unsampled() -> Job:
    """Steps without stack samples."""
    return train_loop(20 * MS)


def pulled(
    wait: int, *, python: int = 0, role: str = "", stage: int = 0, linked: bool = False, per_batch: int = 1
) -> Job:
    """A loop that pulls a batch of a mapped dataset in each step.

    Args:
        wait: time in ``next``, at the beginning of each step; the call takes 20 ms after it.
        python: time of a call of user Python of the pipeline, on a thread of tf.data's.
        per_batch: number of these calls for each batch.
        role: of that Python.
        stage: self time of the slow stage per batch; the wait by default.
        linked: the function was put into the graph by the stage's own code.
    """
    job = Job()
    job.sources[SCRIPT] = SOURCE
    source = job.dataset("RangeDataset", line=70)
    mapped = job.dataset("MapDataset", source, line=71, fn_name="decode", fn_file=SCRIPT, fn_line=15, fn_end_line=18)
    batched = job.dataset("BatchDataset", mapped, line=72, batch=8)
    iterator = job.iterator(batched, batch=8)
    job.function(**MAIN_CALL).every(PERIOD, STEPS, dur=20 * MS, start=wait)
    job.nexts().every(PERIOD, STEPS, dur=wait, arg=iterator)
    if python:
        decode = job.python(role, "decode", stack=[(SCRIPT, "decode", 16)] if linked else [])
        [decode.every(PERIOD, STEPS, dur=python, start=n * python, thread=POOL) for n in range(per_batch)]
    busy = stage or wait
    for batches in (50, 90):
        job.model(
            iterator,
            batches * PERIOD,
            [
                node(1, "Batch", 2, elements=batches, busy=batches * MS),
                node(2, "Map", 3, elements=8 * batches, busy=batches * busy),
                node(3, "Range", elements=8 * batches, busy=batches * 10 * US),
            ],
        )
    return job


def sampled(before: int = 0, after: int = 0, *, call: int | None = None, per_step: int = 1, steps: int = STEPS) -> Job:
    """A loop with Python of its own before and after each call, ``per_step`` samples in each of these parts."""
    job = train_loop(PERIOD - before - after if call is None else call, offset=before, steps=steps)
    main = Frame(SCRIPT, "main", MAKE)
    for part, first, frames in (
        (before, 0, (main, Frame(SCRIPT, "make_batch", 4))),
        (after, PERIOD - after, (main._replace(line=REPORT), Frame(SCRIPT, "report", 8))),
    ):
        if part:
            times = [
                i * PERIOD + first + (k + 1) * part // (per_step + 1) for i in range(steps) for k in range(per_step)
            ]
            job.samples(times, *frames)
    return job


FUNCTION_CALL = Frame(f"{TF}/eager/polymorphic_function/polymorphic_function.py", "__call__", 1, own=False)


def eager(python: int, ops: int, *, compiled: int = 0, job: Job | None = None, below: tuple[Frame, ...] = ()) -> Job:
    """A step that runs op by op; how many of its 100 samples fall on Python of TensorFlow's, ops, compiled code.

    Args:
        python: samples on Python of TensorFlow's.
        ops: samples on the call that runs an op.
        compiled: samples in compiled code.
        job: what the samples are taken of; by default a loop that applies gradients in each step.
        below: frames around the step's own.
    """
    if job is None:
        job = Job()
        job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=90 * MS)
    step = Frame(SCRIPT, "step", 12)
    stacks = (
        (python, (*below, step, Frame(f"{TF}/ops/math_ops.py", "matmul", 3000, own=False))),
        (ops, (*below, step, Frame(f"{TF}/ops/gen_math_ops.py", "mat_mul", 6000, own=False))),
        (compiled, (*below, step, FUNCTION_CALL)),
        (98 - python - ops - compiled, (*below, step)),
    )
    at = PERIOD + 95 * MS
    for count, frames in stacks:
        job.samples([at + i * PERIOD for i in range(count)], *frames)
        at += count * PERIOD
    return job


def asking(samples: int, *, each: str = "v") -> Job:
    """An eager step with some of its 98 samples in a statement that asks its tape for a gradient by ``each``."""
    job = Job()
    job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=90 * MS)
    job.sources[SCRIPT] = "def step():\n    return [tape.gradient(loss, " + each + ") for v in variables]\n"
    tape = Frame(f"{TF}/eager/backprop.py", "GradientTape.gradient", 1066, own=False)
    op = Frame(f"{TF}/ops/gen_math_ops.py", "mat_mul", 6000, own=False)
    at = PERIOD + 95 * MS
    job.samples([at + i * PERIOD for i in range(samples)], Frame(SCRIPT, "step", 2), tape, op)
    job.samples([at + i * PERIOD for i in range(samples, 98)], Frame(SCRIPT, "step", 1))
    return job


def copying(samples: int, *, of: int = 98, own: bool = False, period: int = PERIOD) -> Job:
    """A tf.function of whose ``of`` samples some fall on making tensors of its arguments.

    ``own``: the user's code makes them in the function's stead, while it is called.
    """
    job = train_loop(period - MS, period=period)
    made = Frame(f"{TF}/framework/constant_op.py", "convert_to_eager_tensor", 96, own=False)
    main = Frame(SCRIPT, "main", CALL)
    at = 2 * period - 2 * MS
    job.samples([at + i * period for i in range(samples)], main, *(() if own else (FUNCTION_CALL,)), made)
    job.samples([at + i * period for i in range(samples, of)], main, FUNCTION_CALL)
    return job


def eagerly_fitted(python: int, ops: int) -> Job:
    """Keras' fit of a model that was compiled with run_eagerly; samples as in ``eager``."""
    job = keras_fit(99 * MS)
    job.compiled(run_eagerly=True, file=SCRIPT, line=21)
    return eager(python, ops, job=job)


def synced(wait: int, host: int, *, every: int = 1) -> Job:
    """A step whose result is waited for in each or each ``every``-th, and ``host`` of the step's 100 ms is Python."""
    job = train_loop(PERIOD - wait - host)
    job.host = HostInfo(gpus=1)
    where: dict[str, Any] = {"call_file": SCRIPT, "call_line": REPORT, "call_function": "main"}
    job.call(Kind.SYNC, "float", **where).every(every * PERIOD, STEPS // every, dur=wait, start=PERIOD - wait - host)
    return job


def small_batches(size: int = 4, *, ns_per_op: int = 2_000, batches: int = 4_000) -> Job:
    """Keras' fit on batches of some samples; its call takes 90 ms of each 100."""
    job = keras_fit(90 * MS)
    job.trace(0, MS, cause="first", owner="keras", function="one_step_on_data", nodes=90 * MS // ns_per_op, updates=9)
    job.batch(0, size=size, steps=batches)
    return job


def growing(fresh: int, *, ops: int = 3, until: int = STEPS, sized: bool = True) -> Job:
    """A program of sessions that runs something new in each step, besides its training of 2 ms.

    Args:
        fresh: how long the run of what is new takes.
        ops: that each step adds to the graph.
        until: the last step that adds some.
        sized: the graph was looked at.
    """
    job = Job()
    train = job.call(Kind.SESSION_RUN, "train", call_file=SCRIPT, call_line=CALL, call_function="main")
    train.every(PERIOD, STEPS, dur=2 * MS)
    where: dict[str, Any] = {"call_file": SCRIPT, "call_line": TIDY, "call_function": "main"}
    for i in range(STEPS):
        job.call(Kind.SESSION_RUN, f"Assign_{i}", **where).at(i * PERIOD + 10 * MS, fresh)
        if sized and i % 5 == 0:
            job.event(GraphSize(at=i * PERIOD + MS, id=1, ops=100 + ops * min(i, until)))
    return job


def reloading(dur: int, *, every: int = 1, role: str = "model", train: bool = False) -> Job:
    """Each or each ``every``-th step loads a model first."""
    job = Job()
    job.call(Kind.MODEL_CALL, "Functional").every(PERIOD, STEPS, dur=5 * MS, start=90 * MS)
    if train:
        job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=96 * MS)
    where: dict[str, Any] = {"call_file": SCRIPT, "call_line": 33, "call_function": "handle"}
    load = job.call(Kind.BUILD, "load_model", role=role, **where)
    load.every(every * PERIOD, STEPS // every, dur=dur)
    return job


def compiled_anew(
    tracing: int, *, every: int = 1, line: int = 21, steps: int = STEPS, sizes: int = 1, same: bool = False
) -> Job:
    """Keras' fit of one step, on a model that is compiled anew for each ``every``-th; its function traces then.

    ``sizes``: number of sizes that its graph has in turn; ``same``: it is the same model each time.
    """
    job = Job()
    fit, train = job.loop("fit"), job.execution("train")
    for i in range(steps):
        at, new = i * PERIOD, i % every == 0
        if new:
            job.event(ModelBuilt(at=at, file=SCRIPT, line=line, compiles=1 + i // every * same))
            nodes = 100 + i // every % sizes
            job.trace(at + 11 * MS, tracing, nodes=nodes, cause="first", owner="keras", function="one_step_on_data")
        fit.at(at + 10 * MS, 88 * MS)
        train.at(at + 11 * MS, 20 * MS + (tracing if new else 0), arg=1, flags=TRACED if new else 0)
    return job


def predicting(overhead: int, *, calls: int = STEPS) -> Job:
    """``predict`` on single rows in a loop, as the whole work of the loop."""
    job = Job()
    job.loop("predict", line=LOOP_LINE + 3).every(PERIOD, calls, dur=overhead + 5 * MS, arg=1)
    job.execution("predict").every(PERIOD, calls, dur=5 * MS, start=overhead // 2, arg=1)
    return job


def predicting_beside_a_step(calls: int) -> Job:
    """A step of 100 ms; in ``calls`` of the steady ones it also predicts, 40 ms each."""
    job = train_loop(20 * MS)
    job.loop("predict", line=LOOP_LINE + 3).every(PERIOD, calls, dur=40 * MS, start=PERIOD + 50 * MS, arg=1)
    return job


def called_back(dur: int, *, hook: str = "on_train_batch_end", own: bool = True, every: int = 1) -> Job:
    """Keras' fit with one callback that takes ``dur`` in each or each ``every``-th step."""
    job = keras_fit(50 * MS)
    hooks = job.call(Kind.HOOK, hook)
    callback = job.callback(f"Plotter.{hook}", own=own)
    for i in range(0, STEPS, every):
        hooks.at(i * PERIOD + 50 * MS, dur + 10 * US)
        callback.at(i * PERIOD + 50 * MS, dur)
    return job


def hooked(dur: int, *, own: bool = True, hook: str = "after_run") -> Job:
    """A MonitoredSession with a hook that takes ``dur`` after every run, half of it in a run of its own."""
    job = Job()
    place = {"call_file": SCRIPT, "call_line": CALL, "call_function": "main"}
    run, own_run = job.call(Kind.SESSION_RUN, "train", **place), job.call(Kind.SESSION_RUN, "w:0", **place)
    text, where = f"Slow.{hook}", {"file": SCRIPT if own else f"{TF}/training/hooks.py", "line": 30, "end_line": 33}
    method = job.call(Kind.CALLBACK, text, hook=hook, own=own, **where, **place)
    for i in range(STEPS):
        run.at(i * PERIOD, 50 * MS)
        method.at(i * PERIOD + 50 * MS, dur)
        own_run.at(i * PERIOD + 50 * MS, dur // 2)
    return job


def validated(dur: int, *, calls: int = 9, every: int = 10, hook: str = "on_train_batch_end") -> Job:
    """Keras' fit with a callback that calls ``evaluate`` in ``calls`` steps, one in ``every``."""
    job = keras_fit(10 * MS)
    callback = job.callback(f"Watch.{hook}")
    evaluate = job.loop("evaluate", line=32)
    test = job.execution("test")
    for i in range(1, calls + 1):
        at = i * every * PERIOD + 10 * MS
        callback.at(at, dur + MS)
        evaluate.at(at, dur, flags=NESTED)
        test.at(at + 10 * US, dur - 20 * US)
    return job


def validating(dur: int, *, size: int = 1, every: int = 2) -> Job:
    """Keras' fit on batches of 64 that validates ten samples, in ``dur``, after one step in ``every``."""
    job = keras_fit(10 * MS)
    job.batch(0, size=64, samples=6_400, steps=100)
    job.batch(0, role="test", size=size, samples=10)
    evaluate, test = job.loop("evaluate"), job.execution("test")
    for at in range(every * PERIOD, STEPS * PERIOD, every * PERIOD):
        evaluate.at(at + 12 * MS, dur, flags=NESTED)
        test.at(at + 13 * MS, dur - 2 * MS)
    return job


def saving(dur: int, *, calls: int = 49, every: int = 2, kind: Kind = Kind.SAVE) -> Job:
    """A loop that saves in ``calls`` steps, one in ``every``."""
    job = train_loop(20 * MS)
    save = job.call(
        kind,
        "save",
        role="checkpoint" if kind is Kind.SAVE else "write",
        call_file=SCRIPT,
        call_line=60,
        call_function="main",
    )
    save.every(every * PERIOD, calls, dur=dur, start=PERIOD + 20 * MS)
    return job


def retraced(
    dur: int,
    *,
    traces: int = STEPS - 1,
    cause: str = "python-value",
    first: int = 1,
    file: str = SCRIPT,
    owner: str = "user",
) -> Job:
    """A loop of a function of ``file`` of 20 ms that is traced again, ``dur`` more, in ``traces`` of its steps."""
    job = Job()
    job.sources[SCRIPT] = SOURCE
    call = job.function(file=file, **MAIN_CALL)
    job.trace(0, 50 * MS, cause="first", ordinal=1)
    call.at(0, 70 * MS, flags=TRACED)
    for i in range(1, STEPS):
        again = first <= i < first + traces
        call.at(i * PERIOD, 20 * MS + (dur if again else 0), flags=TRACED if again else 0)
        if again:
            job.trace(
                i * PERIOD,
                dur - dur // 10,
                cause=cause,
                argument="rate",
                before=f"0.{i}",
                after=f"0.{i + 1}",
                ordinal=i + 1,
                nodes=500,
                file=file,
                owner=owner,
                stack=[(SCRIPT, "main", CALL)],
            )
    return job


def shared_machine(others: float, *, got: float = 1.0, waiting: float = 1.0) -> Job:
    """A job that would use two CPUs, on a machine of two, beside a process that takes ``others`` of them."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=got, waiting=waiting, others=others)
    job.rival("/usr/bin/python3 /opt/archive.py --all", cores=others, seconds=10)
    return job


LAYER_SOURCE = """\
class Layer:
    def call(self, series):
        outputs = []
        for t in range(series.shape[1]):
            outputs.append(self.cell(series[:, t]))
        return outputs
"""
TURN = 4
"""Line of the loop over time steps in LAYER_SOURCE."""


def unrolled(tracing: int, *, nodes: int = 6_000, variables: int = 10, samples: int = 20, line: int = TURN + 1) -> Job:
    """A first trace before 9.92 s of steps, its samples on one line of a layer's ``call``."""
    job = Job()
    job.sources["/job/layer.py"] = LAYER_SOURCE
    job.trace(0, tracing, cause="first", nodes=nodes, variables=variables)
    job.function().every(PERIOD, STEPS, dur=20 * MS, start=tracing)
    keras = Frame("/usr/lib/python3/site-packages/keras/src/layers/layer.py", "__call__", 900, own=False)
    stack = (Frame(SCRIPT, "main", CALL), keras, Frame("/job/layer.py", "call", line))
    job.samples([(i + 1) * tracing // (samples + 1) for i in range(samples)], *stack)
    return job
