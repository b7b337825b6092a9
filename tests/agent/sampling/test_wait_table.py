"""What a blocked thread waits for: each kind of call, with what is behind it, as another thread finds it."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from stepscope.agent.sampling import syscalls, wait_table
from stepscope.agent.sampling.lock_watch import LockWatch
from stepscope.agent.sampling.wait_table import WaitTable
from stepscope.wire.kinds import LockState

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.agent.state import AgentState

Key = tuple[str, str, str, int, bool]


def found(
    state: AgentState, wait: Callable[[], object], wanted: Callable[[Key], bool], release: Callable[[], object]
) -> Key:
    """What looks at a thread find that waits, once that is what is wanted, or at the end of a deadline; it is released
    then.
    """
    watch, table = LockWatch(state), WaitTable(state)
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    last: Key = ("", "", "", 0, False)
    while time.monotonic() < deadline and not wanted(last):
        time.sleep(0.002)
        lock = watch.look(thread.ident or 0)
        number = table.id_of(lock, watch.text, time.monotonic_ns())
        last = next((key for key, known in table._ids.items() if known == number), last)
    watch.close()
    release()
    thread.join()
    return last


@pytest.fixture
def pair() -> object:
    """Both ends of a connection to a server of ours, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as accepted:
            yield client, accepted, port


def test_a_socket_has_a_peer_and_a_size(opened: AgentState, pair: tuple[socket.socket, socket.socket, int]) -> None:
    """A thread in recv waits for the other end, up to so many bytes; with a timeout it polls for the same end."""
    client, accepted, port = pair
    plain = found(opened, lambda: client.recv(300), lambda key: key[0] == "recvfrom", lambda: accepted.send(b"on"))
    assert plain == ("recvfrom", "socket", f"127.0.0.1:{port}", 300, False)
    accepted.settimeout(30)
    polled = found(opened, lambda: accepted.recv(300), lambda key: key[0] == "poll", lambda: client.send(b"on"))
    assert polled == ("poll", "socket", f"127.0.0.1:{client.getsockname()[1]}", 0, True)


def test_a_pipe_a_sleep_and_an_event(opened: AgentState) -> None:
    """A read from an empty pipe, a sleep, and a wait for an event with and without a timeout differ."""
    reader, writer = os.pipe()
    event = threading.Event()
    key = found(opened, lambda: os.read(reader, 4096), lambda key: key[0] == "read", lambda: os.close(writer))
    assert key == ("read", "pipe", "", 4096, False)
    os.close(reader)
    assert found(opened, lambda: time.sleep(1), lambda key: key[0] == "sleep", event.clear)[0] == "sleep"
    for timeout, timed in ((None, False), (30.0, True)):
        event.clear()
        key = found(opened, partial(event.wait, timeout), lambda key: key[0] == "futex", event.set)
        assert (key[0], key[4]) == ("futex", timed)


def test_a_file_lock_names_the_file(opened: AgentState, tmp_path: Path) -> None:
    """Who waits for a lock on a file waits for that file."""
    path = tmp_path / "shared.lock"
    with path.open("w") as held, path.open("w") as wanted:
        fcntl.flock(held, fcntl.LOCK_EX)
        key = found(
            opened,
            lambda: fcntl.flock(wanted, fcntl.LOCK_EX),
            lambda key: key[0] == "flock",
            lambda: fcntl.flock(held, fcntl.LOCK_UN),
        )
    assert key[:3] == ("flock", "file", str(path))


def test_a_child_has_a_name(opened: AgentState) -> None:
    """Who waits for a child process waits for its name."""
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    key = found(opened, child.wait, lambda key: key[0] in {"wait4", "waitid"} and bool(key[2]), child.stdin.close)
    assert key[1] == "process"
    assert key[2].startswith("python")


def test_what_runs_and_who_waits_for_the_interpreter_lock_is_said(opened: AgentState) -> None:
    """A look that finds the thread running, or waiting for the lock, needs no text; without one nothing is known."""
    table = WaitTable(opened)
    ids = [table.id_of(int(state), b"", 0) for state in (LockState.RUNS, LockState.WAITS, LockState.ELSEWHERE)]
    assert [key[0] for key in table._ids] == ["running", "gil"]
    assert ids == [1, 2, 0]
    assert table.id_of(int(LockState.ELSEWHERE), b"-1 0x7ffc 0x7f01\n", 0) == 3
    assert [key[0] for key in table._ids][-1] == "page-fault"


def test_the_table_is_bounded(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many waits sizes are left out, and after twice as many nothing new is named."""
    monkeypatch.setattr(wait_table, "MOST", 4)
    table = WaitTable(opened)
    number = next(n for n, name in syscalls.names(os.uname().machine).items() if name == "write")
    for size in range(1, 40):
        table.id_of(int(LockState.ELSEWHERE), b"%d 0xffff 0x0 %s 0x0 0x0 0x0 0x1 0x1" % (number, b"%#x" % size), 0)
    assert [key[3] for key in table._ids] == [1, 2, 3, 4, 0]


def test_both_processors_know_the_same_calls() -> None:
    """A call that is described has a number on both processors, unless it is one of the old ones of x86."""
    x86, arm = (set(syscalls.names(machine).values()) for machine in ("x86_64", "aarch64"))
    assert set(syscalls.SHAPES) <= x86
    assert set(syscalls.SHAPES) - arm == {"poll", "select", "accept", "epoll_wait"} - arm
    assert syscalls.names("riscv64") == {}
