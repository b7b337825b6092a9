"""How much of the time that devices, or else hosts, were held went into steps that counted: one row a job, over all of
its attempts.

What an attempt that failed had done since its last save is lost. Where in the run steps, evaluations and saves lie is
not in a part, so they are taken to be spread evenly over the time after the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from stepscope.fleet.questions import ALWAYS, Read
from stepscope.model.api.fleet import FleetGoodput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.fleet.engine import Engine, Value
    from stepscope.fleet.questions import Asked

READ = Read((*ALWAYS, "ledger"), ("session", "kind", "name", "text", "number", "self_ns", "time_ns"))
_DONE = ("steps_ns", "input_ns", "saving_ns", "evaluation_ns")
"""What is lost with an attempt that failed."""
HOURS = tuple(name for name in FleetGoodput.__struct_fields__ if name.endswith("_hours"))
"""Fields of an answer: what is held, then what that went into."""


def goodput(engine: Engine, asked: Asked) -> tuple[FleetGoodput, ...]:
    """All jobs together, then those whose time went most into other things than steps."""
    engine.run("jobs_table", asked.values)
    rows = engine.rows("goodput", asked.values)
    jobs = [_job(attempts) for attempts in _chains(rows)]
    jobs.sort(key=lambda job: (job.steps_hours - job.held_hours, job.session))
    return (_together(jobs), *jobs[: asked.limit]) if jobs else ()


def _chains(rows: Sequence[Mapping[str, Value]]) -> list[list[Mapping[str, Value]]]:
    """The attempts of each job, in the order of time: each names the one that it repeats."""
    known = {row["session"]: row for row in rows}
    first: dict[Value, Value] = {}
    chains: dict[Value, list[Mapping[str, Value]]] = {}
    for row in sorted(rows, key=lambda row: (_number(row, "started_unix_s"), str(row["session"]))):
        before = row["restarts"]
        root = first.get(before, before) if before in known else row["session"]
        first[row["session"]] = root
        chains.setdefault(root, []).append(row)
    return list(chains.values())


def _job(attempts: Sequence[Mapping[str, Value]]) -> FleetGoodput:
    hours = dict.fromkeys(HOURS, 0.0)
    unknown = 0
    for number, row in enumerate(attempts):
        weight = max(_number(row, "devices"), 1) / 3.6e12
        parts = {name: _number(row, name) * weight for name in (*_DONE, "start_ns", "other_ns")}
        lost = 0.0
        if row["job_failed"]:
            unknown += row["saved_ns"] is None
            lost = _lost_share(row, sum(parts.values()) / weight)
        hours["held_hours"] += sum(parts.values())
        hours["restarts_hours" if number else "start_hours"] += parts["start_ns"]
        hours["other_hours"] += parts["other_ns"]
        for name in _DONE:
            hours[name.replace("_ns", "_hours")] += parts[name] * (1.0 - lost)
            hours["lost_hours"] += parts[name] * lost
    last = attempts[-1]
    return FleetGoodput(
        session=str(attempts[0]["session"]),
        user=str(last["owner"]),
        project=str(last["project"]),
        program=str(last["program"]),
        host=str(last["host"]),
        started=str(attempts[0]["started"]),
        devices=int(max(_number(row, "devices") for row in attempts)),
        attempts=len(attempts),
        failed=sum(bool(row["job_failed"]) for row in attempts),
        loss_unknown=unknown,
        **hours,
    )


def _lost_share(row: Mapping[str, Value], wall_ns: float) -> float:
    """Of what a failed attempt did after its start; 0 if its saves are not known."""
    if row["saved_ns"] is None:
        return 0.0
    after_start = wall_ns - _number(row, "start_ns")
    return min(1.0, max(0.0, wall_ns - _number(row, "saved_ns")) / after_start) if after_start > 0 else 0.0


def _together(jobs: Sequence[FleetGoodput]) -> FleetGoodput:
    added = (*HOURS, "attempts", "failed", "loss_unknown")
    sums: dict[str, float] = {name: sum(getattr(job, name) for job in jobs) for name in added}
    return msgspec.convert(sums, FleetGoodput)


def _number(row: Mapping[str, Value], name: str) -> float:
    return float(cast("int | None", row[name]) or 0)
