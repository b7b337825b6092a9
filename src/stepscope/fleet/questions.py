"""The questions: which rows they read, which text answers them, and what an answer looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Struct, field

from stepscope.fleet.prices import Prices
from stepscope.model.api.fleet import FleetCost, FleetJob, GroupBy, SortBy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.fleet.engine import Engine, Value

FILTERS = ("user", "team", "project", "program", "model", "host", "finding")
ALWAYS = ("about", "amount", "finding")
"""Kinds that every question reads: whose jobs they are, and which findings they have."""
_GROUPS: dict[GroupBy, str] = {
    "user": "owner",
    "team": "team",
    "project": "project",
    "model": "model",
    "host": "host",
}
_OF_JOBS = ("session", "kind", "name", "text", "number", "self_ns")
"""Columns that every question reads."""
_SORTS: dict[SortBy, str] = {
    "wall": "wall_hours",
    "cpu": "cpu_hours",
    "device": "device_hours",
    "money": "money",
    "thread": "thread_hours",
}


class Asked(Struct, frozen=True, kw_only=True):
    """What all questions share."""

    filters: dict[str, str] = field(default_factory=dict)
    """Values by name of a filter; jobs that have none of it are left out."""
    prices: Prices = Prices()
    sort: SortBy = "wall"
    limit: int = 20
    library: bool = False
    """Lines of libraries, not of the user's code."""

    @property
    def values(self) -> dict[str, Value]:
        """For the texts."""
        found: dict[str, Value] = {name: self.filters.get(name, "") for name in FILTERS}
        return {
            **found,
            "owner": found["user"],
            "limit": self.limit,
            "host_hour": self.prices.host_hour,
            "cpu_hour": self.prices.cpu_hour,
            "origin": "library" if self.library else "own",
        }


class Read(Struct, frozen=True):
    """What a question reads of the parts."""

    kinds: tuple[str, ...] = ALWAYS
    columns: tuple[str, ...] = _OF_JOBS


JOBS = Read()
"""Of ``jobs``, ``sessions``, and of ``top`` by groups of jobs."""
STACKS = Read((*ALWAYS, "stack"), (*_OF_JOBS, "time_ns"))
_TOP: dict[GroupBy, Read] = {
    "line": Read((*ALWAYS, "line"), (*_OF_JOBS, "detail", "file", "line", "function", "time_ns", "cpu_ns", "ratio")),
    "finding": Read(ALWAYS, (*_OF_JOBS, "time_ns", "ratio", "low", "high")),
    "version": Read((*ALWAYS, "version")),
}


def read_of(by: GroupBy) -> Read:
    """What ``top`` reads."""
    return _TOP.get(by, JOBS)


def jobs(engine: Engine, asked: Asked) -> tuple[FleetJob, ...]:
    """The jobs that cost most."""
    _prepare(engine, asked)
    return tuple(_job(row, asked) for row in engine.rows("jobs", asked.values, {"order": _SORTS[asked.sort]}))


def top(engine: Engine, asked: Asked, by: GroupBy) -> tuple[FleetCost, ...]:
    """The lines, findings or groups of jobs that cost most."""
    _prepare(engine, asked)
    columns = {"order": _SORTS[asked.sort], "group": _GROUPS.get(by, "")}
    rows = engine.rows("top_group" if by in _GROUPS else f"top_{by}", asked.values, columns)
    return tuple(_cost(row, asked) for row in rows)


def sessions(engine: Engine, asked: Asked) -> frozenset[str]:
    """The ids of all sessions that the filters keep."""
    engine.run("jobs_table", asked.values)
    return frozenset(str(one) for one in engine.values_of("session", "jobs"))


def stacks(engine: Engine, asked: Asked, event: str, by: GroupBy | None) -> list[tuple[str, int]]:
    """(folded stack, weight in ns) of one event over all jobs; ``by``: groups stand at the root."""
    _prepare(engine, asked)
    columns = {"root": _GROUPS[by] if by is not None else "whole"}
    rows = engine.rows("flame", {**asked.values, "event": event}, columns)
    return [(_rooted(str(row["root"] or ""), str(row["stack"]), by), int(row["weight"] or 0)) for row in rows]


def _rooted(root: str, stack: str, by: GroupBy | None) -> str:
    return stack if by is None else f"{by} {root.replace(';', ':') or 'not known'};{stack}"


def _prepare(engine: Engine, asked: Asked) -> None:
    """Make ``jobs`` of ``parts``, and ``prices`` for each of their devices."""
    engine.run("jobs_table", asked.values)
    found = [str(name) for name in engine.values_of("device", "jobs")]
    rows = [(name, asked.prices.of_device(name)) for name in found]
    engine.table("prices", {"price_of": "VARCHAR", "device_hour": "DOUBLE"}, rows)


def _job(row: Mapping[str, Value], asked: Asked) -> FleetJob:
    rate, cost = cast("int | None", row["milli_samples"]), cast("int | None", row["overhead_ppm"])
    renamed = {
        **row,
        "user": row["owner"],
        "commit": row["revision"],
        "end": row["ending"],
        "samples_per_s": None if rate is None else rate / 1000,
        "overhead_ratio": None if cost is None else cost / 1e6,
        "money": row["money"] if asked.prices.currency else None,
    }
    return msgspec.convert(renamed, FleetJob)


def _cost(row: Mapping[str, Value], asked: Asked) -> FleetCost:
    renamed = {
        "name": "",
        **row,
        "users": row.get("owners"),
        "words": row.get("words") or row.get("version") or "",
        "money": row["money"] if asked.prices.currency else None,
    }
    return msgspec.convert(
        {key: value for key, value in renamed.items() if key in FleetCost.__struct_fields__}, FleetCost
    )
