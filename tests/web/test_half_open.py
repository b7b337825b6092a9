"""Strangers on the same host who open connections and say nothing, or read nothing, keep nobody else from the page."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from .conftest import PATIENCE_S, TOKEN, answer, command, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recorded import Recorded

MOST = 10_000
LEFT = 200
"""Descriptors that this process needs for other things."""
BEGINNINGS = (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: a=")


class Serving:
    """A server that runs."""

    def __init__(self, base: str, process: subprocess.Popen[str]) -> None:
        """``base``: scheme, host and port."""
        self.base = base
        self.address = ("127.0.0.1", int(base.rpartition(":")[2]))
        self.process = process

    def asked(self, path: str) -> tuple[int, bytes]:
        """Status and body, for its owner."""
        return answer(self.base + path, Authorization=f"Bearer {TOKEN}")


@pytest.fixture
def serving(recorded: Recorded) -> Iterator[Serving]:
    """`stepscope view` of a recorded session."""
    process = subprocess.Popen(
        command("view", str(recorded.path), "--port", "0"),
        env=environment(STEPSCOPE_TOKEN=TOKEN),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    page = process.stdout.readline().strip()
    yield Serving(page.partition("/sessions/")[0], process)
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_half_open_connections_shut_nobody_out(serving: Serving, recorded: Recorded) -> None:
    """Ten thousand (or as many as may be opened here) that bring a part of a request, or nothing: the owner is answered
    among them, and after they have ended as well.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(MOST, soft - LEFT)
    with contextlib.ExitStack() as opened:
        for number in range(count):
            one = opened.enter_context(socket.create_connection(serving.address, timeout=PATIENCE_S))
            with contextlib.suppress(OSError):  # it was let go already
                one.sendall(BEGINNINGS[number % len(BEGINNINGS)])
            if number % (count // 4) == 0:
                assert serving.asked(recorded.url)[0] == 200, number
        assert serving.asked(recorded.url)[0] == 200
    assert serving.asked(recorded.url)[0] == 200


def test_slow_readers_shut_nobody_out(serving: Serving, recorded: Recorded) -> None:
    """Forty who have the token, ask for the report and read nothing of it: others are answered meanwhile."""
    head = f"GET {recorded.url}/report?format=html HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with contextlib.ExitStack() as opened:
        for _ in range(40):
            one = opened.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            one.connect(serving.address)
            one.sendall(head.encode())
        assert serving.asked(recorded.url)[0] == 200


def test_the_server_writes_no_token(serving: Serving, recorded: Recorded) -> None:
    """Whatever is asked, and in whatever way the token comes: what the server says after its address holds none."""
    secret = TOKEN[:-1] + "f"
    for path in (f"{recorded.url}?token={TOKEN}", f"/nothing?token={TOKEN}", f"/?token={secret}", f"/%?token={secret}"):
        answer(serving.base + path)
    with socket.create_connection(serving.address) as one:
        one.sendall(f"GET /?token={TOKEN} HTTP/9\r\n\r\n".encode())
        one.recv(1000)
    serving.process.send_signal(signal.SIGINT)
    said = "".join(serving.process.communicate(timeout=PATIENCE_S))
    assert TOKEN not in said
    assert secret not in said
