"""What a session knows about lines: which it names, and what the steps are known to pay for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, FUNCTION_CALL, MAKE, PERIOD, REPORT, STEPS, TF, nothing, train_loop

from stepscope.causes.host.line_heat import HotLines
from stepscope.model.log.events import ProcessStarted, PyFunctionMade
from stepscope.wire.kinds import Kind

MAIN = Frame(SCRIPT, "main", MAKE)
HELPER = Frame(SCRIPT, "make_batch", 4)
LAYER = Frame(SCRIPT, "Attention.call", 21)
KERAS = Frame(f"{TF}/keras/layers/layer.py", "Layer.__call__", 9, own=False)


def every_step(job: Job, at: int, *frames: Frame, dur: int = 50 * MS) -> None:
    """One sample a step, ``at`` into it."""
    job.samples([i * PERIOD + at for i in range(STEPS)], *frames, dur=dur)


def test_heat_is_the_share_of_samples_on_the_innermost_line_of_the_users() -> None:
    """A line costs what is spent on it and in libraries below it; the line that leads to it costs nothing itself."""
    job = train_loop(20 * MS)
    every_step(job, 50 * MS, MAIN, HELPER, dur=75 * MS)
    every_step(job, 90 * MS, MAIN._replace(line=REPORT), dur=25 * MS)
    lines = HotLines(job.view())
    heat = lines.heat(SCRIPT, 4, 4)
    assert heat.ratio == pytest.approx(0.75, abs=0.01)
    assert 0.6 < heat.low < heat.ratio < heat.high < 0.85
    assert heat.samples == 98
    assert lines.heat(SCRIPT, MAKE, MAKE).ratio == 0
    assert lines.heat(SCRIPT, REPORT, REPORT).ratio == pytest.approx(0.25, abs=0.01)
    assert lines.heat(SCRIPT, 1, REPORT).ratio == pytest.approx(1.0)
    assert lines.heat("/job/other.py", 4, 4).ratio == 0


def test_compiled_work_is_no_heat_of_the_line_that_calls_it() -> None:
    """Time in the step's compiled call, and in tracing it, is not the line's."""
    job = train_loop(60 * MS)
    every_step(job, 30 * MS, MAIN._replace(line=CALL), FUNCTION_CALL, dur=60 * MS)
    every_step(job, 80 * MS, MAIN, HELPER, dur=40 * MS)
    job.trace(50 * PERIOD + 80 * MS, 10 * MS)
    lines = HotLines(job.view())
    assert lines.heat(SCRIPT, CALL, CALL).ratio == 0
    assert lines.heat(SCRIPT, 4, 4).ratio == pytest.approx(0.4 * 97 / 98, abs=0.005)


def test_python_that_a_call_runs_is_its_lines() -> None:
    """A layer that runs eagerly below the framework's call costs its own line, not that of the caller."""
    job = train_loop(60 * MS)
    every_step(job, 30 * MS, MAIN._replace(line=CALL), KERAS, LAYER)
    lines = HotLines(job.view())
    assert lines.heat(SCRIPT, LAYER.line, LAYER.line).ratio == pytest.approx(1.0)
    assert lines.heat(SCRIPT, CALL, CALL).ratio == 0


def test_a_framework_that_started_the_program_is_no_call() -> None:
    """Frames of the framework above the loop (tf.app.run) do not make compiled work the line's."""
    job = train_loop(60 * MS)
    every_step(job, 30 * MS, Frame(SCRIPT, "<module>", 90), KERAS, MAIN._replace(line=CALL), FUNCTION_CALL)
    assert HotLines(job.view()).heat(SCRIPT, CALL, CALL).ratio == 0


def test_waiting_for_input_counts_on_demand() -> None:
    """The head of a loop costs the wait for its batches only where the caller asks about the input."""
    job = train_loop(20 * MS, steps=STEPS)
    job.nexts().every(PERIOD, STEPS, dur=70 * MS, start=25 * MS, arg=1)
    every_step(job, 50 * MS, MAIN, dur=50 * MS)
    lines = HotLines(job.view())
    assert lines.heat(SCRIPT, MAKE, MAKE).ratio == 0
    assert lines.heat(SCRIPT, MAKE, MAKE, waits=True).ratio == pytest.approx(1.0)


def test_timed_calls_need_no_samples() -> None:
    """Saving is timed call by call: its whole time is its line's, exactly."""
    job = train_loop(20 * MS)
    job.save(line=60).every(PERIOD, STEPS, dur=30 * MS, start=40 * MS)
    heat = HotLines(job.view()).heat(SCRIPT, 60, 60)
    assert (heat.low, heat.high) == (heat.ratio, heat.ratio)
    assert heat.ratio == pytest.approx(0.3, abs=0.001)
    assert heat.samples == 0


def test_other_threads_and_times_are_seen_and_cost_nothing() -> None:
    """A sample of a pool's thread, or before the steady steps, says that a line runs, not that steps pay for it."""
    job = train_loop(20 * MS)
    job.samples([i * PERIOD for i in range(STEPS)], Frame(SCRIPT, "read", 7), thread=POOL)
    job.samples([0], Frame(SCRIPT, "load", 8))
    lines = HotLines(job.view())
    assert lines.seen(SCRIPT, 7, 7) == {"sample"}
    assert lines.seen(SCRIPT, 8, 8) == {"sample"}
    assert (lines.heat(SCRIPT, 7, 7).ratio, lines.heat(SCRIPT, 8, 8).ratio) == (0, 0)


def test_what_names_a_line() -> None:
    """Calls name their line, functions all of theirs, samples their whole function; nothing names the rest."""
    job = train_loop(20 * MS)
    job.dataset("MapDataset", line=30, fn_name="augment", fn_file=SCRIPT, fn_line=70, fn_end_line=75)
    job.event(PyFunctionMade(name=1, role="numpy_function", stack=[(SCRIPT, "augment", 72)]))
    job.save(line=60).at(5 * MS, MS)
    job.samples([50 * MS], Frame(SCRIPT, "Trainer.fit.<locals>.log", 81), Frame("/lib/json.py", "dumps", 5, own=False))
    lines = HotLines(job.view())
    assert lines.seen(SCRIPT, 30, 30) == {"call"}
    assert lines.seen(SCRIPT, 29, 31) == {"call"}
    assert lines.seen(SCRIPT, 60, 60) == {"call"}
    assert lines.seen(SCRIPT, 72, 72) == {"call", "function"}
    assert lines.seen(SCRIPT, 74, 80) == {"function"}
    assert lines.seen(SCRIPT, 85, 85, "Trainer.fit.log") == {"sample"}
    for line, function in ((85, "Trainer.fit"), (76, ""), (31, "make_dataset"), (85, "log")):
        assert lines.seen(SCRIPT, line, line, function) == frozenset()
    assert lines.seen("/lib/json.py", 5, 5, "dumps") == frozenset()
    assert lines.files() == (SCRIPT,)


def test_a_module_is_a_function_of_its_own() -> None:
    """A sample of a script's top level names the top level, no function in it."""
    job = train_loop(20 * MS)
    job.samples([50 * MS], Frame(SCRIPT, "<module>", 90))
    lines = HotLines(job.view())
    assert lines.seen(SCRIPT, 95, 95, "") == {"sample"}
    assert lines.seen(SCRIPT, 95, 95, "main") == frozenset()


@pytest.mark.parametrize(("python", "seen"), [("3.10.4", {"sample"}), ("3.11.0", frozenset()), ("", frozenset())])
def test_older_pythons_know_plain_names(python: str, seen: frozenset[str]) -> None:
    """Before 3.11 a stack has a method's plain name, which then stands for the qualified one."""
    job = train_loop(20 * MS)
    job.events[0] = ProcessStarted(pid=job.pid, ppid=1, python=python)
    job.samples([50 * MS], Frame(SCRIPT, "call", 21))
    assert HotLines(job.view()).seen(SCRIPT, 25, 25, "Attention.call") == seen


def test_files_come_by_what_steps_pay() -> None:
    """The files that steps spend time in come first, then those with most lines."""
    job = train_loop(20 * MS)
    job.samples([50 * PERIOD + 50 * MS], Frame("/job/a.py", "f", 1), Frame("/job/slow.py", "g", 1))
    for line in (1, 2):
        job.call(Kind.SAVE, "x", call_file="/job/many.py", call_line=line)
    assert HotLines(job.view()).files() == ("/job/slow.py", "/job/many.py", "/job/a.py", SCRIPT)


def test_without_steps_nothing_has_a_cost() -> None:
    """A job that makes no steps has lines that are seen, and no heat."""
    job = nothing()
    job.samples([50 * MS], HELPER)
    lines = HotLines(job.view())
    assert lines.seen(SCRIPT, 4, 4) == {"sample"}
    assert lines.heat(SCRIPT, 1, 100) == lines.heat("/none.py", 1, 1)


@given(st.lists(st.integers(min_value=1, max_value=9), min_size=98, max_size=98))
def test_heat_adds_up(where: list[int]) -> None:
    """Lines share the time of the steps: their shares add up to that of all lines, which is at most the whole."""
    job = train_loop(20 * MS)
    for i, line in enumerate(where, 1):
        job.samples([i * PERIOD + 50 * MS], MAIN, HELPER._replace(line=line))
    lines = HotLines(job.view())
    parts = [lines.heat(SCRIPT, line, line).ratio for line in range(1, 10)]
    assert sum(parts) == pytest.approx(lines.heat(SCRIPT, 1, 9).ratio)
    assert lines.heat(SCRIPT, 1, 9).ratio == pytest.approx(1.0)
    assert parts == pytest.approx([where.count(line) / 98 for line in range(1, 10)])


def test_the_hottest_lines() -> None:
    """Lines by what they cost, timed and sampled ones alike; what is less than half a percent is left out."""
    job = train_loop(20 * MS)
    job.save(line=60).every(PERIOD, STEPS, dur=30 * MS, start=40 * MS)
    every_step(job, 30 * MS, MAIN, HELPER, dur=199 * MS)
    every_step(job, 80 * MS, MAIN, HELPER._replace(line=5), dur=1 * MS)
    rows = HotLines(job.view()).hottest(2)
    assert [(file, line) for file, line, _ in rows] == [(SCRIPT, 4), (SCRIPT, 60)]
    assert [ratio for _, _, ratio in rows] == pytest.approx([0.995, 0.3], abs=0.002)
    assert len(HotLines(job.view()).hottest(1)) == 1
    assert len(HotLines(job.view()).hottest(9, least=0.006)) == 2
