"""What each measured process does: makes the steps, works, serves a cluster, or nothing that was seen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stepscope.model.events import ServerStarted
from stepscope.model.finding import ProcessSummary

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.finding import ProcessRole
    from stepscope.model.session import Worker


def build(view: SessionView) -> tuple[ProcessSummary, ...]:
    """All measured processes of the session."""
    tasks = Counter(task.pid for task in view.tasks)
    return tuple(_summary(view, worker, tasks[worker.info.pid]) for worker in view.session.workers)


def _summary(view: SessionView, worker: Worker, tasks: int) -> ProcessSummary:
    servers = worker.all(ServerStarted)
    role: ProcessRole = "tasks" if tasks else "idle"
    if worker is view.worker:
        role = "steps"
    elif any(s.joined for s in servers):
        role = "server"
    member = f"{servers[0].job} {servers[0].task}" if servers else ""
    return ProcessSummary(pid=worker.info.pid, command=worker.info.command, role=role, member=member, tasks=tasks)
