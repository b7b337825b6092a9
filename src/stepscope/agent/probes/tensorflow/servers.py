"""Servers of a cluster (tf.train.Server, tf.distribute.Server), and the cluster that collective ops are set up for: the
job and task of a process.

A parameter server makes no steps: without this line it would look like a job that does nothing. A strategy may have
been given its cluster by a resolver, without TF_CONFIG; all of them hand it to the context.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.probes.support import drop_our_frame, lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.membership import Cluster
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
        cluster = _cluster(about)
        jobs = {name: len(tasks) for name, tasks in cluster.items()}
        line = {"job": str(about.job_name), "task": int(about.task_index), "jobs": jobs, "joined": joined}
        state.log({"t": "server", "at": state.now(), **line})
        state.membership.tell(cluster, str(about.job_name), int(about.task_index))


def _cluster(about: Foreign) -> Cluster:
    """Addresses of a ServerDef's cluster."""
    return {str(job.name): {int(i): str(job.tasks[i]) for i in job.tasks} for job in about.cluster.job}


def attach_collectives(state: AgentState, module: Foreign) -> None:
    """Patch ``Context.enable_collective_ops``."""
    cls = getattr(module, "Context", None)
    why = "no Context" if cls is None else lacking(cls, "enable_collective_ops", ("self", "server_def"))
    if not why and cls is not None:
        state.patch(cls, "enable_collective_ops", _wrap_collectives(state, cls.enable_collective_ops))
    report(state, "collectives", why)


def _wrap_collectives(state: AgentState, original: Method) -> Method:
    @functools.wraps(original)
    def enable_collective_ops(self: object, server_def: Foreign, *args: object, **kwargs: object) -> object:
        with state.guard("servers.collectives"):
            if server_def is not None:
                cluster = _cluster(server_def)
                state.membership.tell(cluster, str(server_def.job_name), int(server_def.task_index))
        try:
            return original(self, server_def, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    return enable_collective_ops


TARGETS = (
    ("tensorflow.python.training.server_lib", attach),
    ("tensorflow.python.eager.context", attach_collectives),
)
