"""Which peers a trial wanted to reach, and how often something else in it tried to leave the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.wire import peers

if TYPE_CHECKING:
    from pathlib import Path

_UNIX = "unix:"
_PATH = 7
"""Column of /proc/net/unix."""
_NO_ROUTES = ("OutNoRoutes", "Ip6OutNoRoutes")
"""Counters of the kernel: what was to be sent, and to where no route leads. Source: RFC 4293, ipSystemStats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What a job wants to reach."""

    name: str
    """``HOST:PORT``, ``unix:PATH`` for a service of this host; "": unknown, because it is not Python that tries."""
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacts:
    """What the processes of a trial have to do with the world outside."""

    peers: tuple[Peer, ...] = ()
    """The most frequent first."""
    trackers: tuple[str, ...] = ()
    """Trackers that they import."""


def read(run: Path, unrouted: int) -> Contacts:
    """What is noted in a run; ``unrouted``: see the function."""
    noted = peers.read(str(run))
    trackers = {peers.TRACKERS.get(name[len(peers.TRACKER) :], "") for name in noted if name.startswith(peers.TRACKER)}
    found = _peers({name: attempts for name, attempts in noted.items() if not name.startswith(peers.TRACKER)}, unrouted)
    return Contacts(peers=found, trackers=tuple(sorted(trackers - {""})))


def _peers(noted: dict[str, int], unrouted: int) -> tuple[Peer, ...]:
    services = _services()
    noted = {
        name: attempts
        for name, attempts in noted.items()
        if not name.startswith(_UNIX) or name[len(_UNIX) :] in services
    }
    if unrouted and not any(not name.startswith(_UNIX) for name in noted):
        noted[""] = unrouted
    ordered = sorted(noted.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Peer(name=name, attempts=attempts) for name, attempts in ordered)


def unrouted(pid: int) -> int:
    """How often processes in the network namespace of ``pid`` tried to send to where no route leads; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/net/snmp", encoding="ascii") as file:
            names, values = [line.split() for line in file if line.startswith("Ip:")]
        with open(f"/proc/{pid}/net/snmp6", encoding="ascii") as file:
            found = dict(line.split() for line in file)
    except (OSError, ValueError):  # it has ended, or the kernel has no IPv6
        return 0
    counters = {**dict(zip(names, values, strict=True)), **found}
    return sum(int(counters.get(name, 0)) for name in _NO_ROUTES)


def _services() -> frozenset[str]:
    """The Unix sockets of this host's processes; abstract ones begin with "@"."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(maxsplit=_PATH) for line in file]
    except OSError:
        return frozenset()
    return frozenset(fields[_PATH] for fields in lines if len(fields) > _PATH)
