"""The report of ``stepscope doctor``: public API, schema ``stepscope.doctor/1`` (additions only).

``docs/schemas/doctor-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.model.structs import Struct

SCHEMA = "stepscope.doctor/1"

Group = Literal["profiling", "cpu", "memory", "libraries"]
Outcome = Literal["ok", "note", "change", "blind"]


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    """What to match on: "cpu-quota". Never reused for something else."""
    group: Group
    title: str
    outcome: Outcome
    """ok: nothing to say. note: worth knowing, and worth a measurement where there is a remedy. change: costs time or
    breaks jobs as it is. blind: could not look, or stepscope can see less than it could."""
    found: str
    """The values, as they were read."""
    why: str = ""
    """Why it matters; empty where nothing is to be said."""
    remedy: str = ""
    """What to change; of "blind" the command that would allow the look. Commands stand as they can be typed."""


class DoctorReport(Struct, frozen=True, kw_only=True):
    """Machine and environment as they were found; nothing of them was changed."""

    schema: str = SCHEMA
    version: str
    """Of stepscope."""
    host: str
    kernel: str
    python: str
    """The Python whose packages were looked at."""
    checks: tuple[Check, ...]
    """In the order of groups."""
