"""What the report says of the input's reach."""

from __future__ import annotations

import pytest
from tests.detectors.jobs import train_loop

from stepscope.app.report.input import bound
from stepscope.causes.input import input_bound
from stepscope.derive.steps_view import StepsView
from stepscope.derive.view import SessionView


def test_a_model_that_fails_leaves_the_report_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tf.data says of its stages may be anything."""

    def fails(view: StepsView) -> None:
        raise ZeroDivisionError("of no elements")

    monkeypatch.setattr(input_bound, "build", fails)
    found, problems = bound.build(SessionView(train_loop(10_000_000).session()))
    assert found is None
    assert [(one.code, one.text) for one in problems] == [
        ("DX076", "what the input could reach was not computed: ZeroDivisionError: of no elements")
    ]
