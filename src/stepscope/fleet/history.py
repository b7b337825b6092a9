"""What the lines, functions, ops or findings of each job cost it, session by session in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from msgspec import Struct

from stepscope.fleet.questions import ALWAYS, Read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.fleet.engine import Engine, Value
    from stepscope.fleet.questions import Asked
    from stepscope.model.api.fleet import ChangesBy
    from stepscope.tables.records import F64, I64, Bool

_KINDS: dict[ChangesBy, str] = {
    "line": "line",
    "function": "line",
    "op": "op",
    "finding": "finding",
    "job": "",
    "host": "",
}
_COLUMNS = (
    "session", "kind", "name", "text", "detail", "file", "line", "function", "time_ns", "self_ns", "cpu_ns", "number",
    "ratio",
)  # fmt: skip


class JobKey(Struct, frozen=True, order=True):
    """What sessions have in common that are runs of one job."""

    project: str
    program: str
    model: str
    device: str


class Followed(Struct, frozen=True):
    """What is followed over time: a line, a function, an op or a finding."""

    name: str = ""
    words: str = ""
    file: str = ""
    line: int = 0
    function: str = ""


class History(Struct, frozen=True, kw_only=True):
    """A job's sessions in the order of time. Times are ns of the whole run; NaN: not known."""

    job: JobKey
    sessions: tuple[str, ...]
    days: tuple[str, ...]
    started_s: I64
    hosts: tuple[str, ...]
    commits: tuple[str, ...]
    steps: F64
    step_ns: F64
    job_cpu_ns: F64
    sampled_cpu_ns: F64
    """What ``cpu_ns`` is a share of."""
    sampled_ns: F64
    """What ``time_ns`` of lines is a share of."""
    has_costs: Bool
    """bool[run]: whether the session has any row of the kind that is followed."""
    followed: tuple[Followed, ...]
    time_ns: F64
    """float64[followed, run], 0 where the session has none; so the next two."""
    cpu_ns: F64
    ratio: F64


def read_of(by: ChangesBy) -> Read:
    """What the question reads."""
    kind = _KINDS[by]
    return Read((*ALWAYS, *({kind} - set(ALWAYS) - {""})), _COLUMNS)


def histories(engine: Engine, asked: Asked, by: ChangesBy, least: int) -> list[History]:
    """Of all jobs. ``least``: sessions of a job in which something is seen, else it is not followed."""
    values: dict[str, Value] = {**asked.values, "kind": _KINDS[by], "lines": int(by != "function"), "least": least}
    engine.run("jobs_table", values)
    for name in ("changes_costs", "changes_runs", "changes_series"):
        engine.run(name, values)
    runs = sorted(engine.rows("rows_of", {}, {"table": "runs"}), key=lambda row: cast("int", row["run"]))
    followed = sorted(engine.rows("rows_of", {}, {"table": "series"}), key=lambda row: cast("int", row["series"]))
    costs = engine.arrays("changes_values", values)
    found = []
    for job, mine in _by_job(runs).items():
        what = [row for row in followed if _job(row) == job] if len(mine) >= least else []
        found.append(_history(job, mine, what, costs))
    return found


def _by_job(runs: Sequence[Mapping[str, Value]]) -> dict[JobKey, list[Mapping[str, Value]]]:
    found: dict[JobKey, list[Mapping[str, Value]]] = {}
    for row in runs:
        found.setdefault(_job(row), []).append(row)
    return dict(sorted(found.items()))


def _job(row: Mapping[str, Value]) -> JobKey:
    return JobKey(*(str(row[name]) for name in JobKey.__struct_fields__))


def _history(
    job: JobKey, runs: Sequence[Mapping[str, Value]], followed: Sequence[Mapping[str, Value]], costs: Mapping[str, F64]
) -> History:
    numbers = np.array([cast("int", row["run"]) for row in runs], np.int64)
    series = np.array([cast("int", row["series"]) for row in followed], np.int64)
    first, last = (int(series[0]), int(series[-1])) if len(series) else (0, -1)
    mine = (costs["series"] >= first) & (costs["series"] <= last)  # numbered job by job
    at = costs["series"][mine].astype(np.int64) - first, np.searchsorted(numbers, costs["run"][mine].astype(np.int64))
    return History(
        job=job,
        sessions=_words(runs, "session"),
        days=_words(runs, "started"),
        started_s=np.nan_to_num(_numbers(runs, "started_unix_s")).astype(np.int64),
        hosts=_words(runs, "host"),
        commits=_words(runs, "revision"),
        steps=np.nan_to_num(_numbers(runs, "steps")),
        step_ns=_numbers(runs, "step_ns"),
        job_cpu_ns=_numbers(runs, "cpu_ns"),
        sampled_cpu_ns=_numbers(runs, "sampled_cpu_ns"),
        sampled_ns=_numbers(runs, "sampled_ns"),
        has_costs=_numbers(runs, "has_costs") > 0,
        followed=tuple(_followed(row) for row in followed),
        **{
            name: _placed(np.maximum(costs[name][mine], 0.0), at, (len(series), len(numbers)))
            for name in ("time_ns", "cpu_ns", "ratio")
        },
    )


def _followed(row: Mapping[str, Value]) -> Followed:
    name, words, file, line, function = (row[one] for one in Followed.__struct_fields__)
    return Followed(str(name), str(words), str(file), int(line or 0), str(function))


def _words(runs: Sequence[Mapping[str, Value]], name: str) -> tuple[str, ...]:
    return tuple(str(row[name] or "") for row in runs)


def _numbers(runs: Sequence[Mapping[str, Value]], name: str) -> F64:
    return np.array([np.nan if row[name] is None else float(cast("int", row[name])) for row in runs])


def _placed(values: F64, at: tuple[I64, I64], shape: tuple[int, int]) -> F64:
    found = np.zeros(shape)
    found[at] = values
    return found
