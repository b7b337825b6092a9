"""The modes of distributed training that stepscope knows: how each is started, and what its report must say."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.model.report.cluster import Cluster
    from stepscope.model.report.report import Report

STEPS = 300
"""Steps of each program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One process of a job."""

    words: Sequence[str]
    """Arguments of the program, without the Python and the program."""
    env: dict[str, str] = field(default_factory=dict)
    serves: bool = False
    """Flag: it never ends by itself."""


class Check(Protocol):
    """Facts of the reports by words, and whether each holds."""

    def __call__(self, seen: Seen, *, slow: bool) -> dict[str, bool]:
        """``slow``: member 1 sleeps."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way to train on several devices or processes."""

    name: str
    title: str
    program: str = ""
    needs: tuple[str, ...] = ()
    """Packages, as pip names them; the versions of all are in the page."""
    tasks: Callable[[Sequence[str]], Sequence[Task]] | None = None
    """The tasks, by the words that make one slow."""
    check: Check | None = None
    """What must be true of the reports, by words."""
    slows: bool = True
    """Flag: one member can be made slow, and the others wait for it."""
    launcher: tuple[str, ...] = ()
    """Words before each rank's ``stepscope run``, found beside the Python; one process starts all."""
    tested: str = ""
    """The test in CI that runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one job left."""

    codes: Sequence[int]
    """Exit codes of the tasks that end by themselves."""
    alone: Sequence[Report]
    joint: Sequence[Report]
    """Joint reports: one is right."""
    text: str
    """What all tasks printed."""

    @property
    def cluster(self) -> Cluster | None:
        """Members of the joint report."""
        return self.joint[0].cluster if self.joint else None

    @property
    def named(self) -> list[str]:
        """Titles of what says that one member holds the others back."""
        return [one.title for report in self.joint for one in report.findings if one.code == "DST001"]


def places(count: int) -> list[str]:
    """Addresses with free ports."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in held]
    for listener in held:
        listener.close()
    return found


def _workers(slow: Sequence[str], **env: str) -> list[Task]:
    """Two workers of TF_CONFIG."""
    cluster = {"worker": places(2)}
    configs = [json.dumps({"cluster": cluster, "task": {"type": "worker", "index": n}}) for n in range(2)]
    return [Task(words=slow, env={"TF_CONFIG": config, **env}) for config in configs]


def _session(how: str, slow: Sequence[str]) -> list[Task]:
    ps, *workers = places(3)
    cluster = json.dumps({"ps": [ps], "worker": workers})
    tasks = [Task(words=("worker", str(number), cluster, how, *slow)) for number in range(2)]
    return [*tasks, Task(words=("ps", "0", cluster, how), serves=True)]


def _ranks(slow: Sequence[str]) -> list[Task]:
    (address,) = places(1)
    return [Task(words=(address, "2", str(number), *slow)) for number in range(2)]


def _members(
    launcher: str, names: Sequence[str], *, batch: float | None = None, waits: bool = True, traced: bool = True
) -> Check:
    """What is true of a job with these members; ``batch``: samples of a step of all, None: not known to stepscope."""

    def check(seen: Seen, *, slow: bool) -> dict[str, bool]:
        cluster = seen.cluster
        rows = cluster.members if cluster is not None else ()
        trains = [row for row in rows if row.rank is not None]
        facts = {
            "exit code 0": all(code == 0 for code in seen.codes),
            "one joint session": len(seen.joint) == 1,
            f"launcher {launcher}": cluster is not None and cluster.launcher == launcher,
            f"members {', '.join(names)}": [row.name for row in rows] == list(names),
            "all are there": cluster is not None and not cluster.missing,
            "no task is said to hang": not any(one.code == "HNG001" for r in seen.joint for one in r.findings),
        }
        if waits:
            least = STEPS - 1  # marked steps: the last one has no end
            facts[f"{STEPS} steps each"] = bool(trains) and all(least <= row.steps <= STEPS for row in trains)
            facts["steps end together"] = bool(trains) and all(row.synchronous for row in trains)
        else:
            facts[f"{2 * STEPS} steps of all"] = 0.98 < sum(row.steps for row in trains) / (2 * STEPS) < 1.02
            facts["no waits are claimed"] = cluster is not None and cluster.common_steps == 0
        if batch is not None:
            facts[f"global batch {batch:g}"] = cluster is not None and cluster.global_batch == batch
            facts["samples/s of all"] = cluster is not None and bool(cluster.samples_per_s)
        if traced:
            facts["communication apart from compute"] = all(
                report.traced is not None and report.traced.communication is not None
                for report in seen.alone
                if report.session.steps
            )
        if waits:
            slowest = names[1]
            alone = len(seen.named) == 1 and seen.named[0].startswith(f"{slowest} holds")
            facts[f"{slowest} is named" if slow else "none is named"] = alone if slow else not seen.named
        return facts

    return check


def _fails(seen: Seen, *, slow: bool) -> dict[str, bool]:
    del slow
    return {
        "it fails as without stepscope": all(code == 1 for code in seen.codes) and "PerReplica" in seen.text,
        "each report has the exit code": [report.session.exit_code for report in seen.alone] == [1, 1],
        "the joint one says who failed": any(one.code == "DX194" for r in seen.joint for one in r.diagnostics),
    }


def _mirrored(seen: Seen, *, slow: bool) -> dict[str, bool]:
    (report,) = seen.alone
    named = [one for one in report.findings if one.code == "DST011"]
    right = len(named) == 1 and "replica on CPU:1" in named[0].title and bool(named[0].where)
    rate = report.session.throughput
    batch = (rate.samples_per_s or 0) / (rate.steps_per_s or 1)
    return {
        "exit code 0": seen.codes == [0],
        "no cluster": report.cluster is None,
        f"{2 * STEPS} steps (2 %)": abs(report.session.steps / (2 * STEPS) - 1) < 0.02,
        "samples of both replicas": abs(batch - 64) < 1,
        "share of gradient sharing": report.traced is not None and report.traced.communication is not None,
        "the replica on CPU:1 is named, with its line" if slow else "none is named": right if slow else not named,
    }


def _service(seen: Seen, *, slow: bool) -> dict[str, bool]:
    del slow
    (report,) = seen.alone
    input_wait = next((one.ratio for one in report.anatomy if one.component == "input-wait"), 0.0)
    titles = [one.title for one in report.findings if one.code == "INP001"]
    return {
        "exit code 0": seen.codes == [0],
        f"{STEPS} steps": report.session.steps == STEPS,
        "one session of five processes": report.session.processes == 5,
        "steps wait for input": input_wait > 0.5,
        "the service is named": any("tf.data service" in title for title in titles),
    }


KERAS = ("tensorflow", "tf_keras")
MODES = (
    Mode(
        name="mwms-loop",
        title="MultiWorkerMirroredStrategy, own loop",
        program="tests/run/programs/members.py",
        tested="tests/run/test_members.py: roles, global batch, the slow worker, its line; captures of the same steps",
    ),
    Mode(
        name="mwms-tf-keras",
        title="MultiWorkerMirroredStrategy, tf_keras `fit`",
        program="fit_worker.py",
        needs=KERAS,
        tasks=lambda slow: _workers(slow, TF_USE_LEGACY_KERAS="1"),
        check=_members("TF_CONFIG", ("worker 0", "worker 1"), batch=64),
    ),
    Mode(
        name="mwms-keras-2",
        title="MultiWorkerMirroredStrategy, Keras 2.15 `fit`",
        program="fit_worker.py",
        needs=("tensorflow<2.16", "keras"),
        tasks=_workers,
        check=_members("TF_CONFIG", ("worker 0", "worker 1"), batch=64),
    ),
    Mode(
        name="mwms-keras-3",
        title="MultiWorkerMirroredStrategy, Keras 3 `fit`",
        program="fit_worker.py",
        needs=("tensorflow>=2.16", "keras"),
        tasks=_workers,
        check=_fails,
        slows=False,
    ),
    Mode(
        name="mirrored-fit",
        title="MirroredStrategy on logical devices, `fit`",
        program="tests/run/programs/mirrored.py",
        tested="tests/run/test_strategies.py: no cluster, samples of all replicas",
    ),
    Mode(
        name="mirrored-loop",
        title="MirroredStrategy on logical devices, own loop",
        program="mirrored_replicas.py",
        needs=("tensorflow",),
        tasks=lambda slow: [Task(words=slow)],
        check=_mirrored,
    ),
    Mode(
        name="coordinator",
        title="ParameterServerStrategy, ClusterCoordinator",
        program="tests/run/programs/coordinator.py",
        tested="tests/run/test_strategies.py: roles, who makes the steps, no blame",
    ),
    Mode(
        name="session-async",
        title="MonitoredTrainingSession, ps and two workers, asynchronous",
        program="session_task.py",
        needs=("tensorflow",),
        tasks=lambda slow: _session("async", slow),
        check=_members("program", ("worker 0", "worker 1", "ps 0"), waits=False),
        slows=False,
    ),
    Mode(
        name="session-sync",
        title="MonitoredTrainingSession, SyncReplicasOptimizer",
        program="session_task.py",
        needs=("tensorflow",),
        tasks=lambda slow: _session("sync", slow),
        check=_members("program", ("worker 0", "worker 1", "ps 0"), batch=64),
    ),
    Mode(
        name="data-service",
        title="tf.data service, dispatcher and two workers",
        program="data_service.py",
        needs=("tensorflow",),
        tasks=lambda slow: [Task(words=slow)],
        check=_service,
        slows=False,
    ),
    Mode(
        name="horovod-loop",
        title="Horovod (gloo), own loop",
        program="horovod_rank.py",
        needs=("tensorflow", "horovod"),
        tasks=lambda slow: [Task(words=("loop", *slow))],
        check=_members("horovod", ("rank 0", "rank 1"), batch=64, traced=False),
        launcher=("horovodrun", "--gloo", "-np", "2", "-H", "localhost:2"),
    ),
    Mode(
        name="horovod-fit",
        title="Horovod (gloo), Keras 2.15 `fit`",
        program="horovod_rank.py",
        needs=("tensorflow", "horovod"),
        tasks=lambda slow: [Task(words=("fit", *slow))],
        check=_members("horovod", ("rank 0", "rank 1"), batch=64, traced=False),
        launcher=("horovodrun", "--gloo", "-np", "2", "-H", "localhost:2"),
    ),
    Mode(
        name="jax",
        title="jax.distributed, two processes on CPUs, marked steps",
        program="jax_rank.py",
        needs=("jax",),
        tasks=_ranks,
        check=_members("jax", ("rank 0", "rank 1"), traced=False),
    ),
)
