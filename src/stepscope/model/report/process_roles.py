"""The processes of a job in its report, and their roles."""

from __future__ import annotations

from typing import Literal

from stepscope.tables.structs import Struct

ProcessRole = Literal["steps", "tasks", "server", "idle"]


class ProcessSummary(Struct, frozen=True, kw_only=True):
    """One measured process."""

    pid: int
    command: tuple[str, ...] = ()
    role: ProcessRole
    """Role. steps: makes the steps that the report is about. tasks: does something repeatedly. server: serves a cluster
    and makes no steps. idle: none of these was seen."""
    member: str = ""
    """Task of the process in the cluster, if it has one: "worker 0", "ps 1"."""
    tasks: int = 0
