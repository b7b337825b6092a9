"""Costs of findings as shares of the steady wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.findings import Cost

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView


def compute_ratio(view: SessionView) -> float:
    """Share of the steady wall time in compute: the most that anything within the compiled step can cost."""
    return view.anatomy.ratio("call") if view.anatomy is not None else 0.0


def _clip(value: float) -> float:
    return float(min(1.0, max(0.0, value)))


def cost_of(
    view: SessionView,
    ratio: float,
    *,
    low: float | None = None,
    high: float | None = None,
    basis: str = "measured",
    ns_per_step: int | None = None,
    turn_ratio: float | None = None,
) -> Cost:
    """Cost of a share of the steady wall time, within 0-1, with nanoseconds of the mean step.

    A cost paid once is a share of another time: it has its own ``ns_per_step``, spread over all steps. So has one that
    is paid between the steps of each turn: ``ratio`` is then a share of the turn, as ``turn_ratio`` is.
    """
    steps = view.steps
    trace = view.traces.main
    mean = steps.steady_ns / steps.steady_count if steps else trace.periods.mean_ns if trace is not None else 0.0
    return Cost(
        ratio=_clip(ratio),
        low=_clip(ratio if low is None else min(low, ratio)),
        high=_clip(ratio if high is None else max(high, ratio)),
        ns_per_step=int(_clip(ratio) * mean) if ns_per_step is None else ns_per_step,
        basis=basis,  # type: ignore[arg-type]
        turn_ratio=turn_ratio,
    )
