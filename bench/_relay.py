"""A switch between network namespaces that delays, loses and jitters packets: what netem does, where there is none.

``_relay.py CONFIG``, by root. CONFIG is JSON: ``hosts``: [namespace, address] of each; ``paths``: {"FROM TO":
{"delay_s", "jitter_s", "loss"}} by number of the host, "*" for all others. Makes a TUN device ``tun0`` in each
namespace and passes packets between them; prints "ready". Packets of one path stay in order. What is written to the
FIFO ``orders`` beside CONFIG cuts a host off and mends that: ``cut 2``, ``mend 2``; ``lose 2 0.01`` loses a share of
the packets from and to it. Source: tuntap.rst of the kernel, setns(2).
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import ipaddress
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001
MTU = 4000
_TARGET = slice(16, 20)
"""Where an IPv4 header has the destination."""


def enter(namespace: str) -> None:
    """Move this thread into a network namespace."""
    fd = os.open(namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(fd)


def tun(name: str) -> int:
    """A TUN device in the namespace of this thread; packets without a header of ours."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN_NO_PI))
    return fd


def devices(hosts: list[tuple[str, str]]) -> list[int]:
    """The devices of all hosts, up and with addresses."""
    found = []
    for namespace, address in hosts:
        enter(f"/run/netns/{namespace}")
        found.append(tun("tun0"))
        for words in (
            ["ip", "addr", "add", f"{address}/24", "dev", "tun0"],
            ["ip", "link", "set", "tun0", "mtu", str(MTU), "txqueuelen", "1000", "up"],
            ["ip", "link", "set", "lo", "up"],
        ):
            subprocess.run(words, check=True)
    return found


def ordered(fd: int, cut: set[int], lossy: dict[int, float]) -> None:
    """Carry out what was written to the FIFO."""
    for line in os.read(fd, 4096).decode().splitlines():
        word, host, *more = line.split()
        if word == "lose":
            lossy[int(host)] = float(more[0])
        else:
            (cut.add if word == "cut" else cut.discard)(int(host))


def relay(
    fds: list[int], addresses: list[bytes], paths: dict[tuple[int, int], tuple[float, float, float]], orders: int
) -> None:
    """Pass packets on until the process is ended."""
    cut: set[int] = set()
    lossy: dict[int, float] = {}
    number = {address: index for index, address in enumerate(addresses)}
    place = {fd: index for index, fd in enumerate(fds)}
    waiting: list[tuple[float, int, int, bytes]] = []
    last: dict[tuple[int, int], float] = {}
    count = 0
    Path("/proc/self/timerslack_ns").write_text("1", "ascii")
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for fd in select.select([*fds, orders], [], [], left)[0]:  # epoll would wait whole milliseconds
            if fd == orders:
                ordered(fd, cut, lossy)
                continue
            for _ in range(64):
                try:
                    packet = os.read(fd, MTU + 64)
                except BlockingIOError:
                    break
                source, target = place[fd], number.get(packet[_TARGET])
                if target is None or source in cut or target in cut:
                    continue
                delay, jitter, loss = paths[source, target]
                loss = max(loss, lossy.get(source, 0.0), lossy.get(target, 0.0))
                if loss and random.random() < loss:
                    continue
                if not delay and not jitter:
                    _write(fds[target], packet)
                    continue
                due = time.monotonic() + delay + (random.expovariate(1 / jitter) if jitter else 0.0)
                due = last[source, target] = max(due, last.get((source, target), 0.0))
                count += 1
                heapq.heappush(waiting, (due, count, target, packet))
        _deliver(waiting, fds)


def _deliver(waiting: list[tuple[float, int, int, bytes]], fds: list[int]) -> None:
    """Write the packets that are due."""
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, _, target, packet = heapq.heappop(waiting)
        _write(fds[target], packet)


def _write(fd: int, packet: bytes) -> None:
    try:
        os.write(fd, packet)
    except OSError:  # the device's queue is full: lost, as on a wire
        return


def main() -> None:
    """Read the configuration, make the devices, relay."""
    config = json.loads(Path(sys.argv[1]).read_text())
    hosts = [(str(namespace), str(address)) for namespace, address in config["hosts"]]
    paths = {}
    for source in range(len(hosts)):
        for target in range(len(hosts)):
            found = config["paths"].get(f"{source} {target}") or config["paths"].get("*") or {}
            paths[source, target] = (found.get("delay_s", 0.0), found.get("jitter_s", 0.0), found.get("loss", 0.0))
    fds = devices(hosts)
    fifo = Path(sys.argv[1]).with_name("orders")
    os.mkfifo(fifo)
    orders = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)  # with a writer of its own, it is never at its end
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    relay(fds, [ipaddress.IPv4Address(address).packed for _, address in hosts], paths, orders)


if __name__ == "__main__":
    main()
