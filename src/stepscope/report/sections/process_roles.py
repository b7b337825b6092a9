"""The role of each measured process (runs the steps, other tasks, serves a cluster, idle), and the configuration of its
ONNX Runtime sessions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stepscope.causes.host import tasks
from stepscope.model.log.cluster import ServerStarted
from stepscope.model.log.events import InferenceSession
from stepscope.model.report.process_roles import ProcessSummary
from stepscope.model.report.report import InferenceSetup
from stepscope.report.sections import step_summary

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView
    from stepscope.model.report.process_roles import ProcessRole
    from stepscope.model.session.session import Worker


MAX_SETUPS = 32


def build(view: SessionView) -> tuple[ProcessSummary, ...]:
    """All measured processes of the session."""
    counts = Counter(task.pid for task in view.get(tasks.build))
    return tuple(_summary(view, worker, counts[worker.info.pid]) for worker in view.workers)


def _summary(view: SessionView, worker: Worker, tasks: int) -> ProcessSummary:
    servers = worker.all(ServerStarted)
    role: ProcessRole = "tasks" if tasks else "idle"
    makers = view.get(step_summary.found)
    if worker is view.worker or any(maker.main and maker.steps.worker is worker for maker in makers):
        role = "steps"
    elif any(maker.steps.worker is worker for maker in makers):
        role = "tasks"
    elif any(s.joined for s in servers):
        role = "server"
    member = f"{servers[0].job} {servers[0].task}" if servers else ""
    if worker.info.member is not None:
        member = worker.info.member.name
    return ProcessSummary(pid=worker.info.pid, command=worker.info.command, role=role, member=member, tasks=tasks)


def member(view: SessionView) -> str:
    """The task of a cluster that the only such process of the session is; "" without one, or of several."""
    members = [worker.info.member for worker in view.workers if worker.info.member is not None]
    return members[-1].text if len({one.name for one in members}) == 1 else ""


def inference(view: SessionView) -> tuple[InferenceSetup, ...]:
    """Configuration of the ONNX Runtime sessions, in order of creation."""
    made = [(worker.info.pid, event) for worker in view.workers for event in worker.all(InferenceSession)]
    return tuple(
        InferenceSetup(
            model=event.model,
            pid=pid,
            providers=tuple(event.providers),
            intra_op_threads=event.intra_op_threads,
            inter_op_threads=event.inter_op_threads if event.parallel else None,
            spins=event.spins,
            arena=event.arena,
            where=view.place(event.file, event.line, function=event.function) if event.file else None,
        )
        for pid, event in made[:MAX_SETUPS]
    )
