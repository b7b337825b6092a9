"""Connections of a process as the kernel knows them, on real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from stepscope.collector.samplers import sockets
from stepscope.collector.samplers.names import NameNumbers
from stepscope.collector.samplers.sockets import SocketSampler

MINE = frozenset({os.getpid()})
IN_NAMESPACE = """
import socket, sys
listening = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listening.getsockname())
receiver, _ = listening.accept()
sender.sendall(bytes(70_000))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_connection_of_the_process_has_a_row(address: str) -> None:
    """Each end has its bytes, its queue and its round trip, under the name of both ends."""
    names = NameNumbers()
    sampler = SocketSampler(100, names)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no such address here")
    with server:
        sender = socket.create_connection(server.getsockname()[:2])
        receiver, _ = server.accept()
        with sender, receiver:
            sender.sendall(bytes(50_000))
            assert len(receiver.recv(20_000, socket.MSG_WAITALL)) == 20_000
            if not sampler.look(1_100, MINE):
                pytest.skip("the kernel does not diagnose sockets here")
            here, there = sender.getsockname()[1], receiver.getsockname()[1]
    sampler.close()
    table, texts = sampler.rows.table(), names.by_number()
    rows = {texts[int(number)]: row for row, number in enumerate(table.connection)}
    shown = f"[{address}]" if ":" in address else address
    out, into = rows[f"tcp:{shown}:{here} {shown}:{there}"], rows[f"tcp:{shown}:{there} {shown}:{here}"]
    assert table.at_ns[out] == 1_000
    assert table.pid[out] == os.getpid()
    assert table.sent_bytes[out] == 50_000
    assert table.received_bytes[into] == 50_000
    assert table.unread_bytes[into] == 30_000
    assert 0 < table.min_rtt_ns[out] <= table.rtt_ns[out] * 100
    assert table.retrans_bytes[out] == 0


def test_connections_of_others_have_no_row() -> None:
    """Only the measured processes' own sockets count."""
    sampler = SocketSampler(0, NameNumbers())
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            sender.sendall(b"x")
            if not sampler.look(1, frozenset({1})):
                pytest.skip("the kernel does not diagnose sockets here")
    sampler.close()
    assert len(sampler.rows) == 0
    assert not sampler.carrying


def test_a_silent_network_is_not_looked_at() -> None:
    """Below the least traffic the kernel is not asked."""
    sampler = SocketSampler(0, NameNumbers())
    sampler.sample(1, MINE, sockets.MIN_BYTES - 1)
    assert not sampler.carrying
    assert len(sampler.rows) == 0


@pytest.mark.alone
def test_a_session_names_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later ones are counted."""
    monkeypatch.setattr(sockets, "MAX_NAMES", 1)
    sampler = SocketSampler(0, NameNumbers())
    sampler.look(0, frozenset())  # what this process has open already, a plugin of pytest's maybe, is nobody's
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            sender.sendall(b"x")
            if not sampler.look(1, MINE):
                pytest.skip("the kernel does not diagnose sockets here")
    sampler.close()
    assert len(sampler.rows) == 1
    assert sampler.unnamed == 1


def test_a_job_in_another_network_namespace() -> None:
    """Its connections are seen where that namespace may be entered; ours are not taken for its own."""
    command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" -c "$1"', sys.executable, IN_NAMESPACE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
        assert job.stdout is not None
        if job.stdout.readline() != b"ready\n":
            job.kill()
            pytest.skip("no network namespace can be made here")
        sampler = SocketSampler(0, NameNumbers())
        found = sampler.sample(1, frozenset({job.pid}), sockets.MIN_BYTES, namespace=job.pid)
        sampler.close()
        job.kill()
    assert job.pid in found
    assert sorted(sampler.rows.table().received_bytes.tolist()) == [0, 70_000]
