"""What threads of a real program wait for, seen from outside."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepscope.native.waiting import look, work_meter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.hang import HangThread

PROGRAM = """
import os, select, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
lock = threading.Lock()
lock.acquire()
def receives(): client.recv(1)
def polls():
    events = select.poll()
    events.register(client, select.POLLIN)
    events.poll()
def accepts(): server.accept()
def served(): peer.recv(1)
def reads(): os.read(os.pipe()[0], 1)
def sleeps(): time.sleep(600)
def locks(): lock.acquire()
for target in (receives, polls, accepts, served, reads, sleeps, locks):
    threading.Thread(target=target, daemon=True).start()
if os.fork() == 0:
    os.kill(os.getpid(), 9)
print(server.getsockname()[1], flush=True)
while True:
    sum(range(1000))
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Pid and port of the program, whose child has been killed."""
    script = tmp_path / "waits.py"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
        process.kill()


def by_function(pid: int) -> dict[str, HangThread]:
    """Threads by the user's function that they are in, once all of them wait."""
    while True:
        threads, problem = look.at_threads([pid])
        assert problem == ""
        own = {next((f.function for f in t.frames if f.own), ""): t for t in threads}
        waiting = [
            own[name].call
            for name in ("receives", "polls", "accepts", "served", "reads", "sleeps", "locks")
            if name in own
        ]
        if len(waiting) == 7 and all(waiting):
            return own


def test_threads_and_what_they_wait_for(program: tuple[int, str]) -> None:
    """The call, and the peer of the connection, the pipe or the listening socket behind it."""
    pid, port = program
    found = by_function(pid)
    peer = f"TCP 127.0.0.1:{port}"
    assert (found["receives"].call, found["receives"].on) == ("recvfrom", peer)
    assert found["polls"].on == peer
    assert found["accepts"].on == f"listening {peer}"
    assert found["served"].on.startswith("served TCP 127.0.0.1:")
    assert (found["reads"].call, found["reads"].on) == ("read", "pipe")
    assert "nanosleep" in found["sleeps"].call
    assert (found["locks"].call, found["locks"].on) == ("futex", "")
    assert found["<module>"].call == ""


def test_a_process_that_computes_and_one_that_was_killed(program: tuple[int, str]) -> None:
    """CPU time of threads is read; a dead child whose parent has not asked for it says how it ended."""
    pid, _ = program
    meter = work_meter.WorkMeter()
    assert meter.cores(0, [pid]) is None
    cores, at = 0.0, 1
    while not cores:
        cores, at = meter.cores(at, [pid]) or 0.0, at + 1
    (child,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split())
    while work_meter.state_of(child) != "Z":
        time.sleep(0.01)
    assert work_meter.how_it_ended(child) == "killed by SIGKILL"
    assert work_meter.how_it_ended(pid) == ""
