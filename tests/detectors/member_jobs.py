"""Jobs of several members in one session: what each does alone in a step of 100 ms is chosen here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from msgspec.structs import replace
from tests.derive import exchanges
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job
from tests.detectors.traced_jobs import STEP, TRACED, holding

from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import Session, Worker

STEPS = 120
PERIOD = 100 * MS
TOGETHER = "steps of several members of the job"


def member(index: int, count: int, **fields: object) -> MemberInfo:
    """A worker of a job."""
    made = MemberInfo(
        launcher="TF_CONFIG",
        role="worker",
        index=index,
        rank=index,
        size=count,
        tasks=count,
        job_id="job",
        jobs={"worker": count},
        boot_id="boot",
    )
    return msgspec.structs.replace(made, **fields)


@dataclass
class MemberJob(Job):
    """A process that is a member, and the other members in its session."""

    info: MemberInfo | None = None
    others: list[MemberJob] = field(default_factory=list)

    def worker(self) -> Worker:
        """The process."""
        made = super().worker()
        return replace(made, info=msgspec.structs.replace(made.info, member=self.info))

    def session(self) -> Session:
        """The session of all."""
        workers = (self.worker(), *(other.worker() for other in self.others))
        every = [trace for job in (self, *self.others) for trace in job.resources.get("op_traces", ())]
        return replace(super().session(), workers=workers, op_traces=every)


def synchronous(own_ms: Sequence[Sequence[float]], samples: Sequence[int] = ()) -> Job:
    """Members that leave each call together, every 100 ms.

    Args:
        own_ms: for each member what it does before its call: one number, or some in turn.
        samples: of the batch of each.
    """
    count, jobs = len(own_ms), []
    for index, own in enumerate(own_ms):
        job = MemberJob(pid=100 + index, info=member(index, count))
        call = job.function(call_file="/job/train.py", call_line=20, call_function="main")
        for n in range(STEPS):
            jitter = int(np.random.default_rng(1000 * index + n).integers(0, 40_000))
            alone = int(own[n % len(own)] * MS) + jitter
            call.at(n * PERIOD + alone, PERIOD - alone, arg=samples[index] if samples else 0)
        jobs.append(job)
    first, *others = jobs
    first.others = others
    first.ended_ns = (STEPS + 1) * PERIOD
    return first


def computing(ratios: Sequence[float], samples: Sequence[int] = ()) -> Job:
    """Members with the same own time, whose ops compute for shares of each step, by op traces; then they wait."""
    job = synchronous([[1.0]] * len(ratios), samples)
    assert isinstance(job, MemberJob)
    for one, ratio in zip([job, *job.others], ratios, strict=True):
        (trace,) = exchanging(1.0 - ratio).resources["op_traces"]
        one.resources["op_traces"] = [replace(trace, name=f"ops-{one.pid}", worker=str(one.pid))]
    return job


def alone(*, tasks: int = 2) -> Job:
    """A member whose session holds none of the others."""
    job = synchronous([[1.0]])
    assert isinstance(job, MemberJob)
    job.info = member(0, tasks)
    return job


def exchanging(ratio: float, *, roles: dict[str, int] | None = None, tasks: int = 2) -> Job:
    """A member alone, whose traced steps lie in a collective for a share of their time."""
    made = Maker()
    compute = made.thread("tf_Compute")
    for i in range(TRACED):
        at, run = STEP * i, 1 + i
        made.step(at, STEP - 1, i)
        made.call(at, STEP - 2, run)
        made.op(compute, "model/MatMul:MatMul", at + 1, (1 - ratio) * STEP - 2, run)
        made.op(compute, "CollectiveReduceV2:CollectiveReduceV2", at + (1 - ratio) * STEP, ratio * STEP - 3, run)
    plain = holding(made.trace())
    job = MemberJob(
        ended_ns=plain.ended_ns, resources=plain.resources, info=member(0, tasks, jobs=roles or {"worker": tasks})
    )
    job.records, job.events = plain.records, plain.events
    return job


def receiving(came_ms: Sequence[float], work_ms: float, *, tasks: int = 2) -> Job:
    """A worker whose layers work for a time each, when their weights have come from a server, in steps of 100 ms."""
    plain = holding(exchanges.layers([1e3 * at for at in came_ms], 1e3 * work_ms, runs=6, period=1e5))
    job = MemberJob(
        ended_ns=plain.ended_ns, resources=plain.resources, info=member(0, tasks, jobs={"ps": 1, "worker": 1})
    )
    job.records, job.events = plain.records, plain.events
    return job
