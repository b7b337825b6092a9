"""The parts of a step of PyTorch: by records, and the forward pass by stack samples."""

from __future__ import annotations

from tests.derive.sessions import MS, SCRIPT, Job
from tests.derive.torch_jobs import LINEAR, LOOP, MODULE, STEPS, sampled, training

from stepscope.derive.steps.sampled_parts import MIN_SAMPLES
from stepscope.model.report.components import COMPONENTS, ComponentName
from stepscope.wire.kinds import Kind


def shares(job: Job) -> dict[ComponentName, int]:
    """Shares of the mean step in percent, without parts that it lacks."""
    anatomy = job.view().anatomy
    assert anatomy is not None
    found = {name: round(100 * anatomy.ratio(name)) for name in COMPONENTS}
    assert sum(found.values()) == 100
    return {name: share for name, share in found.items() if share}


def test_records_show_all_parts_but_the_forward_pass() -> None:
    """Without samples it is in the rest of the step."""
    job = training()
    assert shares(job) == {"input-wait": 10, "other-python": 30, "backward": 40, "optimizer": 20}
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.sampled is not None
    assert (anatomy.sampled.samples, anatomy.sampled.forward_ratio) == (0, None)


def test_samples_split_the_rest_of_the_step() -> None:
    """By the time that they stand for; those in other parts of the step do not count, whatever their stack."""
    job = training()
    sampled(job, 2 * MS, LOOP, MODULE, LINEAR, dur=20 * MS)
    sampled(job, 3 * MS, LOOP)
    sampled(job, 5 * MS, LOOP, MODULE)
    assert shares(job) == {"input-wait": 10, "forward": 20, "other-python": 10, "backward": 40, "optimizer": 20}
    view = job.view()
    by_part = {sample.component: sample.frames[-1].function for sample in view.samples}
    assert by_part["forward"] == "Linear.forward"
    assert by_part["other-python"] == "<module>"


def test_few_samples_split_nothing() -> None:
    """Whether a part of the rest is the forward pass is not known then."""
    job = training()
    sampled(job, 2 * MS, LOOP, MODULE, count=MIN_SAMPLES - 1)
    assert "forward" not in shares(job)
    assert {sample.component for sample in job.view().samples} == {"other-python"}


def test_a_loop_without_modules_has_no_forward_pass() -> None:
    """It is seen to have none."""
    job = training()
    sampled(job, 2 * MS, LOOP)
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.sampled is not None
    assert anatomy.sampled.forward_ratio == 0.0


def test_an_optimizer_within_another_and_one_without_a_time() -> None:
    """No moment counts twice; a step whose beginning is not known has no optimizer."""
    job = training(backward=False)
    inner = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=11)
    inner.every(10 * MS, STEPS, dur=0, start=9 * MS, arg=MS)
    assert shares(job)["optimizer"] == 20
    job = training()
    job.records = [one._replace(arg=0) if one.kind == Kind.APPLY else one for one in job.records]
    assert "optimizer" not in shares(job)


def test_a_step_that_is_marked_has_the_same_parts() -> None:
    """``stepscope.step()`` in a loop of PyTorch."""
    job = training()
    job.step().every(10 * MS, STEPS, dur=10 * MS, start=0)
    sampled(job, 2 * MS, LOOP, MODULE)
    assert shares(job) == {"input-wait": 10, "forward": 30, "backward": 40, "optimizer": 20}


def test_other_jobs_are_not_split() -> None:
    """A frame that looks like PyTorch's says nothing in a job whose steps it does not make."""
    job = Job()
    job.function().every(10 * MS, STEPS, dur=5 * MS)
    sampled(job, 7 * MS, LOOP, MODULE)
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.sampled is None
    assert anatomy.ratio("forward") == 0.0
