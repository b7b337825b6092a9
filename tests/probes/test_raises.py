"""Exceptions of the user's code, seen from the user's side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, ProcessStarted
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``raises``."""
    return recorded("raises")


def _python(run: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in run.all(ProcessStarted)[0].python.split(".")[:2])


def test_tracebacks_are_those_of_a_plain_run(run: Any) -> None:
    """No frame of ours is in a traceback, through every kind of wrapper (from Python 3.11 on)."""
    if _python(run) < (3, 11):
        pytest.skip("before Python 3.11 a wrapper's own frame stays in the traceback")
    assert run.result.stdout == run.plain.stdout
    assert run.result.returncode == run.plain.returncode == 1
    assert str(Path(run.result.args[-1]).with_name("run")) not in run.result.stderr


def test_records_say_that_they_raised(run: Any) -> None:
    """Loops, callbacks and functions that ended by an exception are flagged; nothing of ours failed."""
    assert all(r.flags & Flag.RAISED for r in run.of(Kind.CALLBACK, "Fails.on_train_batch_end"))
    assert all(r.flags & Flag.RAISED for r in run.of(Kind.LOOP, "fit"))
    assert all(r.flags & Flag.RAISED for r in run.of(Kind.FUNCTION, "failing"))
    assert run.all(AgentDiagnostic) == []
