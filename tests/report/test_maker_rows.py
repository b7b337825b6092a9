"""Several makers of steps in the terminal, in Markdown, on the page and in the live view."""

from __future__ import annotations

from msgspec.structs import replace
from tests.report import samples

from stepscope.model.api.status import LiveMaker, Status
from stepscope.model.report.report import Report, StepMaker
from stepscope.report import html, live, maker_rows, markdown, text
from stepscope.tables.place import Place

PREDICT = StepMaker(
    kind="prediction",
    title="Keras predict",
    place=Place(file="dqn.py", line=17),
    pid=7,
    threads=3,
    count=251,
    rate=12.5,
    samples_per_s=12.5,
)
FIT = StepMaker(
    kind="training", title="Keras fit", place=Place(file="dqn.py", line=30), pid=7, count=70, rate=3.5, main=True
)


def with_makers(*makers: StepMaker) -> Report:
    """A report of a job with these makers."""
    base = samples.input_bound()
    return replace(base, session=replace(base.session, step_makers=makers))


def test_kinds_are_named_with_their_counts_and_rates() -> None:
    """Each maker has its count, place and rate; samples are said where they are known."""
    assert maker_rows.lines(with_makers(FIT, PREDICT).session) == [
        "training 70 steps of Keras fit at dqn.py:30, 3.50 per second",
        "predict 251 calls of Keras predict at dqn.py:17, 12.5 per second, 12.5 samples/s, 3 threads",
    ]


def test_equal_trainers_are_said_with_their_sum() -> None:
    """Two trainers at one place are one line with both counts and the sum."""
    (line,) = maker_rows.lines(with_makers(FIT, replace(FIT, count=80)).session)
    assert line == "training 150 steps of Keras fit at dqn.py:30 by 2 equal makers: 70 + 80, 7.00 per second"


def test_one_maker_is_not_said() -> None:
    """A job that does one thing has nothing to tell apart."""
    assert maker_rows.lines(with_makers(FIT).session) == []


def test_every_form_of_the_report_shows_them() -> None:
    """Terminal, Markdown and the page say the same."""
    report = with_makers(FIT, PREDICT)
    for shown in (text.render(report), markdown.render(report, sources={}), html.render(report, sources={})):
        assert "training 70 steps of Keras fit" in shown
        assert "predict 251 calls of Keras predict" in shown


def test_the_live_view_shows_them() -> None:
    """``top`` lists the makers of a running job below its steps."""
    makers = (
        LiveMaker(kind="training", title="Keras fit", place="dqn.py:30", pid=7, count=70, rate=3.5),
        LiveMaker(kind="prediction", title="Keras predict", pid=7, count=251),
    )
    row = live.JobRow(status=Status(pid=7, makers=makers), user="ann", state="running", name="dqn.py")
    shown = live.text(row, width=160, now_s=1.0)
    assert "makers      training 70 steps of Keras fit at dqn.py:30, 3.50 per second" in shown
    assert "makers      predict 251 calls of Keras predict" in shown


def test_what_a_maker_takes_of_the_steps_is_said() -> None:
    """The share of the steps' time, where it runs on their thread."""
    shown = maker_rows.lines(with_makers(FIT, replace(PREDICT, threads=1, step_ratio=0.62)).session)
    assert shown[1].endswith("12.5 samples/s, 62 % of the steps' time")
