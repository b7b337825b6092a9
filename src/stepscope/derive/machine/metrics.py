"""The user's own metrics over time: every ``stepscope.metric(name, value)`` of every process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Metric
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.session.session import Worker
    from stepscope.tables.records import F64, I64


class UserMetric(Struct, frozen=True, kw_only=True):
    """One metric. ``at_ns`` int64[value], sorted; ``values`` float64[value], finite."""

    name: str
    at_ns: I64
    values: F64


def build(workers: Sequence[Worker]) -> tuple[UserMetric, ...]:
    """The metrics in the order of their first value. A name used by several processes gives one metric for each."""
    found: list[tuple[int, UserMetric, int]] = []
    for worker in workers:
        found += [(int(m.at_ns[0]), m, worker.info.pid) for m in _of_worker(worker)]
    names = [m.name for _, m, _ in found]
    return tuple(
        m if names.count(m.name) == 1 else UserMetric(name=f"{m.name} ({pid})", at_ns=m.at_ns, values=m.values)
        for _, m, pid in sorted(found, key=lambda f: (f[0], f[1].name))
    )


def _of_worker(worker: Worker) -> list[UserMetric]:
    records, names = worker.records, names_of(worker)
    mine = records.kind == Kind.METRIC
    values = np.ascontiguousarray(records.arg[mine]).view(np.float64)
    parts: dict[str, list[tuple[I64, F64]]] = {}
    for number in np.unique(records.name[mine]).tolist():
        this = records.name[mine] == number
        name = names[number].text if number in names else f"metric {number}"
        parts.setdefault(name, []).append((records.start_ns[mine][this], values[this]))
    for event in worker.all(Metric):
        parts.setdefault(event.name, []).append((np.array([event.at], np.int64), np.array([event.value])))
    return [_joined(name, rows) for name, rows in parts.items()]


def _joined(name: str, rows: list[tuple[I64, F64]]) -> UserMetric:
    at = np.concatenate([r[0] for r in rows])
    values = np.concatenate([r[1] for r in rows])
    good = np.isfinite(values)
    order = np.argsort(at[good], kind="stable")
    return UserMetric(name=name, at_ns=at[good][order], values=values[good][order])
