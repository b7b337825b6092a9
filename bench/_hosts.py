"""Hosts on one machine: network namespaces behind a relay, time namespaces with clocks that differ. By root.

CLOCK_REALTIME stays common, so the truth about CLOCK_MONOTONIC is known to the nanosecond: the offset that a time
namespace was given.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RELAY = Path(__file__).with_name("_relay.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One of the hosts."""

    index: int
    namespace: str
    address: str
    skew_s: int
    """Its CLOCK_MONOTONIC minus ours."""

    def command(self, words: Sequence[str]) -> list[str]:
        """A command line that runs there."""
        clock = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(self.skew_s), "--boottime", "0"]
        inside = [*clock, *words] if self.skew_s else list(words)
        return ["nsenter", f"--net=/run/netns/{self.namespace}", *inside]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWay:
    """A path, one way."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What lies between the hosts."""

    paths: Mapping[str, OneWay] = field(default_factory=dict)
    """By "FROM TO", numbers of hosts; "*": all others."""
    rates: Mapping[int, str] = field(default_factory=dict)
    """Rate limit of what a host sends, as tc writes it: "20mbit"."""


def why_not() -> str:
    """Why hosts cannot be made here; empty if they can."""
    if os.geteuid() != 0:
        return "needs root: network and time namespaces"
    missing = [name for name in ("ip", "tc", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (iproute2, util-linux)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    for words in (["unshare", "--net", "true"], ["unshare", "--time", "--fork", "--monotonic", "1", "true"]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{' '.join(words)}: {done.stderr.strip()}"
    return ""


@contextmanager
def hosts(count: int, network: Network, folder: Path, skew_s: int = 100) -> Iterator[list[Host]]:
    """Some hosts on one network; all of it is removed at the end."""
    made = [
        Host(index=n, namespace=f"ssb{os.getpid()}-{n}", address=f"10.99.0.{n + 1}", skew_s=n * skew_s)
        for n in range(count)
    ]
    relay: subprocess.Popen[str] | None = None
    try:
        for host in made:
            subprocess.run(["ip", "netns", "add", host.namespace], check=True)
        relay = _relay(made, network, folder)
        for index, rate in network.rates.items():
            limit = ["tbf", "rate", rate, "burst", "16kb", "latency", "100ms"]
            add = ["tc", "qdisc", "add", "dev", "tun0", "root", *limit]
            subprocess.run(["ip", "netns", "exec", made[index].namespace, *add], check=True)
        yield made
    finally:
        if relay is not None:
            relay.kill()
            relay.wait()
        for host in made:
            subprocess.run(["ip", "netns", "del", host.namespace], check=False, stderr=subprocess.DEVNULL)


def order(folder: Path, word: str, host: int) -> None:
    """``cut`` a host off, or ``mend`` that: the relay with this folder drops all packets from and to it."""
    with (folder / "orders").open("w") as fifo:
        fifo.write(f"{word} {host}\n")


def lose(folder: Path, host: int, share: float) -> None:
    """Let the relay with this folder lose a share of the packets from and to a host, from now on."""
    with (folder / "orders").open("w") as fifo:
        fifo.write(f"lose {host} {share}\n")


def _relay(made: list[Host], network: Network, folder: Path) -> subprocess.Popen[str]:
    config = {
        "hosts": [[host.namespace, host.address] for host in made],
        "paths": {
            key: {"delay_s": path.delay_s, "jitter_s": path.jitter_s, "loss": path.loss}
            for key, path in network.paths.items()
        },
    }
    file = folder / "relay.json"
    file.write_text(json.dumps(config))
    relay = subprocess.Popen([sys.executable, str(RELAY), str(file)], stdout=subprocess.PIPE, text=True)
    if relay.stdout is None or relay.stdout.readline() != "ready\n":
        relay.kill()
        raise RuntimeError("the relay did not start")
    return relay


def all_ended(jobs: list[subprocess.Popen[bytes]], timeout_s: float) -> bool:
    """Wait for jobs; those that take longer are killed."""
    until = time.monotonic() + timeout_s
    for job in jobs:
        try:
            job.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
    return all(job.returncode == 0 for job in jobs)
