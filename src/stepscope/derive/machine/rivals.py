"""Other processes that use CPU: rivals of the job, and tasks of its own cluster, which are not rivals.

A task is a process that the sampler recognised as one (``TASK``), that this session measures, or that runs the same
program and script as a measured process of a job whose cluster is known. A child forked by multiprocessing has its
parent's command line and may do anything, so it does not count as a task on that ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.log.cluster import ServerStarted
from stepscope.model.log.events import ChildStarted
from stepscope.tables.records import CHILD, GROUP, TASK

if TYPE_CHECKING:
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64, Bool, RivalTable

MAX_NAME = 40
"""Maximum length of a short command."""
_FORKED = "Process"
"""Ending of the class names in the commands of multiprocessing's children."""


def foreign(session: Session) -> RivalTable:
    """The rival rows without the tasks of the job's own cluster."""
    return session.rivals.take(~of_cluster(session))


def of_cluster(session: Session) -> Bool:
    """Which rival rows are tasks of the job's own cluster."""
    rivals = session.rivals
    told: Bool = np.isin(rivals.pid, _told(rivals))
    found: Bool = told | np.isin(rivals.pid, [worker.info.pid for worker in session.workers])
    servers = any(sum(s.jobs.values()) > 1 for worker in session.workers for s in worker.all(ServerStarted))
    if not servers and not told.any():
        return found
    scripts = {short_command(" ".join(worker.info.command)) for worker in session.workers}
    named = [(i, short_command(text)) for i, text in enumerate(session.rival_names)]
    names = [i for i, text in named if " " in text and text in scripts]
    found |= np.isin(rivals.name, names) & ~np.isin(rivals.pid, _forked(session))
    return found


def tasks_here(session: Session) -> int:
    """Number of known tasks of the job's cluster that compute or serve on this host; 0 without a cluster."""
    members = {worker.info.pid for worker in session.workers if worker.all(ServerStarted)}
    found = members | set(session.rivals.pid[of_cluster(session)].tolist())
    told = len(_told(session.rivals)) > 0
    return len(found | {worker.info.pid for worker in session.workers[:1]}) if members or told else 0


def _told(rivals: RivalTable) -> I64:
    """Processes that the sampler recognised as tasks at any time: they connect some seconds after their start."""
    return np.unique(rivals.pid[(rivals.child & TASK) != 0])


def is_child(rivals: RivalTable) -> Bool:
    """Which rows belong to processes that the job started; in older sessions, or that share its process group."""
    started: Bool = (rivals.child & CHILD) != 0
    return started


def is_companion(rivals: RivalTable, every: RivalTable) -> Bool:
    """Which rows belong to processes that share the job's process group; in older sessions, or that the job started.

    ``every``: all rows of the session, which say whether it is an older one.
    """
    apart = bool(((every.child & GROUP) != 0).any() or (every.runnable >= 0).any())
    found: Bool = (rivals.child & (GROUP if apart else GROUP | CHILD)) != 0
    return found


def _forked(session: Session) -> I64:
    pids = [
        c.pid for w in session.workers for c in w.all(ChildStarted) if c.command.partition(" ")[0].endswith(_FORKED)
    ]
    return np.array(pids, np.int64)


def short_command(command: str) -> str:
    """Program and script without folders and options: "python archive.py". Processes are grouped by it."""
    words = [word.rpartition("/")[2] for word in command.split()[:2]]
    return " ".join(word for word in words if word and not word.startswith("-"))[:MAX_NAME] or command[:MAX_NAME]
