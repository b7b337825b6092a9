"""Segments that the kernel sends again are seen one by one, by BPF, for the job's connections alone."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from tests.run.conftest import wait_for

from stepscope.collector.samplers.names import NameNumbers
from stepscope.collector.samplers.packets import PacketSampler


def connecting(port: int) -> socket.socket:
    """A connection that begins."""
    made = socket.socket()
    made.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        made.connect(("127.0.0.1", port))
    return made


def test_what_is_sent_again_is_seen() -> None:
    """A server that accepts none leaves the requests of others unanswered, and the kernel sends them again after a
    second; of those, only the job's are kept, at the time of our clock.
    """
    began_ns = time.monotonic_ns()
    names = NameNumbers()
    sampler = PacketSampler(began_ns, names)
    sampler.start()
    if sampler.problem:
        pytest.skip(sampler.problem)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as stack:
        port = server.getsockname()[1]
        every = [stack.enter_context(connecting(port)) for _ in range(3)]
        ends = [f"127.0.0.1:{one.getsockname()[1]} 127.0.0.1:{port}" for one in every]
        mine = {ends[-1]: 7}

        def seen() -> bool:
            sampler.sample(lambda text: mine.get(text, -1), 0)
            return len(sampler.rows) > 0

        wait_for(seen, "a request that was sent again")
    sampler.close()
    table = sampler.rows.table()
    assert set(table.connection.tolist()) == {7}
    assert set(table.reason.tolist()) == {-1}
    assert 0 < int(table.at_ns[0]) <= time.monotonic_ns() - began_ns


def test_without_a_start_there_is_nothing() -> None:
    """Nothing is loaded, and a look takes nothing."""
    sampler = PacketSampler(0, NameNumbers())
    sampler.sample(lambda _: 0, 0)
    sampler.close()
    assert not len(sampler.rows)
