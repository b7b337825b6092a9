"""Servers of a cluster (tf.train.Server, tf.distribute.Server): the job and task of a process.

A parameter server makes no steps: without this line it would look like a job that does nothing.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.probes.support import drop_our_frame, lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Method = Callable[..., Foreign]


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``Server.__init__`` and ``join``."""
    cls = getattr(module, "Server", None)
    why = "no Server" if cls is None else lacking(cls, "__init__", ("self", "server_or_cluster_def"))
    why = why or lacking(cls, "join", ("self",))
    if not why and cls is not None:
        state.patch(cls, "__init__", _wrap(state, cls.__init__, joined=False))
        state.patch(cls, "join", _wrap(state, cls.join, joined=True))
    report(state, "servers", why)


def _wrap(state: AgentState, original: Method, *, joined: bool) -> Method:
    @functools.wraps(original)
    def serve(self: object, *args: object, **kwargs: object) -> object:
        if joined:
            _tell(state, self, joined=True)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        if not joined:
            _tell(state, self, joined=False)
        return result

    return serve


def _tell(state: AgentState, server: Foreign, *, joined: bool) -> None:
    with state.guard("servers.tell"):
        about = server.server_def
        jobs = {str(job.name): len(job.tasks) for job in about.cluster.job}
        line = {"job": str(about.job_name), "task": int(about.task_index), "jobs": jobs, "joined": joined}
        state.log({"t": "server", "at": state.now(), **line})


TARGETS = (("tensorflow.python.training.server_lib", attach),)
