"""Answers about a fleet: public API, schema ``stepscope.fleet/1`` (additions only).

``docs/schemas/fleet-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from stepscope.tables.structs import Struct

SCHEMA = "stepscope.fleet/1"

GroupBy = Literal["line", "finding", "user", "team", "project", "model", "host", "version"]
SortBy = Literal["wall", "cpu", "device", "money", "thread"]


class PartsRead(Struct, frozen=True, kw_only=True):
    """What an answer rests on."""

    sessions: int
    """Sessions whose part was read, before filters."""
    others: int = 0
    """Further parts of the same sessions, which were not read."""
    newer: int = 0
    """Parts of a later version of the format, of which the columns known here were read."""
    damaged: tuple[str, ...] = ()
    """Names of parts that are not what was sent, and are left out."""


class FleetJob(Struct, frozen=True, kw_only=True):
    """A session. Hours are of its whole run."""

    session: str
    started: str
    """Day (UTC), YYYY-MM-DD."""
    user: str
    team: str
    project: str
    program: str
    model: str
    host: str
    device: str
    commit: str
    end: str
    """As ``session.end`` of the report."""
    restarts: str
    """Session that it is the next attempt of; "" if none is known."""
    exit_code: int | None
    steps: int | None
    step_ns: int | None
    samples_per_s: float | None
    overhead_ratio: float | None
    """Cost of measuring, as a share of the step."""
    wall_hours: float
    cpu_hours: float | None
    device_hours: float
    """Wall time times GPUs: how long they were held."""
    lost_hours: float
    """Wall time that the findings' remedies would save together, each counted on top of those before it."""
    money: float | None = None


class FleetCost(Struct, frozen=True, kw_only=True):
    """What a line, a finding or a group of jobs costs over all of them."""

    name: str
    """The finding's code, the group, or the package; "" for a line."""
    words: str = ""
    """The finding's name, or the package's version."""
    project: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    jobs: int
    """Number of sessions that have it."""
    users: int | None = None
    failed: int | None = None
    """Number of sessions that did not end with code 0."""
    wall_hours: float
    wall_low: float | None = None
    """Wall time if every cost were at the lower end of its interval."""
    wall_high: float | None = None
    thread_hours: float | None = None
    """Time of all threads at the line, with that of the functions that it calls."""
    self_hours: float | None = None
    """Time of all threads at the line itself."""
    cpu_hours: float | None = None
    device_hours: float
    lost_hours: float | None = None
    """As of ``FleetJob``."""
    money: float | None = None


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """The answer to ``fleet jobs`` or ``fleet top``."""

    schema: str = SCHEMA
    question: Literal["jobs", "top"]
    by: GroupBy | None = None
    sort: SortBy
    filters: dict[str, str] = field(default_factory=dict)
    parts: PartsRead
    currency: str = ""
    """Currency of ``money``; "": no prices were given."""
    jobs: tuple[FleetJob, ...] = ()
    costs: tuple[FleetCost, ...] = ()
