"""What the tf.function probe records: calls, traces, and why each retrace happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, Traced
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``functions``."""
    return recorded("functions")


def traces(run: Any, function: str) -> list[Traced]:
    """Traces of a function, in order; a first call that makes variables traces twice and counts once."""
    return [e for e in sorted(run.all(Traced), key=lambda e: e.id) if e.function == function]


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """The same output, the same number of traces by TensorFlow's own count, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []
    assert "traces 7 4" in run.result.stdout
    assert (len(traces(run, "scalar")), len(traces(run, "shaped"))) == (7, 4)


@pytest.mark.parametrize(
    ("function", "causes", "argument"),
    [
        ("scalar", ["first"] + ["python-value"] * 5 + ["structure"], "rate"),
        ("shaped", ["first", "shape", "shape", "shape"], "x"),
        ("typed", ["first", "dtype", "dtype"], "x"),
        ("structured", ["first", "structure", "structure"], "parts"),
        ("listed", ["first", "python-value", "python-value"], "values[0]"),
        ("with_object", ["first", "object", "object"], "thing"),
        ("steady", ["first", "shape"], "x"),
    ],
)
def test_cause_of_each_retrace(run: Any, function: str, causes: list[str], argument: str) -> None:
    """The difference of the signatures names the cause and the argument."""
    found = traces(run, function)
    assert [e.cause for e in found] == causes
    assert {e.argument for e in found[1:]} == {argument}
    assert [e.ordinal for e in found] == list(range(1, len(causes) + 1))
    assert len({e.function_key for e in found}) == 1
    assert {(e.owner, e.file) for e in found} == {("user", str(run.source))}


def test_values_before_and_after(run: Any) -> None:
    """A Python value is told before and after; so is a shape."""
    second = traces(run, "scalar")[1]
    assert (second.before, second.after) == ("0.0", "0.1")
    grown = traces(run, "shaped")[1]
    assert (grown.before, grown.after) == ("float32(3, 2)", "float32(4, 2)")
    assert traces(run, "with_object")[1].after == "object of Thing"


def test_place_of_a_trace(run: Any) -> None:
    """The function's first line and the user's calling line."""
    first = traces(run, "scalar")[0]
    assert first.line in (run.line("scalar") - 1, run.line("scalar"))
    assert first.stack[-1][2] == run.line("python value")
    assert first.nodes > 2
    assert first.dur > 0


def test_function_made_in_a_loop(run: Any) -> None:
    """The same definition traced for ever new Function objects."""
    found = traces(run, "in_loop")
    assert [e.cause for e in found] == ["first"] + ["new-function"] * 3
    assert len({e.function_key for e in found}) == 4
    assert len({e.definition_key for e in found}) == 1
    calls = run.of(Kind.FUNCTION, "in_loop")
    assert len(calls) == 4
    assert all(r.flags & Flag.TRACED for r in calls)
    assert len({r.name.id for r in calls}) == 1


def test_nested_traces(run: Any) -> None:
    """A function traced inside another's trace says so, and is no call of its own."""
    (outer,) = traces(run, "outer")
    (inner,) = traces(run, "inner")
    assert inner.outer == outer.id
    assert outer.outer == 0
    assert len(run.of(Kind.FUNCTION, "outer")) == 1
    assert run.of(Kind.FUNCTION, "inner") == []


def test_calls_and_samples(run: Any) -> None:
    """Every call is recorded; samples are looked up in the first five calls, and about every 32nd."""
    calls = [r for r in run.of(Kind.FUNCTION, "steady") if r.name.file]
    assert len(calls) == 41
    assert [r.arg for r in calls[:5]] == [8] * 5
    assert calls[31].arg == 8
    assert calls[10].arg == 0
    assert [bool(r.flags & Flag.TRACED) for r in calls] == [True] + [False] * 39 + [True]


def test_calls_that_run_different_graphs_have_different_names(run: Recorded) -> None:
    """Of a function that trains and evaluates, each call says whether its graph changes variables, and its line."""
    calls = [(r.name.role, r.name.call_line) for r in run.of(Kind.FUNCTION, "passed")]
    trained, evaluated = ("updates", run.line("trained")), ("reads", run.line("evaluated"))
    assert calls == [("", 0)] * 3 + [evaluated] * 4 + [trained] * 3 + [evaluated] * 4


def test_one_array_alone_is_no_batch(run: Recorded) -> None:
    """The leading dimension of a single argument may be anything; of a signature that leaves it open it is a batch."""
    assert {r.arg for r in run.of(Kind.FUNCTION, "shaped")} == {0}
    assert {r.arg for r in run.of(Kind.FUNCTION, "signature_wrapper_<lambda>")} == {5}


def test_two_functions_in_one_loop(run: Any) -> None:
    """A GAN's two steps and the input of its loop, in the order in which they run."""
    source = [r for r in run.records if r.kind in (Kind.NEXT, Kind.FUNCTION)]
    start = next(i for i, r in enumerate(source) if r.kind == Kind.NEXT)
    names = [r.name.text for r in source[start : start + 18]]
    assert names == ["next", "critic_step", "generator_step"] * 6
    assert [r.name.call_line for r in run.of(Kind.NEXT)] == [run.line("gan loop")] * 7
    assert [bool(r.flags & Flag.END) for r in run.of(Kind.NEXT)] == [False] * 6 + [True]


def test_loaded_and_concrete_functions(run: Any) -> None:
    """Functions of a SavedModel, its signatures, and concrete functions."""
    texts = [r.name.text for r in run.of(Kind.FUNCTION)]
    assert texts.count("signature_wrapper_<lambda>") == 3
    concrete = [r for r in run.of(Kind.FUNCTION, "steady") if not r.name.file]
    assert len(concrete) == 3
    assert sum("double" in text or "restored" in text or "lambda" in text for text in texts) == 6


def test_exception_of_the_user_passes(run: Any) -> None:
    """A function that raises while it is traced raises the same as before, and the record says so."""
    assert "ValueError" in run.plain.stdout
    (call,) = run.of(Kind.FUNCTION, "broken")
    assert call.flags & Flag.RAISED
