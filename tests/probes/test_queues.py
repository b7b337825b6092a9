"""What the probes record of a compat.v1 program whose input comes from queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stepscope.model.log.events import AgentDiagnostic, ThreadSeen
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded as Run

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Run]) -> Run:
    """The program ``queues``."""
    return recorded("queues")


def test_results_are_those_of_a_plain_run(run: Run) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_threads_of_queue_runners_are_not_measured(run: Run) -> None:
    """The runs of a QueueRunner's enqueue op leave nothing: neither records nor counts."""
    assert len(run.called(Kind.SESSION_RUN, "trained")) == 40
    of_library = [r for r in run.records + run.counts if r.kind == Kind.SESSION_RUN and not r.name.call_file]
    assert [r for r in of_library if "enqueue" in r.name.text.lower()] == []
    main = {t.id for t in run.all(ThreadSeen) if t.main}
    assert {r.thread for r in run.called(Kind.SESSION_RUN, "trained")} == main


def test_runs_that_only_fill_a_queue_say_so(run: Run) -> None:
    """A run of the user's that does nothing but enqueue has a role; a run that trains has none."""
    assert [r.name.role for r in run.called(Kind.SESSION_RUN, "produced")] == ["enqueue"] * 40
    assert {r.name.role for r in run.called(Kind.SESSION_RUN, "trained")} == {""}
