"""Small series for the report's charts (keys: docs/report-schema.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.system import steady_page_faults
from stepscope.derive.machine import counters, metrics
from stepscope.derive.one_step import step_numbers
from stepscope.model.report.components import COMPONENTS
from stepscope.report.sections.machine import resource_series

if TYPE_CHECKING:
    from stepscope.derive.steps.anatomy import Anatomy
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import F64, I64, HostTable, MemoryTable, ProcessTable

STEP_BUCKETS = 400
ANATOMY_BUCKETS = 200
HISTOGRAM_BINS = 40
OUTLIERS = 50
METRIC_BUCKETS = 200
MAX_METRICS = 40


def build(view: SessionView) -> dict[str, tuple[float, ...]]:
    """All series that the session has data for."""
    found: dict[str, F64] = {}
    if view.steps is not None:
        found |= _steps(view.steps)
    if view.anatomy is not None:
        found |= _anatomy(view.anatomy)
    session = view.session
    host = counters.host(session)
    if len(host) > 1:
        found |= _host(host) | resource_series.build(session, host)
    if len(session.process) > 1 and view.worker is not None:
        mine = session.process.take(session.process.pid == view.worker.info.pid)
        mine = mine.take(counters.spaced(mine.at_ns))
        if len(mine) > 1:
            found |= _process(mine, found.get("res_t"), session.memory)
    found |= _metrics(view)
    return {key: tuple(float(f"{v:.6g}") for v in values) for key, values in found.items()}


def _metrics(view: SessionView) -> dict[str, F64]:
    """The user's own metrics, averaged per bucket."""
    found = {}
    for metric in metrics.build(view.workers)[:MAX_METRICS]:
        groups = _groups(len(metric.values), METRIC_BUCKETS)
        found[f"metric_t:{metric.name}"] = np.array([metric.at_ns[g[0]] / 1e9 for g in groups])
        found[f"metric:{metric.name}"] = np.array([metric.values[g].mean() for g in groups])
    return found


def _groups(count: int, buckets: int) -> list[I64]:
    return [g for g in np.array_split(np.arange(count), min(count, buckets)) if len(g)]


def _steps(steps: Steps) -> dict[str, F64]:
    whole = ~steps.unobserved
    whole[-1] = False  # the last step has no end
    starts = steps.starts[whole]
    ms = steps.durations[whole] / 1e6
    groups = _groups(len(ms), STEP_BUCKETS)
    regular = ms[steps.steady[whole]]
    slow = np.sort(np.argsort(ms)[-OUTLIERS:])
    slow = slow[ms[slow] > 2 * np.median(ms)]
    found = {
        "step_t": np.array([starts[g[0]] / 1e9 for g in groups]),
        "step_ms_p50": np.array([np.median(ms[g]) for g in groups]),
        "step_ms_p95": np.array([np.percentile(ms[g], 95) for g in groups]),
        "step_ms_max": np.array([ms[g].max() for g in groups]),
        "outlier_t": starts[slow] / 1e9,
        "outlier_ms": ms[slow],
        "outlier_step": step_numbers.of(steps)[whole][slow].astype(np.float64),
    }
    if len(regular) > 1 and regular.min() > 0:
        edges = np.geomspace(regular.min() * 0.98, regular.max() * 1.02, HISTOGRAM_BINS + 1)
        found["hist_ms_edges"] = edges
        found["hist_count"] = np.histogram(regular, edges)[0].astype(float)
    return found


def _anatomy(anatomy: Anatomy) -> dict[str, F64]:
    groups = _groups(len(anatomy.per_step), ANATOMY_BUCKETS)
    starts = anatomy.steps.windows[0]
    found = {"anat_t": np.array([starts[g[0]] / 1e9 for g in groups])}
    for column, name in enumerate(COMPONENTS):
        values = np.array([anatomy.per_step[g, column].mean() / 1e6 for g in groups])
        if values.any():
            found[f"anat:{name}"] = values
    return found


def _rate(at: I64, counter: I64) -> F64:
    """Growth per second between samples; the counter and the time both in ns, or a count and ns."""
    result: F64 = np.maximum(np.diff(counter), 0) / np.maximum(np.diff(at), 1)
    return result


def _host(host: HostTable) -> dict[str, F64]:
    at = host.at_ns
    return {
        "res_t": at[1:] / 1e9,
        "res:cpu_cores": _rate(at, host.job_cpu_ns),
        "res:others_cores": _rate(at, host.others_cpu_ns),
    }


def _process(process: ProcessTable, times: F64 | None, memory: MemoryTable) -> dict[str, F64]:
    """Series of the process that runs the steps, resampled to the host's sample times."""
    at = process.at_ns
    own = at[1:] / 1e9
    rates = {
        "res:wait_cores": _rate(at, process.wait_ns),
        "res:read_mb_s": _rate(at, process.read_bytes) * 1e3,
        "res:write_mb_s": _rate(at, process.write_bytes) * 1e3,
        "res:rss_mb": process.rss_bytes[1:] / 1e6,
    }
    used = counters.growth(process.cpu_user_ns + process.cpu_system_ns)
    percent = np.where(used > 0, 100 / np.maximum(used, 1), 0.0)
    kernel = counters.growth(process.cpu_system_ns).astype(np.float64)
    rates["res:kernel_percent"] = kernel * percent
    fault = steady_page_faults.cost_of(memory)
    if fault is not None:
        huge = steady_page_faults.huge_faults(process, memory, fault)
        rates["res:fault_percent"] = np.minimum(steady_page_faults.faulting_ns(process, huge, fault), kernel) * percent
    if times is None:
        return {"res_t": own, **rates}
    return {key: np.interp(times, own, values) for key, values in rates.items()}
