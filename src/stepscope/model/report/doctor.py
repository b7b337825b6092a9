"""The report of ``stepscope doctor``: public API, schema ``stepscope.doctor/1`` (additions only).

``docs/schemas/doctor-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct

SCHEMA = "stepscope.doctor/1"

Group = Literal["profiling", "cpu", "memory", "gpu", "libraries"]
Outcome = Literal["ok", "note", "change", "blind"]


class Check(Struct, frozen=True, kw_only=True):
    """One check."""

    name: str
    """Name to match on: "cpu-quota". Never reused for something else."""
    group: Group
    title: str
    outcome: Outcome
    """Outcome. ok: nothing to report. note: worth knowing, and worth a measurement if there is a remedy. change: costs
    time or breaks jobs as it is. blind: could not look, or stepscope can see less than it could."""
    found: str
    """Values as they were read."""
    why: str = ""
    """Reason why it matters; empty if there is nothing to report."""
    remedy: str = ""
    """Change to make; for "blind" the command that would allow the check. Commands can be typed as they are."""


class DoctorReport(Struct, frozen=True, kw_only=True):
    """Machine and environment as found; nothing was changed."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    host: str
    kernel: str
    python: str
    """Path of the Python whose packages were examined."""
    checks: tuple[Check, ...]
    """Checks in the order of groups."""
