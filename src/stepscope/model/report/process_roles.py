"""The processes of a job in its report, and what they do."""

from __future__ import annotations

from typing import Literal

from stepscope.model.structs import Struct

ProcessRole = Literal["steps", "tasks", "server", "idle"]


class ProcessSummary(Struct, frozen=True, kw_only=True):
    """One measured process."""

    pid: int
    command: tuple[str, ...] = ()
    role: ProcessRole
    """steps: makes the steps that the report is about. tasks: does something again and again. server: serves a cluster
    and makes no steps of its own. idle: none of these was seen."""
    member: str = ""
    """Its task in the cluster, where it has one: "worker 0", "ps 1"."""
    tasks: int = 0
