"""Joint captures over several hosts: who is asked there, and how a request from there is led to the tasks here.

A collector that compares clocks with other hosts (``--clock-hosts``, with a key) asks all of these, and takes requests
of them. It leads one to every task of the job on its host, in its session or not, as a task of this host that is asked
leads the others on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepscope.clocks import clock_domain, settings
from stepscope.collector import host_members
from stepscope.collector.other_hosts.asking import Asking
from stepscope.collector.other_hosts.message import JointRequest, TaskState
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.model.session import clock_domain as domains
from stepscope.sidecar import joint_tasks
from stepscope.sidecar.joint_tasks import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.collector.recorder import Recording

NOTE = "DX118"
KEPT = 64
"""Requests of other hosts that are remembered."""
MOST_NAMES = 4
"""Tasks, or hosts, that are named."""


class TasksHere:
    """This host's tasks, for requests of other hosts (a ``desk.TaskDesk``)."""

    def __init__(self) -> None:
        """Begin without a request."""
        self._led: dict[str, list[Task]] = {}

    def lead(self, wanted: JointRequest) -> str:
        """Ask the tasks of a job; return why there are none to ask, or "".

        Raises:
            OSError: there is no place for the file of members.
        """
        tasks = joint_tasks.of_entries(entry for entry in host_members.known(wanted.job) if entry.runs)
        tasks = [task for task in tasks if wanted.servers or not task.serves]
        if not tasks:
            return "no task of the job is measured there"
        ask = CaptureAsk(
            id=wanted.joint,
            steps=wanted.steps,
            seconds=wanted.seconds,
            keep_raw=wanted.keep_raw,
            wait_s=0.0,
            force=True,
            joint=wanted.joint,
            begin_ns=wanted.begin_ns,
            mark_ns=wanted.mark_ns,
            span_ns=wanted.span_ns,
            clock=_domain(),
        )
        joint_tasks.ask_all(tasks, ask)
        self._keep(wanted.joint, tasks)
        return ""

    def look(self, job: str, joint: str) -> Sequence[TaskState]:
        """What became of each task; of a request that another collector has led, too.

        Raises:
            OSError: there is no place for the file of members.
        """
        if joint not in self._led:
            self._keep(joint, joint_tasks.of_entries(host_members.known(job)))
        for task in self._led[joint]:
            if task.open and task.entry is not None:
                joint_tasks.look(task, task.entry, joint)
        return [_state(task) for task in self._led[joint]]

    def _keep(self, joint: str, tasks: list[Task]) -> None:
        self._led[joint] = tasks
        while len(self._led) > KEPT:
            self._led.pop(next(iter(self._led)))


class FarTasks:
    """The tasks on other hosts, for the joint capture of a task of this one."""

    def __init__(self, asking: Asking) -> None:
        """``asking``: the thread that asks them, which has begun."""
        self._asking = asking
        self._tasks: dict[tuple[str, str], Task] = {}

    def tasks(self) -> list[Task]:
        """Those that are known by now."""
        for far in self._asking.tasks():
            if not far.name:
                continue
            task = self._tasks.setdefault((far.host, far.name), Task(name=far.name, host=far.host))
            if far.outcome == "missed":
                task.missed = far.text or "it was not traced"
            elif far.outcome == "done" and task.open:
                task.steps, task.unsure_ns = far.steps, far.unsure_ns
                task.ends = np.array(far.ends, np.int64)
        return list(self._tasks.values())

    def settled(self) -> bool:
        """Whether nothing more is to come."""
        return self._asking.settled()

    def why(self) -> str:
        """Why a task is not among them that should be, in words."""
        silent = self._asking.silent()
        said = [f"{host}: {why}" for host, why in list(silent.items())[:MOST_NAMES]]
        more = f" and {len(silent) - MOST_NAMES} hosts more" if len(silent) > MOST_NAMES else ""
        return f"on none of the hosts that answered; {', '.join(said)}{more}" if said else "on none of the hosts asked"

    def close(self) -> None:
        """Ask no more."""
        self._asking.close()


def possible(recording: Recording) -> bool:
    """Whether collectors of other hosts can be asked: ``--clock-hosts`` names them."""
    return settings.read(recording.run) is not None


def begin(recording: Recording, job: str, ask: CaptureAsk, *, servers: bool) -> FarTasks | None:
    """Ask the other hosts for the tasks of a job; None if that is not possible, which is noted.

    Args:
        recording: of the task that leads.
        job: id of the job.
        ask: what the tasks of this host are asked for.
        servers: whether parameter servers are asked too.
    """
    asked = settings.read(recording.run)
    if asked is None:
        return None
    request = JointRequest(
        joint=ask.joint,
        job=job,
        begin_ns=ask.begin_ns,
        mark_ns=ask.mark_ns,
        span_ns=ask.span_ns,
        steps=ask.steps,
        seconds=ask.seconds,
        keep_raw=ask.keep_raw,
        servers=servers,
    )
    try:
        key = settings.key_of(Path(asked.key_file))
        asking = Asking(asked.hosts, key, bytes.fromhex(_domain()), host_members.reach(), request)
        asking.start()
    except (OSError, ValueError, RuntimeError) as error:
        recording.note(NOTE, f"tasks on other hosts could not be asked: {error}")
        return None
    return FarTasks(asking)


def _domain() -> str:
    return domains.key(clock_domain.boot_id(), clock_domain.time_namespace())


def _state(task: Task) -> TaskState:
    if task.missed:
        return TaskState(name=task.name, outcome="missed", text=task.missed)
    if task.open:
        return TaskState(name=task.name)
    return TaskState(name=task.name, outcome="done", steps=task.steps, ends=tuple(task.ends.tolist()))
