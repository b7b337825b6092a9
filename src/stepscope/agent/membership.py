"""Which task of which cluster this process is, by the launcher's variables and by what the program tells TensorFlow.

The most specific launcher counts: Horovod's before MPI's, before TF_CONFIG, torchrun, Slurm and JAX. All that were
found are logged, and it is said where they contradict each other. Nothing here asks a framework for anything that it
has not set up already.

Sources: horovod/runner/gloo_run.py; OpenMPI's FAQ "environment variables"; MPICH's PMI; tf.distribute
TFConfigClusterResolver; torch.distributed.run; srun(1), "OUTPUT ENVIRONMENT VARIABLES"; jax.distributed.initialize.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.guard import Failures
    from stepscope.agent.core.lines import AgentLog

    Fact = dict[str, object]
    Cluster = dict[str, dict[int, str]]
    """Addresses by job and number of the task."""

TRAINS = ("chief", "master", "worker")
"""Jobs of a TensorFlow cluster whose tasks train, in the order of their ranks."""
MOST_STEPS = 0xFFFFFFF0
"""Highest number of a Slurm step that srun starts (slurm.h, SLURM_MAX_NORMAL_STEP_ID): a batch script is none."""
MAX_TASKS = 100_000


class Membership:
    """Looks at the environment until late in the job, at growing intervals, and logs what has changed."""

    def __init__(self, lines: AgentLog, failures: Failures) -> None:
        """Nothing is read yet."""
        self._lines = lines
        self._failures = failures
        self._told: list[Fact] = []
        self._of_program: list[Fact] = []
        self._looks = 0

    def tick(self, now_ns: int) -> None:
        """On the agent's thread: a program may set TF_CONFIG, or initialise JAX, at any time before its first step."""
        del now_ns
        self._looks += 1
        if self._looks & (self._looks - 1) == 0:
            self.look()

    def tell(self, cluster: Cluster, job: str, task: int) -> None:
        """The program gave TensorFlow its cluster."""
        fact = of_cluster("program", cluster, job, task)
        if fact not in self._of_program:
            self._of_program.append(fact)
            self.look()

    def look(self) -> None:
        """Log the facts if they are not those that were logged last."""
        with self._failures.guard("membership"):
            facts = in_order([*of_environment(os.environ), *self._of_program, *_of_jax()])
            if facts and facts != self._told:
                self._told = facts
                self._log(facts)

    def after_fork(self) -> None:
        """In a forked child: its log is another."""
        self._told = []

    def _log(self, facts: list[Fact]) -> None:
        line: Fact = {"t": "member", "at": time.monotonic_ns(), **facts[0], **clock_domain(), "found": facts}
        self._lines.log(line)
        why = contradiction(facts)
        if why:
            self._lines.diagnostic("DX917", why)


def of_environment(env: Mapping[str, str]) -> list[Fact]:
    """What each launcher's variables say, in no order; damaged ones say nothing."""
    found = [
        _plain("horovod", env, "HOROVOD_RANK", "HOROVOD_SIZE", _joined(env, "HOROVOD_GLOO_RENDEZVOUS_ADDR", "_PORT")),
        _plain("openmpi", env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", _first(env, MPI_JOBS)),
        _plain("pmi", env, "PMI_RANK", "PMI_SIZE", env.get("PMI_JOBID", "")),
        _tf_config(env.get("TF_CONFIG", "")),
        _torchrun(env),
        _slurm(env),
        _plain("jax", env, "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", env.get("JAX_COORDINATOR_ADDRESS", "")),
    ]
    return [fact for fact in found if fact is not None]


MPI_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid")
ORDER = ("horovod", "openmpi", "pmi", "TF_CONFIG", "program", "torchrun", "slurm", "jax")
"""Launchers, the most specific first."""


def in_order(facts: Iterable[Fact]) -> list[Fact]:
    """The facts, the one that counts first: of a cluster of several tasks, by ``ORDER``."""
    return sorted(facts, key=lambda fact: (_number(fact, "tasks") <= 1, ORDER.index(str(fact["launcher"]))))


def contradiction(facts: list[Fact]) -> str:
    """Where launchers say different things about this process; "" if they agree."""
    several = [fact for fact in facts if _number(fact, "tasks") > 1 and _number(fact, "rank") >= 0]
    for other in several[1:]:
        one = several[0]
        if (one["rank"], one["size"]) != (other["rank"], other["size"]):
            return "%s says rank %s of %s, %s says rank %s of %s: %s counts" % (
                *(one["launcher"], one["rank"], one["size"], other["launcher"], other["rank"], other["size"]),
                one["launcher"],
            )
    return ""


def of_cluster(launcher: str, cluster: Cluster, job: str, task: int) -> Fact:
    """Fact of a task of a TensorFlow cluster. Its rank is that among the tasks that train; -1: it is none of them."""
    sizes = {name: len(tasks) for name, tasks in sorted(cluster.items())}
    training = [(name, number) for name in TRAINS for number in sorted(cluster.get(name, ()))]
    rank = training.index((job, task)) if (job, task) in training else -1
    spec = json.dumps({name: sorted(tasks.items()) for name, tasks in sorted(cluster.items())})
    fact = _fact(launcher, job, task, rank, len(training), "cluster " + spec)
    fact.update(jobs=sizes, tasks=sum(sizes.values()))
    return fact


def cluster_of(spec: object) -> Cluster:
    """Addresses of a cluster as TF_CONFIG has it: lists, or objects by number."""
    cluster: Cluster = {}
    for name, tasks in spec.items() if isinstance(spec, dict) else ():
        pairs = tasks.items() if isinstance(tasks, dict) else enumerate(tasks if isinstance(tasks, list) else ())
        numbered = {int(number): str(address) for number, address in pairs}
        if numbered and len(numbered) <= MAX_TASKS:
            cluster[str(name)] = numbered
    return cluster


def clock_domain() -> Fact:
    """What must be equal where two processes read the same monotonic clock."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
    except (OSError, ValueError):
        boot_id = ""
    try:
        time_namespace = os.readlink("/proc/self/ns/time")
    except OSError:  # no such namespaces in this kernel
        time_namespace = ""
    return {"boot_id": boot_id, "time_namespace": time_namespace}


def _fact(launcher: str, role: str, index: int, rank: int, size: int, job: str) -> Fact:
    job_id = hashlib.sha256(job.encode("utf-8", "replace")).hexdigest()[:16] if job else ""
    fact: Fact = {"launcher": launcher, "role": role, "index": index, "rank": rank, "size": size, "job_id": job_id}
    fact["tasks"] = size
    return fact


def _plain(launcher: str, env: Mapping[str, str], rank: str, size: str, job: str) -> Optional[Fact]:
    """Fact of a launcher that says rank and size. ``job``: what only the processes of this job share; "": unknown."""
    try:
        number, count = int(env[rank]), int(env[size])
    except (KeyError, ValueError):
        return None
    if not 0 <= number < count <= MAX_TASKS:
        return None
    return _fact(launcher, "rank", number, number, count, job and launcher + " " + job)


def _tf_config(text: str) -> Optional[Fact]:
    try:
        config = json.loads(text)
        task = config["task"]
        cluster, job, number = cluster_of(config.get("cluster")), str(task["type"]), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return of_cluster("TF_CONFIG", cluster, job, number) if cluster else None


def _torchrun(env: Mapping[str, str]) -> Optional[Fact]:
    if "LOCAL_RANK" not in env or "MASTER_ADDR" not in env:  # RANK alone may mean anything
        return None
    run = env.get("TORCHELASTIC_RUN_ID", "")
    # An elastic job whose workers are started again gets another port; "none" is what jobs without a run id have.
    job = run if run not in ("", "none") else _joined(env, "MASTER", "_PORT", "_ADDR")
    return _plain("torchrun", env, "RANK", "WORLD_SIZE", job)


def _slurm(env: Mapping[str, str]) -> Optional[Fact]:
    step = env.get("SLURM_STEP_ID", env.get("SLURM_STEPID", ""))
    if not step.isdigit() or int(step) > MOST_STEPS:  # in the batch script: no rank, whatever the variables say
        return None
    size = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in env else "SLURM_NTASKS"
    job = env.get("SLURM_JOB_ID", "")
    return _plain("slurm", env, "SLURM_PROCID", size, job and "%s.%s" % (job, step))


def _of_jax() -> list[Fact]:
    """What the program gave to jax.distributed.initialize."""
    made: Foreign = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    count, number = getattr(made, "num_processes", None), getattr(made, "process_id", None)
    if not (isinstance(count, int) and isinstance(number, int) and getattr(made, "client", None) is not None):
        return []
    address = getattr(made, "coordinator_address", None)
    return [_fact("jax", "rank", number, number, count, "jax " + address if isinstance(address, str) else "")]


def _joined(env: Mapping[str, str], stem: str, port: str, address: str = "") -> str:
    host, number = env.get(stem + address, ""), env.get(stem.replace("_ADDR", "") + port, "")
    return "%s:%s" % (host, number) if host and number else ""


def _first(env: Mapping[str, str], names: Iterable[str]) -> str:
    return next((env[name] for name in names if env.get(name)), "")


def _number(fact: Fact, name: str) -> int:
    value = fact.get(name)
    return value if isinstance(value, int) else 0
