"""Scales, ticks and what charts say."""

from __future__ import annotations

import html
import math
import unicodedata
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.report import words
from stepscope.report.marked import Html
from stepscope.report.page import charts, svg
from stepscope.report.page.charts import Chart, LeftOut

if TYPE_CHECKING:
    from types import ModuleType

positive = st.floats(min_value=1e-9, max_value=1e12)


@given(low=st.floats(min_value=-1e9, max_value=1e9), span=positive, count=st.integers(2, 12))
def test_ticks_are_inside_and_even(low: float, span: float, count: int) -> None:
    """Ticks lie within the range, not more than wanted, at even distances."""
    if span < 1e-9 * abs(low):
        return  # of doubles there are too few in between
    marks = svg.ticks(low, low + span, count)
    slack = 1e-6 * max(span, abs(low) * 1e-3)
    assert len(marks) <= count + 1
    assert all(low - slack <= m <= low + span + slack for m in marks)


@given(low=positive, factor=st.floats(min_value=1.01, max_value=1e9))
def test_log_ticks_are_inside(low: float, factor: float) -> None:
    """Ticks of a logarithmic axis lie within the range, rise, and are some but not many."""
    marks = svg.log_ticks(low, low * factor, 7)
    assert 1 <= len(marks) <= 20
    assert marks == sorted(marks)
    assert all(low * (1 - 1e-6) <= m <= low * factor * (1 + 1e-6) for m in marks)


@pytest.mark.parametrize(("log", "middle"), [(False, 50.5), (True, 10.0)])
def test_scale(log: bool, middle: float) -> None:
    """A scale maps its ends onto the ends, its middle onto the middle, and keeps the rest at the border."""
    scale = svg.Scale(low=1, high=100, start=200, end=0, log=log)
    assert [scale(1), scale(middle), scale(100), scale(1e6), scale(-5)] == pytest.approx([200, 100, 0, 0, 200])


@pytest.mark.parametrize(
    ("end", "title", "last"),
    [(50.0, "seconds since start", "50"), (1800.0, "minutes since start", "30"), (90000.0, "hours since start", "25")],
)
def test_time_axis(end: float, title: str, last: str) -> None:
    """Long runs are counted in minutes, then in hours."""
    marks, said = svg.time_axis(0.0, end)
    assert said == title
    assert marks[-1][1] == last


def test_bar_adds_up(samples: ModuleType) -> None:
    """The parts of the bar fill it, largest first, what is not measured last."""
    rows = charts.merged(samples.clean().anatomy)
    assert [name for name, _, _ in rows] == ["call", "callbacks", "input-wait", "other-python", "unmeasured"]
    assert math.isclose(sum(ratio for _, ratio, _ in rows), 1.0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([2.0, 20.0], "2 ms to 20 ms per step."),
        (
            [3.0, 17.0, 5.0, 5.0, 5.0, 5.0, 500.0, 5.0, 18.0, 2.0],
            "2 ms to 500 ms per step; on average 10 ms in the first fifth of the steps, 10 ms in the last.",
        ),
    ],
)
def test_single_steps_are_no_beginning_and_no_end(values: list[float], said: str) -> None:
    """What is said of the parts over time holds of all that is drawn: a single long step at an edge is no change."""
    chart = charts.anatomy({"anat_t": [float(at) for at in range(len(values))], "anat:call": values}, ())
    assert isinstance(chart, Chart)
    assert chart.summary == said


def test_parts_of_one_name_are_one(samples: ModuleType) -> None:
    """Two callbacks are one part of the bar."""
    parts = samples.anatomy(100, call=0.5, callbacks=0.2) + samples.anatomy(100, callbacks=0.3)
    name, ratio, ns = charts.merged(parts)[1]
    assert (name, round(ratio, 9), ns) == ("callbacks", 0.5, 50)


def test_warm_up_is_not_drawn(samples: ModuleType) -> None:
    """Warm-up steps stretch no axis; the chart says that they are not shown."""
    report = samples.input_bound()
    times = msgspec.structs.replace(report.session.step_times, warmup_ns=10 * 10**9)
    slow = (4000.0, *report.series["step_ms_p95"][1:])
    chart = charts.step_times(report.series | {"step_ms_p95": slow}, times)
    assert isinstance(chart, Chart)
    assert "the first 10 s (warm-up) are not shown" in chart.summary
    assert "4,000" not in chart.markup


def test_far_outliers_get_a_logarithmic_axis(samples: ModuleType) -> None:
    """A step a hundred times the median does not flatten the rest."""
    report = samples.input_bound()
    series = report.series | {"outlier_t": (10.0, 20.0), "outlier_ms": (100.0, 9000.0)}
    chart = charts.step_times(series, report.session.step_times)
    assert isinstance(chart, Chart)
    assert chart.summary.endswith("logarithmic axis.")


def test_absent_lines_are_named(samples: ModuleType) -> None:
    """A chart of resources says which of its lines were not measured."""
    series = {k: v for k, v in samples.input_bound().series.items() if k != "res:wait_cores"}
    lines = (
        charts.Resource(key="res:cpu_cores", css="s-job", label="job"),
        charts.Resource(key="res:wait_cores", css="s-wait", label="waiting"),
    )
    chart = charts.resource("cpu", "cores", series, lines)
    assert isinstance(chart, Chart)
    assert "Not measured: waiting." in chart.summary
    assert isinstance(charts.resource("cpu", "cores", series, lines[1:]), LeftOut)


@given(st.text())
def test_what_is_put_into_markup_is_escaped(text: str) -> None:
    """However a text gets into markup, it holds no markup and no control character there, and its length stays."""
    for shown in (Html("{}").format(text), Html().join([text]), Html() + text, text + Html(), Html.escape(text)):
        assert isinstance(shown, Html)
        assert not set(shown) & set("<>\"'")
        assert not any(unicodedata.category(c).startswith("C") for c in shown)
        assert len(html.unescape(shown)) == len(text)
    assert Html("{}").format(Html("<b>")) == "<b>"


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.61, "ratio", "61 %"),
        (0.034, "ratio", "3.4 %"),
        (8_620_000, "ns", "8.62 ms"),
        (1_917_976_576, "bytes", "1.79 GiB"),
        (398, "calls", "398 calls"),
        (1.0, "count", "1"),
        (12.345, "ms", "12.3 ms"),
        (math.inf, "ms", "unknown"),
    ],
)
def test_values(value: float, unit: str, shown: str) -> None:
    """Values are shown with their unit, three digits, and never as infinity."""
    assert words.value_text(value, unit) == shown
