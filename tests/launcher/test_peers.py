"""What a trial wanted to reach is read, and attempts that nobody notes are counted by the kernel."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.launcher import offline
from stepscope.launcher import peers as contacts
from stepscope.wire import peers


def test_the_most_frequent_is_first_and_trackers_stand_apart(tmp_path: Path) -> None:
    """Peers by number of attempts, trackers by name; an unknown module is no tracker."""
    run = str(tmp_path)
    peers.arm(run)
    for name in ("a:1", "b:1", "b:1", "tracker:wandb", "tracker:mlflow", "tracker:other", "unix:/no/such/service"):
        peers.write(run, name)
    found = contacts.read(tmp_path, 7)
    assert [(peer.name, peer.attempts) for peer in found.peers] == [("b:1", 2), ("a:1", 1)]
    assert found.trackers == ("MLflow", "W&B")


def test_services_of_the_host_are_named_and_the_jobs_own_sockets_are_not(tmp_path: Path) -> None:
    """A Unix socket is a peer if a process of this host is bound to it."""
    run = str(tmp_path)
    peers.arm(run)
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as abstract:
        service.bind(f"{tmp_path}/service")
        abstract.bind(f"\0{tmp_path.name}-{os.getpid()}")
        names = [f"unix:{tmp_path}/service", f"unix:{tmp_path}/own", f"unix:@{tmp_path.name}-{os.getpid()}"]
        for name in names:
            peers.write(run, name)
        found = {peer.name for peer in contacts.read(tmp_path, 0).peers}
    assert found == {names[0], names[2]}


def test_attempts_of_other_code_are_counted(tmp_path: Path) -> None:
    """Where nothing is noted, the number of attempts is all that is known."""
    assert [(peer.name, peer.attempts) for peer in contacts.read(tmp_path, 3).peers] == [("", 3)]
    assert contacts.read(tmp_path, 0) == contacts.Contacts()


def test_unrouted_attempts_of_a_namespace() -> None:
    """The kernel counts connections and datagrams, over both protocols, that no route leads to."""
    code = """
import socket, sys
for family, kind, to in (
    (socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 80)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)),
):
    try:
        socket.socket(family, kind).connect(to)
    except OSError as error:
        pass
print("sent", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        ["unshare", "-rn", sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "sent\n":
            pytest.skip("no namespaces of networks")
        assert contacts.unrouted(process.pid) >= 2
        process.communicate()
    assert contacts.unrouted(process.pid) == 0


def test_every_tracker_that_is_told_is_set_offline() -> None:
    """Each module that is looked for has a variable of its own name."""
    variables = {*offline.TRACKERS, *offline.environment({}, network=True)}
    for module in peers.TRACKERS:
        stem = module.partition("_")[0].upper()
        assert any(name.startswith(stem) for name in variables), module
