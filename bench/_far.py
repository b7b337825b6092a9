"""A server in a separate network namespace, behind a pair of interfaces whose rates a queueing discipline limits."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NAMESPACE, NEAR, FAR = "stepscope-far", "stepscope0", "stepscope1"
NEAR_IP, FAR_IP, PORT = "10.211.7.1", "10.211.7.2", "7711"
ADDRESS = f"{FAR_IP}:{PORT}"


def problem() -> str:
    """Why there can be no such server here; "" if there can."""
    if os.geteuid():
        return "a network namespace needs root"
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        return f"no {missing[0]}: install iproute2"
    done = subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True, text=True, check=False)
    remove()
    return done.stderr.strip() if done.returncode and "exists" not in done.stderr else ""


@contextmanager
def served(server: Sequence[str], *, down: float = 0, up: float = 0, queue_ms: int = 50) -> Iterator[str]:
    """Run a server in the namespace; its address and port are added to the command. Yields ``HOST:PORT``.

    Args:
        server: its command.
        down: Mbit/s from it; 0: no limit.
        up: Mbit/s to it; 0: no limit.
        queue_ms: how long a byte may wait on the way.
    """
    remove()
    _quiet("ip", "netns", "add", NAMESPACE)
    process = None
    try:
        _quiet("ip", "link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", NAMESPACE)
        _quiet("ip", "addr", "add", f"{NEAR_IP}/30", "dev", NEAR)
        _quiet("ip", "link", "set", NEAR, "up")
        inside = ("ip", "netns", "exec", NAMESPACE)
        _quiet(*inside, "ip", "addr", "add", f"{FAR_IP}/30", "dev", FAR)
        _quiet(*inside, "ip", "link", "set", FAR, "up")
        for rate, command, device in ((down, inside, FAR), (up, (), NEAR)):
            if rate:
                shape = ("tbf", "rate", f"{rate:g}mbit", "burst", "32kb", "latency", f"{queue_ms}ms")
                _quiet(*command, "tc", "qdisc", "add", "dev", device, "root", *shape)
        process = subprocess.Popen([*inside, *server, FAR_IP, PORT], stdout=subprocess.PIPE, text=True)
        if process.stdout is not None:
            process.stdout.readline()  # the server says when it is ready
        time.sleep(0.2)
        yield ADDRESS
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        remove()


def remove() -> None:
    """Remove what a run left behind, if anything."""
    for command in (("ip", "link", "del", NEAR), ("ip", "netns", "del", NAMESPACE)):
        subprocess.run(command, check=False, capture_output=True)


def _quiet(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
