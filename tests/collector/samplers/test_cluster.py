"""Tasks of a job's own cluster are told from strangers by what the kernel says of them, on real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.collector.samplers.cluster import ClusterTasks

CLUSTER = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
WAIT = "print('ready', flush=True); sys.stdin.read()"
MAPS = "import mmap, sys; file = open(sys.argv[1], 'rb'); held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); "
SERVES = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    "c, _ = s.accept(); " + WAIT
)
SPEAKS = MAPS + "import socket; c = socket.create_connection(('127.0.0.1', int(sys.argv[2]))); " + WAIT


class Processes:
    """Processes that live as long as the test."""

    def __init__(self) -> None:
        """None yet."""
        self.all: list[subprocess.Popen[str]] = []

    def start(self, code: str, *args: str, **variables: str) -> subprocess.Popen[str]:
        """A Python that runs ``code``."""
        environment = {**os.environ, **variables}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.all.append(process)
        return process

    def said(self, process: subprocess.Popen[str]) -> str:
        """The next line of a process."""
        assert process.stdout is not None
        return process.stdout.readline().strip()


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Starts processes, and ends them."""
    started = Processes()
    yield started
    for process in started.all:
        process.kill()
        process.communicate()


def config(index: int, cluster: object = CLUSTER) -> str:
    """A TF_CONFIG."""
    return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})


def test_the_same_cluster_in_the_environment(processes: Processes) -> None:
    """Processes with one cluster in TF_CONFIG are its tasks, whatever their index; other clusters and none are not."""
    idle = "import sys; " + WAIT
    mine, same, other, broken, plain = (
        processes.start(idle, **variables)
        for variables in (
            {"TF_CONFIG": config(0)},
            {"TF_CONFIG": config(1)},
            {"TF_CONFIG": config(1, {"worker": ["127.0.0.1:3"]})},
            {"TF_CONFIG": "no json"},
            {},
        )
    )
    for process in (mine, same, other, broken, plain):
        assert processes.said(process) == "ready"
    tasks, measured = ClusterTasks(), frozenset({mine.pid})
    assert [tasks.has(p.pid, measured) for p in (same, other, broken, plain)] == [True, False, False, False]


@pytest.mark.parametrize("name", ["libtensorflow_framework.so.2", "libother.so"])
def test_a_connection_within_the_cluster(processes: Processes, tmp_path: Path, name: str) -> None:
    """What has TensorFlow mapped and is connected with the job is a task of it; any other client of the job is not."""
    library = tmp_path / name
    library.write_bytes(b"x" * 4096)
    job = processes.start(SERVES)
    port = processes.said(job)
    peer = processes.start(SPEAKS, str(library), port)
    assert (processes.said(job), processes.said(peer)) == ("ready", "ready")
    stranger = processes.start(MAPS + WAIT, str(library))
    assert processes.said(stranger) == "ready"
    tasks, measured = ClusterTasks(), frozenset({job.pid})
    assert tasks.has(peer.pid, measured) is (name != "libother.so")
    assert not tasks.has(stranger.pid, measured)
    tasks.forget(peer.pid)
    assert not tasks.has(peer.pid, frozenset({stranger.pid}))


def test_it_is_asked_a_few_times(processes: Processes) -> None:
    """A task that connects after the first look is known at a later one, and nobody is asked at every look."""
    process = processes.start("import sys; " + WAIT, TF_CONFIG=config(1))
    assert processes.said(process) == "ready"
    late = processes.start("import sys; " + WAIT, TF_CONFIG=config(0))
    assert processes.said(late) == "ready"
    tasks = ClusterTasks()
    assert [tasks.has(process.pid, frozenset()) for _ in range(4)] == [False] * 4
    answers = [tasks.has(process.pid, frozenset({late.pid})) for _ in range(5)]
    assert answers == [False, False, False, True, True]
