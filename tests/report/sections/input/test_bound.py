"""What the report says of the input's reach."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT
from tests.detectors.jobs import pulled, train_loop

from stepscope.causes.input import input_bound
from stepscope.derive.steps_view import StepsView
from stepscope.derive.view import SessionView
from stepscope.report.sections.input import bound


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


def test_a_rate_that_no_edit_reaches_is_said_to_be_one() -> None:
    """A sentence does not end where the edits would begin."""
    said = bound._text((), "samples", (591.0, 685.0, 685.0), "MapAndBatch binds", 2.0)
    assert said == (
        "591 samples/s now, 685 at best on 2 cores with the code of its functions as it is (modelled; MapAndBatch "
        "binds); no edit of the pipeline alone that is known here reaches it"
    )


def test_where_the_model_misses_the_run_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both times stand there, and neither rates nor edits nor numbers of cores."""
    job = pulled(60 * MS)
    del job.sources[SCRIPT]
    fitting, _ = bound.build(SessionView(job.session()))
    monkeypatch.setattr(input_bound, "MAX_MISFIT", -1.0)
    found, problems = bound.build(SessionView(job.session()))
    assert fitting is not None
    assert found is not None
    assert (found.edits, found.by_cores, found.best_per_s, problems) == ((), (), found.now_per_s, ())
    assert "by tf.data's counters" in found.text
    assert "not known" in found.text
    assert fitting.by_cores
    assert "not known" not in fitting.text
