"""What launchers' variables say about a process, and what the agent makes of them."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from stepscope.agent import membership
from stepscope.model.log.cluster import MemberSeen
from stepscope.model.log.events import AgentDiagnostic

from .conftest import Armed

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
HOROVOD = {
    "HOROVOD_RANK": "1",
    "HOROVOD_SIZE": "3",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "h",
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "9",
}
OPENMPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_NAMESPACE": "prte@1"}
TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "m", "MASTER_PORT": "29500"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
JAX = {"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "2", "JAX_COORDINATOR_ADDRESS": "k:1"}


def tf_config(job: str, index: int) -> dict[str, str]:
    """The variable as Kubeflow and hand-made launchers set it."""
    return {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": index}})}


def first(**env: str) -> dict[str, object]:
    """The fact that counts."""
    return membership.in_order(membership.of_environment(env))[0]


@pytest.mark.parametrize(
    ("env", "launcher", "rank", "size"),
    [
        (HOROVOD, "horovod", 1, 3),
        (OPENMPI, "openmpi", 2, 3),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "pmi", 1, 2),
        (TORCHRUN, "torchrun", 0, 2),
        (SLURM, "slurm", 3, 4),
        (JAX, "jax", 1, 2),
        (tf_config("worker", 1), "TF_CONFIG", 2, 3),
        (tf_config("chief", 0), "TF_CONFIG", 0, 3),
        (tf_config("ps", 0), "TF_CONFIG", -1, 3),
    ],
)
def test_each_launcher(env: dict[str, str], launcher: str, rank: int, size: int) -> None:
    """Launcher, rank and size of each; a parameter server has no rank among those that train."""
    fact = first(**env)
    assert (fact["launcher"], fact["rank"], fact["size"]) == (launcher, rank, size)


def test_the_most_specific_counts_and_all_are_kept() -> None:
    """Horovod before MPI, TF_CONFIG, torchrun and Slurm, whatever the order of the variables."""
    found = membership.in_order(
        membership.of_environment({**SLURM, **TORCHRUN, **tf_config("worker", 0), **OPENMPI, **HOROVOD})
    )
    assert [fact["launcher"] for fact in found] == ["horovod", "openmpi", "TF_CONFIG", "torchrun", "slurm"]


def test_an_elastic_job_keeps_its_id() -> None:
    """Its workers get another port when they are started again; a job without a run id is known by its address."""
    run = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "one"}
    assert first(**run)["job_id"] == first(**{**run, "MASTER_PORT": "29999"})["job_id"]
    plain = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}
    assert first(**plain)["job_id"] != first(**{**plain, "MASTER_PORT": "29999"})["job_id"]


def test_contradictions() -> None:
    """Another rank or size is one; a launcher of a single task says nothing about the job's."""
    horovod = first(**HOROVOD)
    assert "openmpi says rank 2 of 3: horovod counts" in membership.contradiction([horovod, first(**OPENMPI)])
    alone = first(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="1")
    assert membership.contradiction([horovod, alone]) == ""
    assert membership.in_order([alone, horovod])[0] == horovod


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": "[]"},
        {"TF_CONFIG": '{"cluster": 3, "task": {"type": "worker", "index": 0}}'},
        {"RANK": "0", "WORLD_SIZE": "2"},  # may mean anything
        {**SLURM, "SLURM_STEP_ID": "4294967291"},  # the batch script itself
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"},
        {"HOROVOD_RANK": "3", "HOROVOD_SIZE": "3"},
        {"HOROVOD_RANK": "x", "HOROVOD_SIZE": "3"},
    ],
)
def test_what_says_nothing(env: dict[str, str]) -> None:
    """Damaged and ambiguous variables say nothing."""
    assert membership.of_environment(env) == []


def test_the_tasks_of_a_job_share_their_identity() -> None:
    """Tasks of one cluster have one identity, however it is written; another cluster has another."""
    ids = {first(**tf_config(job, 0))["job_id"] for job in CLUSTER}
    sparse = {job: {str(i): address for i, address in enumerate(tasks)} for job, tasks in CLUSTER.items()}
    config = json.dumps({"cluster": sparse, "task": {"type": "worker", "index": 0}})
    told = membership.of_cluster("program", membership.cluster_of(CLUSTER), "worker", 0)
    assert {*ids, first(TF_CONFIG=config)["job_id"], told["job_id"]} == ids
    assert len(ids) == 1
    other = json.dumps({"cluster": {"worker": ["b:2"]}, "task": {"type": "worker", "index": 0}})
    assert first(TF_CONFIG=other)["job_id"] not in ids


def test_the_line_of_a_process(armed: Armed, tmp_path: Path) -> None:
    """What the launcher set stands in the log, with the clock domain and the contradiction."""
    fake = tmp_path / "onnxruntime"
    fake.mkdir()
    (fake / "__init__.py").write_text("__version__ = '1'\nclass InferenceSession: pass\n")
    program = """
        import onnxruntime, time, stepscope
        from pathlib import Path
        import os
        logs = Path(os.environ["STEPSCOPE_RUN"]) / "procs"
        end = time.monotonic() + 30
        while time.monotonic() < end and not any(b'"member"' in f.read_bytes() for f in logs.rglob("log-*")):
            stepscope.step()
    """
    done = armed.start(textwrap.dedent(program), env={"PYTHONPATH": str(tmp_path), **HOROVOD, **OPENMPI})
    assert done.returncode == 0, done.stderr
    (process,) = armed.processes()
    (line,) = process.of(MemberSeen)
    assert (line.launcher, line.rank, line.size, line.tasks) == ("horovod", 1, 3, 3)
    assert [fact.launcher for fact in line.found] == ["horovod", "openmpi"]
    assert line.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert line.time_namespace.startswith("time:[")
    assert [d.code for d in process.of(AgentDiagnostic)] == ["DX917"]


def test_a_program_that_initialises_jax(armed: Armed, tmp_path: Path) -> None:
    """It says which process it is after the import, and no thread of ours looks later: its own call tells."""
    (tmp_path / "jax" / "_src").mkdir(parents=True)
    for name in ("jax/_src/__init__.py", "jax/__init__.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "jax" / "_src" / "distributed.py").write_text(
        textwrap.dedent("""
        class State:
            client, num_processes, process_id, coordinator_address = None, 1, 0, None
            def initialize(self, coordinator_address=None, num_processes=None, process_id=None):
                self.client, self.num_processes, self.process_id = object(), num_processes, process_id
                self.coordinator_address = coordinator_address
        global_state = State()
        """)
    )
    program = """
        import jax._src.distributed as distributed
        distributed.global_state.initialize("k:1", 2, 1)
    """
    done = armed.start(textwrap.dedent(program), env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    (process,) = armed.processes()
    (line,) = process.of(MemberSeen)
    assert (line.launcher, line.rank, line.size, bool(line.job_id)) == ("jax", 1, 2, True)
