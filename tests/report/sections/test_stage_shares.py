"""The eight pipeline stages: what each share rests on, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive import torch_jobs
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S, node
from tests.detectors import data_loader_jobs
from tests.detectors.jobs import (
    MAKE,
    PERIOD,
    STEPS,
    TF,
    called_back,
    keras_fit,
    nothing,
    pulled,
    retraced,
    sampled,
    saving,
    train_loop,
)
from tests.detectors.traced_jobs import HEAD, exchanging, holding, loaded, on_gpu, transposed

from stepscope.detectors import base, registry
from stepscope.diagnosis import analyze
from stepscope.model.log.events import IteratorModel
from stepscope.model.report.report import StageShare
from stepscope.readers.iterator_model import Node
from stepscope.report import text, words
from stepscope.report.sections import stage_shares
from stepscope.tables.optrace import TraceSource


def shares(job: Job) -> dict[str, StageShare]:
    """Stages by name."""
    return {s.stage: s for s in stage_shares.build(job.view())}


@pytest.mark.parametrize("build", [nothing, lambda: keras_fit(50 * MS), lambda: pulled(40 * MS)])
def test_every_job_gets_all_eight(build: object) -> None:
    """Whatever the job, all eight stages are there in their order, each with a basis."""
    assert callable(build)
    found = stage_shares.build(build().view())
    assert tuple(s.stage for s in found) == stage_shares.STAGES
    assert all(s.basis for s in found)


def test_a_job_without_steps_says_what_would_show_them() -> None:
    """No stage of such a job has a share, and the reason names ``stepscope.step()``."""
    found = stage_shares.build(nothing().view())
    assert all(s.ratio is None for s in found)
    assert words.blind_stages(found) == ["all eight (no steps were seen; stepscope.step() marks the steps of any loop)"]


def test_parts_of_a_step_of_pytorch_are_stages() -> None:
    """On a CPU, once the forward pass is known; what the rest of the step holds is in no stage."""
    job = torch_jobs.training()
    blind = shares(job)
    assert blind["preprocessing"].ratio == pytest.approx(0.1)
    assert blind["forward-backward"].ratio is None
    torch_jobs.sampled(job, 2 * MS, torch_jobs.LOOP, torch_jobs.MODULE, torch_jobs.LINEAR)
    found = shares(job)
    assert {name for name, one in found.items() if one.ratio is not None} == {"preprocessing", "forward-backward"}
    assert found["forward-backward"].ratio == pytest.approx(0.9)
    assert "stack samples" in found["forward-backward"].basis
    report = analyze.report_of_view(job.view())
    assert words.component_of(report, "other-python") == words.UNTOLD


def test_on_a_gpu_parts_of_a_step_of_pytorch_are_no_stages() -> None:
    """There they are time on the host, in which the device may work for another part."""
    assert shares(data_loader_jobs.torch_job(20 * MS))["preprocessing"].ratio is not None
    assert all(one.ratio is None for one in shares(data_loader_jobs.torch_job(20 * MS, busy=80)).values())


def test_python_of_the_loop_that_makes_the_batch_is_preprocessing() -> None:
    """By the loop's source: what goes into the step is preprocessing, what comes out of it output processing."""
    before, after = shares(sampled(before=60 * MS)), shares(sampled(after=60 * MS))
    assert before["preprocessing"].ratio == pytest.approx(0.6, abs=0.05)
    assert before["output-processing"].ratio == pytest.approx(0.0, abs=0.05)
    assert after["preprocessing"].ratio == pytest.approx(0.0, abs=0.05)
    assert after["output-processing"].ratio == pytest.approx(0.6, abs=0.05)


DECODER = """\
def main(token, tokens):
    for _ in range(99):
        x = attend(embed(token), tokens)
        logits = train_step(x)
        token = choose(logits)
        tokens.append(token)
"""


def decoder(line: int, *below: Frame, part: int = 60 * MS) -> Job:
    """A loop whose call is given what was made of its last result; Python of one of its lines takes the rest."""
    job = Job()
    job.sources[SCRIPT] = DECODER
    job.function(call_file=SCRIPT, call_line=4, call_function="main").every(PERIOD, STEPS, dur=PERIOD - part)
    times = [i * PERIOD + PERIOD - part // 2 for i in range(STEPS)]
    job.samples(times, Frame(SCRIPT, "main", line), *below)
    return job


def test_what_a_decoder_makes_of_its_own_results_is_no_input() -> None:
    """Choosing the next token is output processing, the model's eager ops are its computation; neither is input."""
    chosen = shares(decoder(5, Frame(SCRIPT, "choose", 9)))
    assert chosen["preprocessing"].ratio == pytest.approx(0.0, abs=0.01)
    assert chosen["output-processing"].ratio == pytest.approx(0.6, abs=0.05)
    op = Frame(f"{TF}/ops/gen_math_ops.py", "mat_mul", 6000, own=False)
    attended = shares(decoder(3, Frame(SCRIPT, "attend", 12), op))
    assert attended["preprocessing"].ratio == pytest.approx(0.0, abs=0.01)
    assert attended["forward-backward"].ratio == pytest.approx(1.0, abs=0.05)
    assert "model ops between them" in attended["forward-backward"].basis


def test_choosing_the_next_token_is_python_on_results() -> None:
    """It is told as such, with what helps where the next step waits for it; no tf.data pipeline could prepare it."""
    found, _, _ = base.run(registry.ALL, decoder(5, Frame(SCRIPT, "choose", 9)).view())
    (said,) = [f for f in found if f.code in {"HST001", "INP004"}]
    assert (said.code, said.pipeline_stage) == ("HST001", "output-processing")
    assert [remedy.id for remedy in said.remedies] == ["vectorise"]


def test_ops_that_read_weights_before_the_call_are_no_input() -> None:
    """A part of the model that runs op by op ahead of the step's call is seen by the variables that it reads."""
    main, stem = Frame(SCRIPT, "main", MAKE), Frame(SCRIPT, "stem", 4)
    job = train_loop(40 * MS, offset=60 * MS)
    read = Frame(f"{TF}/ops/resource_variable_ops.py", "_read_variable_op", 800, own=False)
    op = Frame(f"{TF}/ops/gen_math_ops.py", "mat_mul", 6000, own=False)
    for i in range(STEPS):
        job.samples([i * PERIOD + 30 * MS], main, stem, op if i % 8 else read)
    found = shares(job)
    assert found["preprocessing"].ratio == pytest.approx(0.0, abs=0.01)
    assert found["forward-backward"].ratio == pytest.approx(1.0, abs=0.05)


def test_a_wait_that_may_hide_is_no_share() -> None:
    """Where tf.data's model is missing the input is not said to take no time, and the call says what is inside."""
    found = shares(keras_fit(80 * MS))
    assert found["preprocessing"].ratio is None
    assert found["preprocessing"].basis.startswith(words.BLIND)
    assert "input wait inside" in found["forward-backward"].basis


def reading(*nodes: Node) -> Job:
    """A loop that waits 40 of 100 ms for a pipeline with these stages."""
    job = Job()
    root = job.dataset("BatchDataset", job.dataset("TFRecordDatasetV2", line=1), line=2)
    iterator = job.iterator(root)
    job.function().every(PERIOD, STEPS, dur=PERIOD - 40 * MS, start=40 * MS)
    job.nexts().every(PERIOD, STEPS, dur=40 * MS, arg=iterator)
    job.model(iterator, (STEPS - 1) * PERIOD, nodes)
    return job


def test_the_wait_is_split_by_the_stages_that_set_the_pace() -> None:
    """Reading and decoding on one thread share the wait by their self times, wherever the slowest stage is."""
    batches = STEPS - 1
    found = shares(
        reading(
            node(1, "Batch", 2, elements=batches, busy=batches * 30 * MS),
            node(2, "TFRecord", elements=batches, busy=batches * 10 * MS),
        )
    )
    assert found["raw-input"].ratio == pytest.approx(0.1, abs=0.01)
    assert found["preprocessing"].ratio == pytest.approx(0.3, abs=0.01)
    assert "TFRecord 10 ms a batch" in found["raw-input"].basis
    assert "Batch 30 ms a batch" in found["preprocessing"].basis


@pytest.mark.parametrize(("stage", "ratio"), [("Shuffle", 0.0), ("ParallelMapV2", None)])
def test_a_pipeline_without_a_reader(stage: str, ratio: float | None) -> None:
    """Data in memory are not read; a function of the user's may read files, so its time is not divided."""
    found = shares(
        reading(node(1, stage, 2, elements=STEPS, busy=STEPS * 10 * MS), node(2, "TensorSlice", elements=STEPS))
    )
    assert found["raw-input"].ratio == ratio
    assert found["preprocessing"].ratio == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("error", "fed", "why"),
    [
        ("no-op", True, "TensorFlow 2.15.1 does not expose tf.data's model"),
        ("no-model", True, "autotune is off"),
        ("InternalError()", True, "InternalError()"),
        ("", True, "the steps ended before"),
        ("", False, "no iterator was seen feeding the step"),
    ],
)
def test_a_hidden_wait_has_the_reason_of_this_run(error: str, why: str, *, fed: bool) -> None:
    """What is said of an unread model is what happened; another version is asked for by an old TensorFlow alone."""
    job = keras_fit(80 * MS)
    job.framework(version="2.15.1" if error == "no-op" else "2.21.0")
    if fed:
        job.event(IteratorModel(at=S, iterator=job.iterator(), error=error))
    basis = shares(job)["preprocessing"].basis
    assert why in basis
    assert ("2.17" in basis) is (error == "no-op")
    _, checked, _ = base.run(registry.ALL, job.view())
    assert why in {c.detector: c.hint for c in checked}["INP001"]


@pytest.mark.parametrize(
    ("job", "stage", "ratio"), [(called_back(40 * MS), "output-processing", 0.4), (saving(40 * MS), "storage", 0.2)]
)
def test_callbacks_and_saves(job: Job, stage: str, ratio: float) -> None:
    """Callbacks are output processing, saves storage."""
    found = shares(job)[stage].ratio
    assert found is not None
    assert found >= ratio - 0.05


def test_retracing_is_no_forward_pass() -> None:
    """Of calls of 20 ms in 100, half trace the function again, for 60 ms more."""
    found = shares(retraced(60 * MS, traces=STEPS // 2))["forward-backward"]
    assert found.ratio == pytest.approx(0.2, abs=0.01)
    assert found.basis.endswith("without tracing")


def test_text_shows_shares_and_what_would_show_the_rest() -> None:
    """One or two lines: shares first, then what could not be looked at and what would show it."""
    from stepscope.diagnosis.analyze import report_of

    shown = text.render(report_of(pulled(40 * MS).session()), width=160)
    lines = shown.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("stages"))
    assert "preprocessing 40 %" in lines[at]
    assert "not measured: host to device, gradient sharing (needs an op trace)" in lines[at + 1]


def test_a_trace_shows_what_only_a_device_can() -> None:
    """Copies and exchange of a measured job, by its op trace; a trace without a device's work says so."""
    found = shares(on_gpu([HEAD], copy=40_000))
    assert found["host-to-device"].ratio == pytest.approx(0.4, abs=0.01)
    assert "11 traced steps" in found["host-to-device"].basis
    assert found["gradient-sharing"].ratio == 0
    assert shares(transposed(10_000))["host-to-device"].basis == "not measured: the op trace contains no device work"


def test_copies_from_the_device_are_in_their_stage() -> None:
    """Nothing in Python waits for a copy inside a compiled call: the device's trace shows it."""
    found = shares(on_gpu([HEAD], fetch=30_000))["device-to-host"]
    assert found.ratio == pytest.approx(0.3, abs=0.01)
    assert "copies from device to host" in found.basis
    assert shares(transposed(10_000))["device-to-host"].basis.startswith("host waits")


def test_an_imported_trace_has_all_eight_from_its_parts() -> None:
    found = shares(loaded(40_000))
    assert tuple(found) == stage_shares.STAGES
    assert found["preprocessing"].ratio == pytest.approx(0.4, abs=0.01)
    assert found["forward-backward"].ratio == pytest.approx(0.6, abs=0.01)
    assert found["storage"].ratio is None


@pytest.mark.parametrize(("job", "rest"), [(exchanging(0.4), 0.5), (exchanging(0.4, measured=False), 0.6)])
def test_hosts_that_exchange_gradients_have_their_stage(job: Job, rest: float) -> None:
    """A cluster of CPUs shares gradients, too: the share is that of the traced steps, and is no forward/backward."""
    found = shares(job)
    assert found["gradient-sharing"].ratio == pytest.approx(0.4, abs=0.01)
    assert "11 traced steps" in found["gradient-sharing"].basis
    assert found["forward-backward"].ratio == pytest.approx(rest, abs=0.02)
    assert sum(s.ratio or 0 for s in found.values()) == pytest.approx(1, abs=0.01)


def marked(name: str = "") -> Job:
    """A loop with marked steps, of a framework without probes, or of none."""
    job = Job()
    if name:
        job.framework(name, "2.11.0")
    job.step().every(PERIOD, STEPS, dur=PERIOD)
    return job


@pytest.mark.parametrize(("name", "title"), [("torch", "PyTorch"), ("jax", "JAX"), ("numpy", "NumPy")])
def test_nothing_is_claimed_of_steps_of_a_framework_that_is_not_measured(name: str, title: str) -> None:
    """All of such a step looks like Python between calls: neither a share, nor a stage, nor a finding follows."""
    found = shares(marked(name))
    assert {share.ratio for share in found.values()} == {None}
    assert found["output-processing"].basis == f"not measured: stepscope does not measure {title}'s calls"
    findings, _, failures = base.run(registry.ALL, marked(name).view())
    assert failures == ()
    assert "GEN012" not in {finding.code for finding in findings}


def test_steps_of_plain_python_are_python() -> None:
    """The same loop without such a framework has its shares."""
    assert shares(marked())["output-processing"].ratio == pytest.approx(1.0)


def _idle(idle: float, source: TraceSource, call: str = "") -> Job:
    """An imported file whose steps run one op, and for a part nothing that is known; ``call``: made meanwhile."""
    made = Maker(source)
    for i in range(8):
        at = 100_000.0 * i
        made.step(at, 99_990, i)
        if call:
            made.span(made.main, call, at + 5, 1_000)
        made.op(made.main, "aten::mm:mm", at + idle, 99_900 - idle)
    return holding(made.trace(), measured=False)


KINETO, XSPACE = TraceSource(format="kineto"), TraceSource(format="xplane")


@pytest.mark.parametrize(
    ("job", "known"),
    [
        (lambda: _idle(80_000, KINETO), False),
        (lambda: _idle(80_000, XSPACE), False),
        (lambda: _idle(16_000, KINETO), False),
        (lambda: _idle(10_000, KINETO), True),
        (lambda: _idle(80_000, XSPACE, "$builtins next"), True),
    ],
    ids=["PyTorch", "no Python", "just enough", "hardly idle", "next is recorded"],
)
def test_time_without_an_op_is_no_output_where_a_wait_would_not_be_seen(job: Callable[[], Job], *, known: bool) -> None:
    """It may be a wait for input: a share of 0 % says that it is none."""
    found = shares(job())
    assert [found[stage].ratio is not None for stage in ("preprocessing", "output-processing")] == [known, known]
    assert found["forward-backward"].ratio is not None
    assert known or "no op runs" in found["output-processing"].basis
