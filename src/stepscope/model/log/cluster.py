"""Log lines about the cluster that a process is a task of."""

from __future__ import annotations

import msgspec

from stepscope.model.event import Event


class ServerStarted(Event, tag="server", frozen=True, kw_only=True):
    """A tf.distribute.Server (tf.train.Server) was created in this process, or the process waits for it
    (``joined``).
    """

    job: str
    """Job of the cluster: "ps", "worker" ..."""
    task: int = 0
    jobs: dict[str, int] = {}
    """The cluster: its jobs and the number of tasks of each."""
    joined: bool = False
    """Flag: the process only serves from now on."""


class MemberFact(msgspec.Struct, frozen=True, kw_only=True):
    """What one launcher says about a process."""

    launcher: str
    """Launcher: horovod | openmpi | pmi | TF_CONFIG | program (what it gave to TensorFlow) | torchrun | slurm | jax"""
    role: str = ""
    """Job of a TensorFlow cluster: "worker", "ps", "chief" ...; "rank" for launchers that only number."""
    index: int = 0
    """Number among those of its role."""
    rank: int = -1
    """Number among those that train; -1: it does not train, as a parameter server."""
    size: int = 0
    """Number of those that train."""
    tasks: int = 0
    """Number of all tasks."""
    job_id: str = ""
    """The same for all tasks of a job: digest of the cluster's addresses, or of the launcher's id; "" if unknown."""
    jobs: dict[str, int] = {}
    """Jobs of a TensorFlow cluster and the number of tasks of each."""


class MemberSeen(Event, tag="member", frozen=True, kw_only=True):
    """The process is a task of a cluster; the newest line counts. Since 0.1."""

    launcher: str
    role: str = ""
    index: int = 0
    rank: int = -1
    size: int = 0
    tasks: int = 0
    job_id: str = ""
    jobs: dict[str, int] = {}
    boot_id: str = ""
    time_namespace: str = ""
    """With ``boot_id`` the clock domain: where both are equal, processes read the same monotonic clock."""
    found: list[MemberFact] = []
    """What each launcher says; the first counts."""


ClusterEvent = ServerStarted | MemberSeen
