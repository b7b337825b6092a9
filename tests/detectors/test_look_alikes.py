"""Sessions that look like a known problem and are another one, or none: false alarms are defects."""

from __future__ import annotations

import pytest
from tests.derive.sessions import END, MS, NESTED, POOL, SCRIPT, TRACED, US, Frame, Job, S, node
from tests.detectors.jobs import (
    CALL,
    MAIN_CALL,
    PERIOD,
    REPORT,
    STEPS,
    called_back,
    eager,
    hooked,
    keras_fit,
    predicting,
    pulled,
    retraced,
    saving,
    shared_machine,
    train_loop,
    validated,
)
from tests.detectors.resource_jobs import from_disk

from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.report.finding import Finding
from stepscope.wire.kinds import Kind


def find(job: Job) -> tuple[Finding, ...]:
    """What all detectors say, the costliest first; none may fail."""
    findings, _, failures = run(ALL, job.view())
    assert failures == ()
    return findings


def codes(job: Job) -> list[str]:
    """The codes of what is found."""
    return [f.code for f in find(job)]


def read_models(job: Job, wait: int) -> Job:
    """Reads of tf.data's model for the usual fit, whose executions wait for their input so long at their start."""
    dataset = job.dataset("MapDataset", job.dataset("RangeDataset", line=70), line=71)
    iterator = job.iterator(dataset)
    for executions in (40, 80):
        nodes = [node(1, "Map", 2, elements=executions, busy=executions * wait), node(2, "Range", elements=executions)]
        gaps = [(PERIOD - wait) // US] * (executions - 1)
        job.model(iterator, executions * PERIOD - PERIOD // 2, nodes, gaps)
    return job


def test_memory_that_holds_no_files_is_named_as_why_the_disk_is_read_again() -> None:
    """A cgroup that is full beside a slow disk; one with room, and one without a limit, are not named."""
    said = []
    for held in (0.99, 0.9, 0.0):
        (found,) = find(from_disk(0.95, held=held))
        remedies = [remedy.id for remedy in found.remedies]
        said.append(("page cache and is read again" in found.explanation, "raise-memory" in remedies))
    assert said == [(True, True), (False, False), (False, False)]


def test_a_starved_job_is_not_input_bound() -> None:
    """What a neighbour takes from the input is not the input's: the wait shrinks by the share of CPUs lost."""
    job = pulled(20 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("/usr/bin/stress", cores=1.0, seconds=10)
    assert codes(job) == ["CFG001"]
    assert codes(pulled(20 * MS)) == ["INP001"]


@pytest.mark.parametrize("threads", [2.0, 14.0])
def test_waiting_that_the_job_makes_itself_is_none(threads: float) -> None:
    """More runnable threads than CPUs, with nobody else on the machine, is not contention."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.95, waiting=threads, others=0.05)
    assert codes(job) == []


def test_a_busy_neighbour_on_a_free_machine_is_none() -> None:
    """A neighbour on CPUs that the job does not want costs nothing."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=16, got=2.0, waiting=0.05, others=8.0)
    assert codes(job) == []


def test_a_quota_is_named() -> None:
    """A cgroup quota that throttles the job is told apart from neighbours."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=4, got=1.0, waiting=2.0, quota=1.0, throttled=0.9)
    (found,) = find(job)
    assert (found.code, found.remedies[0].id) == ("CFG001", "raise-quota")
    assert "quota" in found.title


def test_steal_is_named() -> None:
    """CPU that the hypervisor gives away is told apart from neighbours on the machine."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, steal=1.0)
    (found,) = find(job)
    assert found.code == "CFG001"
    assert "hypervisor" in found.title


def test_a_companion_of_the_job_is_named_with_its_line() -> None:
    """A process that the job started itself is a rival, at the line that started it."""
    job = train_loop(80 * MS)
    job.machine(10, cpus=2, got=1.0, waiting=1.0, others=1.0)
    job.rival("python evaluate.py", cores=1.0, seconds=10, pid=901, child=True)
    job.child(901, "python evaluate.py", line=77)
    (found,) = find(job)
    assert [(p.file, p.line) for p in found.where] == [("train.py", 77)]
    assert "started itself" in found.title


def test_a_slow_hook_of_a_session_is_found_at_its_line() -> None:
    """The step is the user's run, not the one that the hook makes; the hook is named with its method's line."""
    view = hooked(40 * MS).view()
    assert view.steps is not None
    assert view.steps.call is not None
    assert view.steps.call.text == "train"
    (found,) = find(hooked(40 * MS))
    assert (found.code, found.where[0].line, found.where[0].function) == ("HST004", 30, "Slow.after_run")
    assert "the hook Slow takes 40 ms on every run" in found.title
    assert "N-th run" in found.remedies[0].text
    assert codes(hooked(MS)) == []


def test_callbacks_that_inherit_one_method_are_one_finding() -> None:
    """Four classes of a user's inherit a hook from one base: one root, with all of its cost, and their own names."""
    job = keras_fit(40 * MS)
    for i, text in enumerate(("Norms", "Dead", "Trend", "Memory")):
        callback = job.callback(f"{text}.on_train_batch_end")
        callback.every(PERIOD, STEPS, dur=10 * MS, start=(40 + 10 * i) * MS)
    (found,) = find(job)
    assert found.code == "HST004"
    assert found.cost.ratio == pytest.approx(0.4)
    assert "4 callbacks that inherit one on_train_batch_end (Norms, Dead, Trend and 1 more) take 40 ms" in found.title
    assert {p.line for p in found.where} == {30}


def test_slow_callbacks_of_their_own_are_findings_of_their_own() -> None:
    """Two methods at two lines are two roots."""
    job = keras_fit(40 * MS)
    job.callback("One.on_train_batch_end", line=30).every(PERIOD, STEPS, dur=30 * MS, start=40 * MS)
    job.callback("Other.on_train_batch_end", line=60).every(PERIOD, STEPS, dur=20 * MS, start=70 * MS)
    assert [round(f.cost.ratio, 1) for f in find(job)] == [0.3, 0.2]


def test_a_slow_hook_of_the_library_is_named_where_the_user_calls() -> None:
    """Nobody edits the library: the line is the user's, the remedy is to ask less of the hook."""
    (found,) = find(hooked(40 * MS, own=False))
    assert (found.where[0].file, found.where[0].line) == ("train.py", CALL)
    assert "longer interval" in found.remedies[0].text


def test_a_slow_callback_is_not_an_input_problem() -> None:
    """Time that a callback takes between two batches is a gap of the consumer, not a wait for input."""
    assert codes(read_models(called_back(40 * MS), wait=US)) == ["HST004"]


def test_input_inside_of_a_compiled_step_is_found() -> None:
    """The same fit whose compiled step waits for its input is input-bound, by tf.data's own model."""
    job = read_models(keras_fit(90 * MS), wait=60 * MS)
    (found,) = find(job)
    assert (found.code, found.severity) == ("INP001", "high")
    assert found.cost.ratio == pytest.approx(0.6, abs=0.001)


def test_input_that_the_step_hides_is_undecided() -> None:
    """Keras' compiled step without a model of its input is neither clear nor found, and the reason is given."""
    _, checked, _ = run(ALL, keras_fit(90 * MS).view())
    outcomes = {c.detector: c for c in checked}
    assert outcomes["INP001"].outcome == "undecided"
    assert outcomes["INP001"].missing == ("input wait inside of the compiled step",)
    assert outcomes["INP001"].hint


def test_an_eager_step_hides_no_input() -> None:
    """With run_eagerly the input is pulled in Python, so nothing is undecided."""
    job = keras_fit(90 * MS)
    job.compiled(run_eagerly=True)
    _, checked, _ = run(ALL, job.view())
    assert {c.detector: c.outcome for c in checked}["INP001"] == "clear"


def test_retracing_is_not_compute() -> None:
    """What tracing costs is tracing's: nothing else is found, and the call keeps its own time only."""
    job = retraced(60 * MS, traces=49)
    assert codes(job) == ["GRF001"]
    anatomy = job.view().anatomy
    assert anatomy is not None
    assert anatomy.mean_ns("tracing") == pytest.approx(30 * MS, rel=0.01)
    assert anatomy.mean_ns("call") == pytest.approx(20 * MS, rel=0.01)


@pytest.mark.parametrize("first", [500 * MS, 20 * S])
def test_a_long_first_step_is_none(first: int) -> None:
    """The first trace and compilation are warm-up."""
    job = Job()
    call = job.function(**MAIN_CALL)
    job.trace(0, first, cause="first")
    call.at(0, first + 20 * MS, flags=TRACED)
    call.every(PERIOD, STEPS, dur=90 * MS, start=first + 30 * MS)
    assert codes(job) == []


def test_a_second_shape_is_none() -> None:
    """A bounded number of traces, as of a last partial batch, is no finding however long they take."""
    assert codes(retraced(2 * S // 20, traces=2, cause="shape")) == []


@pytest.mark.parametrize("role", ["generator", "pydataset", "numpy_function", "py_function"])
def test_cheap_python_in_the_input_is_none(role: str) -> None:
    """A generator or Python function that is fast enough to hide behind the step is no problem."""
    assert codes(pulled(MS, python=15 * MS, role=role)) == []


def epochs(job: Job, call_of: str, dur: int, *, length: int = 20) -> Job:
    """The usual fit with something at the end of each epoch: within the last step of ``length``."""
    names = {"evaluate": job.loop("evaluate", line=50), "save": job.save()}
    epoch_end = job.callback("ModelCheckpoint.on_epoch_end", own=False)
    for end in range(length, STEPS, length):
        at = end * PERIOD - dur - MS
        if call_of == "save":
            epoch_end.at(at, dur + 10 * US)
            names["save"].at(at, dur)
        else:
            names["evaluate"].at(at, dur, flags=NESTED)
    return job


def test_validation_of_each_epoch_is_none() -> None:
    """What fit's own validation takes is what the user asked for."""
    assert codes(read_models(epochs(keras_fit(10 * MS), "evaluate", 80 * MS), wait=US)) == []


def test_a_cheap_checkpoint_of_each_epoch_is_none() -> None:
    """Saving that takes less than a twentieth of the time is what everybody wants."""
    assert codes(read_models(epochs(keras_fit(10 * MS), "save", 80 * MS), wait=US)) == []


@pytest.mark.parametrize(("dur", "found"), [(20 * MS, []), (30 * MS, ["HST006"])])
def test_one_checkpoint_of_each_short_epoch_is_none(dur: int, found: list[str]) -> None:
    """Where epochs are short the one save of each is wanted all the same, up to a quarter of the time."""
    job = keras_fit(5 * MS)
    epoch_end, save = job.call(Kind.HOOK, "on_epoch_end", hook="on_epoch_end"), job.save()
    for end in range(STEPS):
        at = end * PERIOD + 50 * MS
        epoch_end.at(at, dur + 10 * US)
        save.at(at, dur)
    assert codes(read_models(job, wait=US)) == found


def test_saving_oftener_than_validation_is_found() -> None:
    """The end of another iterator than the one that the steps pull from is no end of an epoch."""
    job = saving(20 * MS)
    train = job.nexts().every(PERIOD, STEPS, dur=MS, arg=job.iterator())
    other = job.nexts()
    for i in range(1, STEPS):
        other.at(i * PERIOD + 90 * MS, MS, flags=END)
    assert train.name.id != other.name.id
    assert "HST006" in codes(job)


def test_evaluation_at_the_end_of_epochs_is_none() -> None:
    """An evaluate called from on_epoch_end is no evaluation on batches, and no loop of its own."""
    assert codes(read_models(validated(80 * MS, calls=4, every=20, hook="on_epoch_end"), wait=US)) == []


def test_evaluations_are_counted_in_rests_too() -> None:
    """One was seen inside of the callback: those called at that place while callbacks rested are its as well."""
    job = keras_fit(10 * MS)
    job.callback("Watch.on_train_batch_end").at(PERIOD + 10 * MS, 61 * MS)
    evaluate = job.loop("evaluate", line=32)
    elsewhere = job.loop("evaluate", line=90)
    evaluate.at(PERIOD + 10 * MS, 60 * MS, flags=NESTED)
    job.rest(40 * PERIOD, 40 * PERIOD, 40)
    for i in range(40, 80, 2):
        evaluate.at(i * PERIOD + 10 * MS, 60 * MS, flags=NESTED)
        elsewhere.at(i * PERIOD + 75 * MS, 20 * MS, flags=NESTED)
    (found,) = (finding for finding in find(job) if finding.code == "HST005")
    seen = {evidence.metric: evidence.value for evidence in found.evidence}
    assert seen["calls"] == 21
    assert found.cost.ratio == pytest.approx(21 * 60 / 9800, rel=0.05)


def test_evaluation_on_batches_is_not_the_callbacks_own_work() -> None:
    """A callback that evaluates is one finding, with the evaluation's code."""
    assert codes(read_models(validated(80 * MS, calls=45, every=2), wait=US)) == ["HST005"]


def test_saving_in_a_callback_is_not_the_callbacks_own_work() -> None:
    """A callback that saves on batches is one finding, with the saving's code."""
    job = keras_fit(10 * MS)
    callback = job.callback("ModelCheckpoint.on_train_batch_end", own=False)
    callback.every(PERIOD, STEPS, dur=30 * MS + 20 * US, start=10 * MS)
    job.save("model").every(PERIOD, STEPS, dur=30 * MS, start=10 * MS + 10 * US)
    assert codes(read_models(job, wait=US)) == ["HST006"]


def test_many_small_callbacks_are_one_finding() -> None:
    """Callbacks that are cheap alone and dear together are named together, the dearest first."""
    job = keras_fit(50 * MS)
    for i in range(6):
        callback = job.callback(f"Meter{i}.on_train_batch_end", line=100 + 10 * i)
        callback.every(PERIOD, STEPS, dur=(2 * MS if i == 3 else MS), start=50 * MS + 3 * i * MS)
    (found,) = find(read_models(job, wait=US))
    assert found.code == "HST004"
    assert found.cost.ratio == pytest.approx(0.07, abs=0.001)
    assert found.where[0].line == 130
    assert len(found.where) == 6


def test_a_callback_of_keras_itself_is_placed_at_fit() -> None:
    """For a callback outside of the user's code the place is the call of fit."""
    (found,) = find(read_models(called_back(30 * MS, own=False), wait=US))
    assert [(p.file, p.line) for p in found.where] == [("train.py", 50)]


def test_predict_of_a_whole_set_is_none() -> None:
    """A few long predict calls, whose time is the compiled function's, are what predict is for."""
    job = Job()
    job.loop("predict").every(10 * S, 8, dur=10 * S - MS, arg=100_000)
    job.execution("predict").every(PERIOD, 800, dur=PERIOD - MS, arg=1)
    assert "HST003" not in codes(job)


def test_prediction_inside_of_a_training_step_is_exposed_in_training() -> None:
    """A predict that is called in each step of training is found there, and training pays."""
    job = train_loop(20 * MS)
    job.call(Kind.APPLY, "Adam").every(PERIOD, STEPS, dur=MS, start=5 * MS)
    job.loop("predict", line=46).every(PERIOD, STEPS, dur=50 * MS, start=30 * MS, arg=1)
    (found,) = find(job)
    assert (found.code, found.introduced_stage, found.exposed_stage) == ("HST003", "prediction", "training")


def test_predict_in_a_loop_says_nothing_of_retraces() -> None:
    """What Keras makes anew in each call of predict belongs to that call."""
    job = predicting(60 * MS)
    for i in range(1, STEPS):
        job.trace(i * PERIOD + MS, 20 * MS, cause="new-function", owner="keras", function="predict_function")
    assert codes(job) == ["HST003"]


def test_compute_is_none() -> None:
    """A job whose steps are all compiled compute has nothing to report."""
    job = train_loop(99 * MS)
    job.machine(10, cpus=2, got=1.98, waiting=0.5, others=0.02)
    assert codes(job) == []


def test_large_eager_ops_are_none() -> None:
    """Eager ops that are themselves the time hide the dispatch: nothing is said."""
    assert codes(eager(10, 88)) == []


def test_logging_now_and_then_is_none() -> None:
    """Python that runs every tenth step and is short stays below what is worth a finding."""
    job = train_loop(95 * MS)
    job.samples(
        [i * PERIOD + 97 * MS for i in range(1, STEPS)],
        Frame(SCRIPT, "main", REPORT),
        Frame(SCRIPT, "report", 8),
    )
    assert codes(job) == []


def test_summaries_are_told_apart_from_checkpoints() -> None:
    """Summaries on every step are found by their own words."""
    (found,) = find(saving(60 * MS, kind=Kind.SUMMARY))
    assert found.code == "HST006"
    assert "summaries" in found.title
    assert found.remedies[0].id == "summaries-less-often"


def test_a_background_thread_that_saves_is_none() -> None:
    """Saving on another thread than the step's does not block it."""
    job = train_loop(80 * MS)
    job.save().every(PERIOD, STEPS, dur=70 * MS, thread=POOL)
    assert codes(job) == []


def test_a_neighbour_is_not_named_for_a_job_that_it_does_not_slow() -> None:
    """A rival on the machine that takes a twentieth of it is ordinary system activity."""
    assert codes(shared_machine(0.1)) == []
