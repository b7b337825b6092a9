"""HST002 eager-step: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN as MAIN_THREAD
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.asking import codes, find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import CALL, FUNCTION_CALL, PERIOD, STEPS, TF, eager, keras_fit, train_loop, unsampled

from stepscope.detectors.host.eager_step import DETECTOR
from stepscope.model.log.eager import EagerOp, EagerOps
from stepscope.model.log.program import Setting
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: eager(49, 39),
    expected=Expected(
        severity="high",
        cost=(49 + 39) / 98,
        where=(("train.py", 12),),
        metrics=("eager_ratio", "python_ratio", "samples"),
        title=("eagerly", "no tf.function"),
        pipeline_stage="forward-backward",
        remedy="use-tf-function",
        basis="modelled",
    ),
    silent=lambda: eager(5, 5, compiled=88),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: eager(14, 60),
    at=lambda: eager(15, 60),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_large_eager_ops_are_none() -> None:
    """Eager ops that are themselves the time hide the dispatch: nothing is said."""
    assert codes(eager(10, 88)) == []


def test_the_upper_bound_holds_the_users_python_around_the_ops() -> None:
    """In a graph nobody runs it; how much of it the step needs all the same is not known."""
    found = next(one for one in find(eager(20, 20)) if one.code == "HST002")
    assert found.cost.ratio <= 0.42
    assert found.cost.high >= 0.95


def test_what_keras_does_around_its_graph_is_not_eager() -> None:
    """Python of Keras' inside of its compiled step's call runs no op."""
    assert codes(eager(60, 5, job=keras_fit(99 * MS))) == []


def test_run_eagerly_of_another_model_does_not_explain_a_loop() -> None:
    """A custom loop that runs op by op lacks a tf.function, whatever a model was compiled with."""
    job = eager(49, 39)
    job.compiled(run_eagerly=True, file=SCRIPT, line=21)
    assert codes(job) == ["HST002"]


def test_a_program_of_sessions_does_not_run_eagerly() -> None:
    """Ops that are added to the graph of a session are not run."""
    job = Job()
    job.call(Kind.SESSION_RUN, "train_op").every(PERIOD, STEPS, dur=5 * MS)
    assert "HST002" not in codes(eager(49, 39, job=job))


MAIN = Frame(SCRIPT, "main", CALL)
PY_FUNCTION = Frame(f"{TF}/ops/script_ops.py", "EagerFunc._call", 148, own=False)


def beside_metric() -> Job:
    """An eager step that calls a small tf.function at its end."""
    job = train_loop(8 * MS, offset=85 * MS)
    return eager(49, 39, job=job)


def test_the_function_that_the_step_calls_is_named() -> None:
    """The step calls a tf.function for a small part: it is named with its share, and the rest is what runs eagerly."""
    (found,) = find(beside_metric())
    assert found.code == "HST002"
    assert "no tf.function" not in found.title
    assert "outside its tf.function train_step, which takes 8.0 %" in found.title
    assert "outside its tf.function train_step" in found.remedies[0].text
    assert ("train.py", 10) in [(p.file, p.line) for p in found.where]


def test_eager_work_beside_keras_step_is_said_to_be_beside_it() -> None:
    """Ops that prepare each batch of a compiled Keras step are outside of it: nobody lacks a tf.function around it."""
    job = Job()
    job.execution("train").every(PERIOD, STEPS, dur=8 * MS, start=85 * MS, arg=1)
    found = next(f for f in find(eager(49, 39, job=job)) if f.code == "HST002")
    assert "outside Keras' compiled train step" in found.title


def test_functions_that_run_eagerly_by_a_setting_are_told_with_its_line() -> None:
    """Part of the eager time lies in a tf.function that a setting has run so: the setting's line is named."""
    job = beside_metric()
    job.event(Setting(name="run_functions_eagerly", value=True, file=SCRIPT, line=3, function="main"))
    eager(12, 9, job=job, below=(MAIN, FUNCTION_CALL))
    found = next(f for f in find(job) if f.code in {"HST002", "GRF003"})
    assert found.code == "HST002"
    assert "because of tf.config.run_functions_eagerly at train.py:3" in found.title
    assert found.remedies[0].id == "remove-run-functions-eagerly"
    job.event(Setting(name="run_functions_eagerly", value=False, file=SCRIPT, line=4, function="main"))
    found = next(f for f in find(job) if f.code == "HST002")
    assert "run_functions_eagerly" not in found.title


def test_python_that_a_graph_calls_back_is_no_eager_step() -> None:
    """tf.py_function runs its ops one by one inside of a compiled step: no setting does it, and a function is there."""
    job = train_loop(99 * MS)
    codes = [f.code for f in find(eager(49, 39, job=job, below=(MAIN, FUNCTION_CALL, PY_FUNCTION)))]
    assert not {"HST002", "GRF003"} & set(codes)


def test_without_any_function_it_says_so() -> None:
    """A step that calls no compiled function lacks one."""
    (found,) = find(eager(49, 39))
    assert "no tf.function around it" in found.title


ELEMENTS = "\n" * 9 + "def step(rows, state):\n    for row in rows:\n        {}\n"


def looped(body: str, *, turns: int = 64, ops: int = 6) -> Job:
    """The eager step has a loop at its line; a look of ten steps saw so many turns of it in each."""
    job = eager(49, 39)
    job.sources[SCRIPT] = ELEMENTS.format(body)
    rows = tuple(
        EagerOp(op=f"Op{number}", file=SCRIPT, line=12, function="step", count=10 * turns, ns=MS)
        for number in range(ops)
    )
    whole = 10 * turns * ops
    job.event(EagerOps(at=20 * PERIOD, dur=10 * PERIOD, thread=MAIN_THREAD, ops=whole, ns=ops * MS, rows=rows))
    return job


def test_a_loop_over_elements_is_to_be_vectorised() -> None:
    """Most ops stand in a loop whose turns need nothing of each other: they are counted, compiling comes second."""
    (found,) = find(looped("out.append(row * 2)"))
    assert found.code == "HST002"
    assert "Python loop over elements in step: 64 turns a step, 6.0 ops each" in found.title
    assert [remedy.id for remedy in found.remedies] == ["vectorise-loop", "use-tf-function"]
    assert (found.where[0].line, found.where[0].end_line) == (11, 12)


@pytest.mark.parametrize(
    ("body", "turns", "ops"),
    [("state = cell(row, state)", 64, 6), ("out.append(row * 2)", 8, 6), ("out.append(row * 2)", 64, 60)],
    ids=["carries", "few-turns", "large-turns"],
)
def test_other_loops_are_to_be_compiled(body: str, turns: int, ops: int) -> None:
    """A loop that carries a state, has few turns, or does much in each, is none over elements."""
    (found,) = find(looped(body, turns=turns, ops=ops))
    assert "loop over elements" not in found.title
    assert found.remedies[0].id == "use-tf-function"


def test_a_loop_that_updates_the_weights_is_none_over_elements() -> None:
    """Each turn changes what the next one computes with, which its source does not say."""
    job = looped("train_step(row)")
    optimizer = Frame(
        "/x/site-packages/keras/src/optimizers/base_optimizer.py", "BaseOptimizer.apply_gradients", 9, own=False
    )
    job.samples([PERIOD * n + 50 * MS for n in range(40, 60)], Frame(SCRIPT, "step", 12), optimizer)
    (found,) = find(job)
    assert "loop over elements" not in found.title
    assert found.remedies[0].id == "use-tf-function"


def test_adapt_of_keras_wants_larger_batches() -> None:
    """No line of the user's could be put into a function."""
    adapt = Frame("/x/site-packages/keras/src/layers/text_vectorization.py", "TextVectorization.adapt", 9, own=False)
    job = Job()
    job.call(Kind.APPLY, "update").every(PERIOD, STEPS, dur=MS, start=90 * MS)
    for part, module, function in ((40, "math_ops", "matmul"), (60, "gen_math_ops", "mat_mul")):
        op = Frame(f"{TF}/ops/{module}.py", function, 3000, own=False)
        job.samples([PERIOD * n + part * MS for n in range(1, STEPS)], Frame(SCRIPT, "main", 15), adapt, op)
    (found,) = find(job)
    assert found.title.startswith("adapt runs eagerly, op by op from Python (once for each batch")
    assert [remedy.id for remedy in found.remedies] == ["batch-for-adapt"]


def test_the_loop_that_calls_the_step_is_none_over_elements() -> None:
    """The optimizer is called in a function: the loop around that function's call makes the steps, and each turn needs
    the weights of the one before, which its source does not say.
    """
    job = Job()
    apply = job.call(Kind.APPLY, "Adam", call_file=SCRIPT, call_line=12, call_function="step")
    apply.every(PERIOD, STEPS, dur=MS, start=90 * MS)
    eager(49, 39, job=job, below=(Frame(SCRIPT, "main", 15),))
    loop = "def main(rows):\n    for row in rows:\n        out.append(step(row))\n"
    job.sources[SCRIPT] = "\n" * 9 + "def step(row):\n    loss = f(row)\n    return g(loss)\n" + loop
    rows = tuple(EagerOp(op=f"Op{n}", file=SCRIPT, line=12, function="step", count=640, ns=MS) for n in range(6))
    job.event(EagerOps(at=20 * PERIOD, dur=10 * PERIOD, thread=MAIN_THREAD, ops=3840, ns=6 * MS, rows=rows))
    (found,) = find(job)
    assert found.code == "HST002"
    assert "loop over elements" not in found.title
