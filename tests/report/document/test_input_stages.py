"""What the input could reach, on other numbers of cores."""

from __future__ import annotations

from msgspec.structs import replace
from tests.report import samples

from stepscope.model.report.input_bound import InputBound, RateOnCores
from stepscope.report import html
from stepscope.report.document import input_stages


def bound(*rates: tuple[int, float, float, str], now: float = 40.0) -> InputBound:
    """A pipeline without edits, on numbers of cores."""
    return InputBound(
        text=f"{now:g} samples/s; no edit of the pipeline that is known here gains on 2 cores: the cores bind",
        unit="samples",
        now_per_s=now,
        best_per_s=now,
        without_cache_per_s=now,
        binds="cores",
        cores=2,
        step_ns=1,
        step_cpu_ns=1,
        memory_bytes=0,
        by_cores=tuple(
            RateOnCores(cores=cores, now_per_s=as_is, best_per_s=best, binds="step" if binds == "step" else "cores")
            for cores, as_is, best, binds in rates
        ),
    )


def test_more_cores_are_told_where_they_alone_would_help() -> None:
    """No edit gains, and the cores bind: a larger machine is the answer, up to where the step binds."""
    found = bound((1, 20, 20, "cores"), (2, 40, 40, "cores"), (4, 66, 66, "step"))
    assert input_stages.short(found)[1:] == [
        "samples/s by cores: 1: 20.0; 2: 40.0; 4: 66.0; more cores bring nothing: the step binds"
    ]
    assert "samples/s by cores: 1: 20" in html.render(replace(samples.input_bound(), input_bound=found))


def test_rates_with_the_edits_stand_beside_those_without() -> None:
    """A map on one thread gains nothing by cores; with threads it does."""
    found = bound((1, 20, 20, "cores"), (2, 40, 41, "cores"), (4, 40, 82, "cores"))
    said = input_stages.by_cores(found)
    assert said == "samples/s by cores (now, at best): 1: 20.0, 20.0; 2: 40.0, 41.0; 4: 40.0, 82.0"


def test_nothing_is_said_where_cores_bring_nothing() -> None:
    """The job is as fast on this machine as on any."""
    assert input_stages.short(bound((1, 39, 39, "cores"), (2, 40, 40, "step"))) == []
