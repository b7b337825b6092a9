"""What detectors that need steps are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive import steps_view

if TYPE_CHECKING:
    from tests.derive.sessions import Job

    from stepscope.derive.steps_view import StepsView


def view_of(job: Job) -> StepsView:
    """The view of a job's steps, which there must be."""
    found = steps_view.of(job.view())
    assert found is not None
    return found
