"""A view with steps is made where there are steps, and for the detectors that need them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from tests.derive.sessions import MS, Job
from tests.detectors.jobs import train_loop

from stepscope.derive import steps_view
from stepscope.detectors.base import Signal
from stepscope.detectors.registry import ALL

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView


def test_where_nothing_repeats_there_is_no_such_view() -> None:
    """What explains steps cannot be asked about a session without any."""
    assert steps_view.of(Job().view()) is None


def test_it_shares_what_the_session_view_has_computed() -> None:
    """Steps are found once, an analysis runs once, whichever of the two views is asked first."""
    ran = []

    def analysis(view: SessionView) -> int:
        ran.append(view)
        return len(ran)

    view = train_loop(20 * MS).view()
    one = steps_view.of(view)
    assert one is not None
    assert one.steps is view.steps
    assert (one.get(analysis), view.get(analysis)) == (1, 1)
    assert one.anatomy is view.anatomy


def test_only_detectors_that_need_steps_take_it() -> None:
    """A detector that is run without steps is given the session's view, and says so."""
    takes = {d.code for d in ALL if "StepsView" in str(inspect.signature(d.detect).parameters["view"].annotation)}
    assert takes
    assert takes <= {d.code for d in ALL if Signal.STEPS in d.needs}
