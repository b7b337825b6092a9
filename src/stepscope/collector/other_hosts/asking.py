"""Asks the collectors of other hosts for a joint capture, all at once: a thread of the collector of who leads.

A host that does not answer, or whose name takes long to look up, delays none of the others. It sends from free
ports, bound to the address that leads to each host; only answers that carry the key and a number of this request count.
"""

from __future__ import annotations

import contextlib
import ipaddress
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.clocks.datagrams import Datagrams
from stepscope.collector.other_hosts import message
from stepscope.collector.other_hosts.far_host import FarHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.clocks.datagrams import Address
    from stepscope.collector.other_hosts.message import JointRequest

LOOKUPS = 8
"""Names that are looked up at a time."""
MOST_AT_ONCE = 64
"""Datagrams that are sent before answers are read."""
LONGEST_NS = 300_000_000_000
"""Time after the moment at which it ends, whatever is not known."""
_PAUSE_MS = 20
"""Time between looks at what is to be sent."""
_BUFFER = 1 << 20
"""Bytes of answers that may wait: of some hundred hosts."""


class FarTask(Struct, frozen=True, kw_only=True):
    """A task on another host. Times are CLOCK_MONOTONIC of this one."""

    name: str
    host: str
    outcome: str
    """"" as long as it is not known; "done", "missed"."""
    text: str
    steps: int
    ends: tuple[int, ...]
    unsure_ns: int
    """How far its times may be off."""


class Asking:
    """The thread, from ``start`` until it is known what became of all tasks, or ``close``."""

    def __init__(
        self, hosts: Sequence[tuple[str, int]], key: bytes, domain: bytes, reach: bytes, wanted: JointRequest
    ) -> None:
        """Nothing is sent before ``start``.

        Args:
            hosts: names and ports of the hosts, this one among them or not.
            key: what all collectors of the job share.
            domain: clock domain of this host.
            reach: which tasks are reached from here; who reaches the same ones is not asked.
            wanted: the capture, with times of this host.
        """
        self._key = key
        self._reach = reach
        self._until_ns = wanted.begin_ns + LONGEST_NS
        now_ns = time.monotonic_ns()
        self._hosts = [
            FarHost(name=f"{host}:{port}", domain=domain, wanted=wanted, began_ns=now_ns) for host, port in hosts
        ]
        self._by_nonce = {one.nonce: one for one in self._hosts}
        self._ways: dict[str, list[tuple[Datagrams, Address]]] = {}
        """By host: how it is reached; a name may have several addresses, of which one answers."""
        self._own: dict[tuple[int, str], Datagrams] = {}
        self._names = [(one.name, *pair) for one, pair in zip(self._hosts, hosts, strict=True)]
        self._found: dict[str, list[tuple[int, Address]]] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stepscope-asks", daemon=True)
        self._problem = ""

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: no thread can be started.
        """
        self._thread.start()
        slow = [one for one in self._names if not self._numeric(*one)]
        for part in (slow[n::LOOKUPS] for n in range(min(LOOKUPS, len(slow)))):
            threading.Thread(target=self._look_up, args=(part,), name="stepscope-names", daemon=True).start()

    def tasks(self) -> list[FarTask]:
        """Tasks of the hosts that have taken the request."""
        with self._lock:
            return [_task(host, n) for host in self._hosts for n in range(len(host.tasks))]

    def silent(self) -> dict[str, str]:
        """Hosts that take no part, or have answered nothing yet, with the reason."""
        with self._lock:
            return {
                host.name: host.why or self._problem or "no answer yet"
                for host in self._hosts
                if not host.tasks and host.reach != self._reach and (host.phase != "over" or host.why)
            }

    def settled(self) -> bool:
        """Whether it is known what became of every host."""
        with self._lock:
            return all(host.phase == "over" for host in self._hosts) or not self._thread.is_alive()

    def close(self) -> None:
        """Ask no more; returns at once."""
        self._ending.set()

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ending.is_set() and time.monotonic_ns() < self._until_ns:
                self._reachable()
                if not self._send():
                    return
                self._receive()
        except (OSError, ValueError, LookupError) as error:
            self._problem = f"asking failed: {type(error).__name__}: {error}"
        finally:
            for own in self._own.values():
                own.close()

    def _send(self) -> bool:
        """Send what is due; return whether anything is left to ask."""
        now_ns = time.monotonic_ns()
        sent = going = 0
        with self._lock:
            for host in self._hosts:
                if host.phase == "over":
                    continue
                going += 1
                ways = self._ways.get(host.name)
                if (ways is None and now_ns < host.wanted.begin_ns) or sent >= MOST_AT_ONCE:
                    continue
                if not ways:
                    host.stop("its name is not known, or no route leads to it")
                    continue
                due = host.due(now_ns)
                if due is None:
                    continue
                own, address = ways[0]
                if due.kind == message.HELLO and not host.exchanges and len(ways) > 1:
                    ways.append(ways.pop(0))
                host.note_sent(time.monotonic_ns())  # before signing, as in answers
                own.send(message.encode(due, self._key), address)
                sent += 1
        return going > 0

    def _receive(self) -> None:
        """Take what comes within a moment."""
        ready = select.poll()
        by_number = {own.fileno(): own for own in self._own.values()}
        for number in by_number:
            ready.register(number, select.POLLIN)
        for number, _ in ready.poll(_PAUSE_MS):
            while (came := by_number[number].receive(message.SIZE + 1)) is not None:
                answer = message.decode(came[0], self._key)
                host = self._by_nonce.get(answer.nonce) if answer is not None else None
                if answer is None or host is None:
                    continue
                with self._lock:
                    self._take(host, answer, came[2])

    def _take(self, host: FarHost, answer: message.Message, arrived_ns: int) -> None:
        others = {
            one.reach for one in self._hosts if one is not host and one.reach and (one.phase != "over" or one.tasks)
        }
        host.take(answer, arrived_ns)
        if host.phase in ("greet", "request") and (host.reach == self._reach or host.reach in others):
            host.stop("")  # another name of this host, or of one that is asked

    def _reachable(self) -> None:
        """Bind to the addresses from which hosts are reached, once these are known."""
        while self._found:
            name, addresses = self._found.popitem()
            ways = []
            for family, address in addresses:
                own = self._from(family, address)
                if own is not None:
                    ways.append((own, address))
            self._ways[name] = ways

    def _from(self, family: int, address: Address) -> Datagrams | None:
        """The socket that is bound to our address towards another one; None: no route leads there."""
        with contextlib.ExitStack() as held:
            try:
                trial = held.enter_context(socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC))
                trial.connect(address)
                mine = trial.getsockname()
                known = self._own.get((family, str(mine[0])))
                if known is not None:
                    return known
                bound = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            except OSError:
                return None
        try:
            bound.bind((mine[0], 0, *mine[2:]))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        except OSError:
            bound.close()
            return None
        made = self._own[family, str(mine[0])] = Datagrams(bound)
        return made

    def _numeric(self, name: str, host: str, port: int) -> bool:
        """Whether an entry is an address, which needs no looking up."""
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        self._found[name] = _addresses(host, port)
        return True

    def _look_up(self, names: Sequence[tuple[str, str, int]]) -> None:
        for name, host, port in names:
            if self._ending.is_set():
                return
            self._found[name] = _addresses(host, port)


def _addresses(host: str, port: int) -> list[tuple[int, Address]]:
    try:
        return [(found[0], found[4]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)]
    except (OSError, UnicodeError):
        return []


def _task(host: FarHost, number: int) -> FarTask:
    task = host.tasks[number]
    gone = not task.outcome and host.phase == "over"
    ahead_ns, unsure_ns = host.ahead(task.ends[-1] if task.ends else host.heard_ns)
    return FarTask(
        name=task.name,
        host=host.name,
        outcome="missed" if gone else task.outcome,
        text=f"{host.name} {host.why}" if gone else task.text,
        steps=task.steps,
        ends=tuple(end - ahead_ns for end in task.ends) if task.outcome == "done" else (),
        unsure_ns=unsure_ns,
    )
