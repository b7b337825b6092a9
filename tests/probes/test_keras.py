"""What the Keras probes record of a real program: loops, executions, hooks, callbacks, saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, BatchSeen, Framework, ModelBuilt, Probe, UserProfiler
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``keras_loops``."""
    return recorded("keras_loops")


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """Exit code, standard output and the digits of the weights are the same with the agent and without."""
    assert run.plain.returncode == 0, run.plain.stderr
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout)
    assert run.result.stderr.count("Traceback") == 0


def test_nothing_of_ours_failed(run: Any) -> None:
    """Every probe attached, but for what this TensorFlow does not have, and none of them failed."""
    assert [d.text for d in run.all(AgentDiagnostic)] == []
    missing = {p.name: p.why for p in run.all(Probe) if not p.attached}
    assert set(missing) <= {"tf_data_model"}, missing


def test_counts_of_a_plain_fit(run: Any) -> None:
    """2 epochs of 10 batches: 20 executions of one batch, 20 begin and end hooks, 2 epochs (counts of 1.2)."""
    fit = run.loop("plain fit")
    executions = run.within(fit, Kind.EXECUTION)
    assert [(r.name.role, r.arg) for r in executions] == [("train", 1)] * 20
    assert fit.arg == 80
    for hook, times in (("on_train_batch_begin", 20), ("on_train_batch_end", 20)):
        seen = len(run.within(fit, Kind.HOOK, hook))
        assert seen <= times <= seen + _counted(run, Kind.HOOK, hook)
    for hook in ("on_epoch_begin", "on_epoch_end"):
        assert [r.arg for r in run.within(fit, Kind.HOOK, hook)] == [0, 1]
    (batch,) = [b for b in run.all(BatchSeen) if b.loop == fit.start]
    assert (batch.role, batch.size, batch.samples, batch.steps, batch.epochs) == ("train", 4, 40, 10, 2)


def _counted(run: Any, kind: Kind, text: str) -> int:
    return int(sum(r.arg for r in run.counts if r.kind == kind and r.name.text == text))


def test_last_execution_of_an_epoch_has_fewer_batches(run: Any) -> None:
    """With steps_per_execution=4, an epoch of 10 batches is executed as 4, 4 and 2."""
    executions = run.within(run.loop("several per execution"), Kind.EXECUTION)
    assert [r.arg for r in executions] == [4, 4, 2] * 2


def test_eager_fit(run: Any) -> None:
    """With run_eagerly each batch is one execution with one Python ``next`` inside."""
    fit = run.loop("eager fit")
    executions = run.within(fit, Kind.EXECUTION)
    assert len(executions) == 10
    nexts = run.within(fit, Kind.NEXT)
    assert len(nexts) == 10
    assert all(any(n.inside(e) for e in executions) for n in nexts)


def test_validation_is_a_loop_of_its_own(run: Any) -> None:
    """validation_data makes an evaluate inside of fit, with test executions and its own batch sizes."""
    fit = run.loop("arrays fit")
    (evaluate,) = [r for r in run.of(Kind.LOOP, "evaluate") if r.inside(fit)]
    assert evaluate.flags & Flag.NESTED
    assert [r.name.role for r in run.within(evaluate, Kind.EXECUTION)] == ["test"]
    seen = {b.role: (b.size, b.samples, b.steps) for b in run.all(BatchSeen) if b.loop == fit.start}
    assert seen == {"train": (16, 40, 3), "test": (16, 8, 1)}


def test_evaluate_in_a_callback(run: Any) -> None:
    """An evaluate that a callback calls is a nested loop with the callback's line, inside the CALLBACK."""
    fit = run.loop("evaluating fit")
    loops = run.called(Kind.LOOP, "evaluate in a callback")
    assert len(loops) == 3
    assert {r.name.call_function.rpartition(".")[2] for r in loops} == {"on_train_batch_end"}
    callbacks = run.within(fit, Kind.CALLBACK, "Evaluates.on_train_batch_end")
    assert all(any(r.inside(c) for c in callbacks) for r in loops)
    assert [r.arg for r in run.within(fit, Kind.EXECUTION) if r.name.role == "train"] == [1] * 10


def test_callbacks_are_told_by_class_hook_and_line(run: Any) -> None:
    """Each overridden hook is recorded with its line; hooks that nobody overrides are not."""
    fit = run.loop("plain fit")
    own = run.within(fit, Kind.CALLBACK, "OnBatch.on_train_batch_end")
    assert len(own) == 40
    assert sum(bool(r.flags & Flag.NESTED) for r in own) == 20
    name = own[0].name
    text = run.source.read_text().splitlines()
    assert (name.own, name.hook, name.file) == (True, "on_train_batch_end", str(run.source))
    assert text[name.line - 1].strip().startswith("def on_train_batch_end")
    assert text[name.end_line - 1].strip() == "time.sleep(0.0005)"
    assert len(run.within(fit, Kind.CALLBACK, "Inherits.on_train_batch_end")) == 20
    assert len(run.within(fit, Kind.CALLBACK, "OnEpoch.on_epoch_end")) == 2
    heir = run.within(fit, Kind.CALLBACK, "Heir.on_train_batch_end")
    assert len(heir) == 20
    assert {(r.name.file, r.name.line) for r in heir} == {(name.file, name.line)}
    assert len(run.within(run.loop("lambda fit"), Kind.CALLBACK, "LambdaCallback.on_epoch_end")) == 3
    texts = {r.name.text for r in run.records + run.counts if r.kind == Kind.CALLBACK}
    assert "OnEpoch.on_train_batch_end" not in texts
    assert not {t for t in texts if t.startswith("Callback.")}
    assert not run.of(Kind.CALLBACK, "History.on_epoch_end")[0].name.own


def test_predict_and_on_batch(run: Any) -> None:
    """predict, evaluate and train_on_batch are loops with the calling line, samples and executions of their role."""
    predict = run.loop("predict")
    assert predict.arg == 40
    assert [r.name.role for r in run.within(predict, Kind.EXECUTION)] == ["predict"] * 2
    batches = run.called(Kind.LOOP, "train on batch")
    assert [r.arg for r in batches] == [8, 8, 8]
    assert [len(run.within(r, Kind.EXECUTION)) for r in batches] == [1, 1, 1]
    assert run.loop("evaluate").arg == 40


def test_subclasses_that_override(run: Any) -> None:
    """Own train_step, own make_train_function and own fit are measured all the same."""
    assert len(run.within(run.loop("own step"), Kind.EXECUTION)) == 5
    assert len(run.within(run.loop("own make"), Kind.EXECUTION)) == 10
    assert len(run.within(run.loop("fit of a subclass"), Kind.EXECUTION)) == 5


def test_saves_are_told_once_with_role_line_and_size(run: Any) -> None:
    """Only the outermost of nested saves is recorded."""
    for mark, role, times in (
        ("save", "model", 1),
        ("save weights", "weights", 1),
        ("manager", "checkpoint", 2),
        ("write", "checkpoint", 1),
        ("saved model", "saved_model", 1),
        ("checkpointing fit", "model", 1),
    ):
        saves = run.called(Kind.SAVE, mark)
        assert [r.name.role for r in saves] == [role] * times, mark
        assert role == "saved_model" or all(r.arg > 100 for r in saves), mark
    fit = run.loop("checkpointing fit")
    (callback,) = run.within(fit, Kind.CALLBACK, "ModelCheckpoint.on_epoch_end")
    assert len(run.within(callback, Kind.SAVE)) == 1


def test_other_calls(run: Any) -> None:
    """Eager model calls, apply_gradients, summaries, a big copy and the user's profiler."""
    assert [r.arg for r in run.called(Kind.MODEL_CALL, "eager call")] == [2, 2, 2]
    assert len(run.called(Kind.APPLY, "apply")) == 3
    assert run.called(Kind.SUMMARY, "summary")
    assert all(r.dur >= 20_000 for r in run.called(Kind.SYNC, "short read"))
    (copy,) = run.called(Kind.SYNC, "big copy")
    assert copy.name.text == "numpy"
    assert [e.action for e in run.all(UserProfiler)] == ["start", "stop", "stopped"] * 2


def test_model_and_framework_lines(run: Any) -> None:
    """A ``model`` line tells the settings that explain a step; Keras tells its backend."""
    line = run.line("compile")
    models = [m for m in run.all(ModelBuilt) if m.line == line]
    assert [(m.steps_per_execution, m.run_eagerly) for m in models[:3]] == [(1, False), (4, False), (1, True)]
    assert models[0].parameters == 49
    frameworks = {f.name: f for f in run.all(Framework)}
    assert {"tensorflow", "numpy"} <= set(frameworks)
    assert {"keras", "tf_keras"} & set(frameworks)
