"""The samplers of a recording, run together."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from stepscope.collector.recording.sampling import FINE_NS, Sampling
from stepscope.collector.samplers import sockets
from stepscope.model.session.session import Peers, Session
from stepscope.store.writer import SessionWriter

MINE = frozenset({os.getpid()})


def looks(sampling: Sampling) -> int:
    """Rows of connections so far."""
    return sum(len(table) for table in sampling.tables()["tcp"])


@pytest.mark.alone
def test_connections_are_looked_at_finely_while_a_capture_records(tmp_path: Path) -> None:
    """Ten times a second instead of once, if the job has connections that carry data; else as ever."""
    sampling = Sampling(SessionWriter(tmp_path), 0)
    now = time.monotonic_ns()
    sampling.sample(now, None, frozenset())  # what this process has open already is nobody's
    sampling.connections(now, finely=True)
    assert sampling.pause_s(1.0) == 1.0  # nothing is carried
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
        with sender, receiver:
            for _ in range(4):
                sender.sendall(bytes(sockets.MIN_BYTES))
                assert len(receiver.recv(sockets.MIN_BYTES, socket.MSG_WAITALL)) == sockets.MIN_BYTES
            sampling.sample(now + 1_000_000_000, None, MINE)
            if not looks(sampling):
                pytest.skip("the kernel does not diagnose sockets here")
            before = looks(sampling)
            sender.sendall(b"x")
            sampling.connections(now + 1_000_000_000 + FINE_NS, finely=False)
            assert (looks(sampling), sampling.pause_s(1.0)) == (before, 1.0)
            sampling.connections(now + 1_000_000_000 + FINE_NS, finely=True)
            assert looks(sampling) > before
            assert sampling.pause_s(1.0) == FINE_NS / 1e9
            before = looks(sampling)
            sampling.connections(now + 1_000_000_000 + FINE_NS + FINE_NS // 2, finely=True)
            assert looks(sampling) == before
    assert sampling.close() == []


def test_every_table_has_a_place_in_a_session(tmp_path: Path) -> None:
    """The live analysis makes a session of them by their names."""
    sampling = Sampling(SessionWriter(tmp_path), 0)
    sampling.sample(time.monotonic_ns(), None, MINE)
    places = {name for cls in (Session, Peers) for name in cls.__struct_fields__}
    assert sampling.tables().keys() <= places
    assert sampling.close() == []
