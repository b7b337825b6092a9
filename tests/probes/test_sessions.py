"""What the probes record of compat.v1 programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, UserProfiler
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], object]) -> object:
    """The program ``sessions``."""
    return recorded("sessions")


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_runs_are_named_by_what_they_fetch(run: Any) -> None:
    """Session.run with its fetches, samples of the feed and calling line."""
    train = run.called(Kind.SESSION_RUN, "train")
    assert [(r.name.text, r.arg) for r in train] == [("train, loss:0", 8)] * 20
    assert len(run.called(Kind.SESSION_RUN, "next")) == 20


def test_distinct_fetches_are_bounded(run: Any) -> None:
    """A line that fetches something new each time soon has one name for all of it, and its runs are flagged; names that
    are joined in each run stand for the same tensors."""
    many = run.called(Kind.SESSION_RUN, "many")
    assert len(many) == 300
    assert len({r.name.text for r in many}) <= 20
    assert sum(r.name.text == "other fetches" for r in many) > 280
    for mark, first in (("next", 1), ("train", 1), ("many", 300), ("by-name", 1)):
        assert sum(bool(r.flags & Flag.FIRST) for r in run.called(Kind.SESSION_RUN, mark)) == first


def test_full_traces_of_the_program(run: Any) -> None:
    """Where runs with the program's own full trace begin and end is logged, with the line that asks for it."""
    told = run.all(UserProfiler)
    assert [(t.action, t.way) for t in told] == [
        ("start", "run-metadata"),
        ("stop", ""),
        ("start", "run-metadata"),
        ("stop", ""),
    ]
    (traced,) = {r.name.call_line for r in run.called(Kind.SESSION_RUN, "traced")}
    assert {t.line for t in told if t.action == "start"} == {traced}


def test_monitored_session(run: Any) -> None:
    """MonitoredSession.run comes down to Session.run, with the user's line."""
    calls = run.called(Kind.SESSION_RUN, "monitored")
    assert len([r for r in calls if r.arg == 8]) == 5


def test_saver_and_writer(run: Any) -> None:
    """Saver.save is a checkpoint; summaries of a FileWriter are written and flushed."""
    (save,) = run.called(Kind.SAVE, "save")
    assert (save.name.role, save.arg > 0) == ("checkpoint", True)
    roles = {r.name.role for r in run.records + run.counts if r.kind == Kind.SUMMARY}
    assert roles == {"write", "flush"}
