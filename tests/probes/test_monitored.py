"""What the probes record of a MonitoredTrainingSession with hooks, of callables and of an InteractiveSession."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``monitored``."""
    return recorded("monitored")


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_a_hooked_run_is_named_by_what_the_user_fetched(run: Any) -> None:
    """What hooks fetch besides is told with the name, and changes neither the fetches nor the count."""
    assert [r.name.text for r in run.called(Kind.SESSION_RUN, "hooked")].count("train, loss:0") == 12
    assert [r.name.text for r in run.called(Kind.SESSION_RUN, "looked")].count("loss:0") == 4
    mine = [r for r in run.called(Kind.SESSION_RUN, "hooked") if r.name.text == "train, loss:0"]
    assert all("Watch: loss:0" in r.name.added for r in mine)
    logged = [r for r in mine if "Often: loss:0" in r.name.added]
    assert 0 < len(logged) < len(mine)
    assert [r.name.text for r in run.called(Kind.SESSION_RUN, "again")].count("train, loss:0") == 3


def test_hooks_are_timed_one_by_one(run: Any) -> None:
    """Each method of each hook, by the user's class and the line of the method; a library's by its own class."""
    calls = {
        text: len(run.of(Kind.CALLBACK, text)) + sum(c.arg for c in run.counts if c.name.text == text)
        for text in ("Watch.after_run", "Watch.before_run", "Quiet.after_run", "Quiet.begin", "Often.after_run")
    }
    assert calls == {
        "Watch.after_run": 19,
        "Watch.before_run": 19,
        "Quiet.after_run": 19,
        "Quiet.begin": 1,
        "Often.after_run": 19,
    }
    (after,) = {(r.name.file, r.name.line, r.name.own, r.name.hook) for r in run.of(Kind.CALLBACK, "Watch.after_run")}
    assert after == (str(run.source), run.line("watch after"), True, "after_run")
    hooks = {r.name.text for r in run.of(Kind.CALLBACK)}
    assert {"CheckpointSaverHook.after_create_session", "CheckpointSaverHook.end", "SummarySaverHook.begin"} <= hooks


def test_a_hook_that_calls_super_is_recorded_once(run: Any) -> None:
    """What a method reaches by ``super()`` is a part of it, not another call."""
    assert not run.of(Kind.CALLBACK, "LoggingTensorHook.after_run")
    calls = run.of(Kind.CALLBACK, "Often.after_run")
    assert len(calls) == 19
    assert min(r.dur for r in calls) >= 500_000


def test_what_the_saver_hooks_write(run: Any) -> None:
    """CheckpointSaverHook saves inside of its hook: SAVE, at the user's line; its summaries are SUMMARY."""
    hooks = [r for r in run.of(Kind.CALLBACK) if r.name.text.startswith("CheckpointSaverHook.")]
    saves = [s for s in run.of(Kind.SAVE, role="checkpoint") if any(s.inside(h) for h in hooks)]
    assert len(saves) >= 3
    assert all(s.name.call_file == str(run.source) for s in saves)


def test_callables_and_interactive_sessions(run: Any) -> None:
    """Functions of ``make_callable`` are runs, once each; ``eval`` on an InteractiveSession is one."""
    assert [(r.name.text, r.arg) for r in run.called(Kind.SESSION_RUN, "fed")] == [("loss:0", 8)] * 7
    assert [r.name.text for r in run.called(Kind.SESSION_RUN, "callable")] == ["w:0"] * 5
    assert [r.name.text for r in run.called(Kind.SESSION_RUN, "options")] == ["w:0"] * 3
    assert [(r.name.text, r.arg) for r in run.called(Kind.SESSION_RUN, "interactive")] == [("loss:0", 8)] * 6
