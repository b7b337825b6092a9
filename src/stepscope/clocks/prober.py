"""Answers exchanges of other hosts, and makes bursts of them: a thread of the collector.

One collector of a host does it for all: the one that has the host's address. Bursts go to the reference, which is the
first host named, and to some of the others: one exchange after the other, because those that overtake each other in a
queue would measure the queue.
"""

from __future__ import annotations

import hashlib
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from stepscope.clocks import datagrams, packet

if TYPE_CHECKING:
    from collections.abc import Callable

BURST = 32
"""Exchanges of a burst. Source: best of 32 is within 45 us at a round trip of 1 ms, of 64 no better (benchmarks)."""
OTHERS = 4
"""Hosts other than the reference that bursts go to: enough for asymmetries of paths to average out."""
FIRST_S = (0.5, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
"""Times of the first bursts, in seconds after the start: a short job has a drift too."""
EVERY_S = 30.0
_ANSWER_S = 0.25
"""Time to wait for an answer."""
_BURST_S = 1.5
"""Time that a burst may take: the drift within it widens its bounds."""
_LAST_S = 0.4
"""The same for the last burst: the report waits for it."""
_SILENT = 4
"""Exchanges in a row without an answer after which a burst is given up."""
_PAUSE_S = 0.001
_NAME_S = 300.0
"""Time after which a name is looked up again."""
MOST_BYTES = 2_048
"""Longest datagram that is read whole."""
_MAX_ANSWERS = 2_000
"""Datagrams read in a second; what comes faster waits in the kernel, and is dropped there."""
_KEPT = 100_000


class Exchange(NamedTuple):
    """Stamps of one exchange. Absolute nanoseconds."""

    peer: str
    burst: int
    sent_ns: int
    received_ns: int
    answered_ns: int
    returned_ns: int
    real_ns: int
    peer_real_ns: int


class Prober:
    """The thread, from ``start`` to ``close``."""

    def __init__(self, hosts: list[tuple[str, int]], key: bytes, domain: str) -> None:
        """Nothing is open before ``start``.

        Args:
            hosts: names and ports of all hosts of the job, the same on each; the first is the reference.
            key: what all collectors of the job share.
            domain: this host's clock domain, 16 hex digits.
        """
        self._hosts = hosts
        self._key = key
        self._domain = bytes.fromhex(domain)
        self._found: deque[Exchange] = deque(maxlen=_KEPT)
        self._own: datagrams.Datagrams | None = None
        self._place = -1
        self._same: set[int] = set()
        self._known: dict[int, tuple[float, datagrams.Address | None]] = {}
        self._burst = 0
        self._begun = 0.0
        self._read: tuple[int, int] = (0, 0)
        self._ending = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="stepscope-clocks", daemon=True)
        self.problem = ""
        """Why this collector compares no clocks."""
        self.others: Callable[[bytes, int], bytes | None] | None = None
        """Answers datagrams that are no exchanges: bytes, and when they came; None: there are no others."""
        self.dropped = 0
        """Datagrams that were not signed with the key."""

    @property
    def begun(self) -> bool:
        """Whether it has this host's address."""
        return self._own is not None

    def start(self) -> None:
        """Open the socket and begin; ``problem`` says if that is not possible. It may be tried again."""
        bound = datagrams.bind(self._hosts)
        if bound is None:
            self.problem = "no host named is an address of this one that is free: another collector may have it"
            return
        self.problem = ""
        self._own, self._place = bound
        self._begun = time.monotonic()
        self._thread.start()

    def take(self) -> list[Exchange]:
        """Exchanges since the last call."""
        return [self._found.popleft() for _ in range(len(self._found))]

    def close(self) -> None:
        """Make a last burst, then end."""
        if self._own is not None and not self._ending.is_set():
            self._ending.set()
            self._wake.send(b"x")
            self._thread.join(_BURST_S + (OTHERS + 1) * _LAST_S)
            if not self._thread.is_alive():
                self._own.close()
        self._wake.close()
        self._woken.close()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                if self._serve(self._next_at()) is None and not self._ending.is_set():
                    self._bursts()
            self._bursts()
        except (OSError, ValueError, struct.error) as error:  # what was compared so far stays
            self.problem = f"comparing clocks failed: {type(error).__name__}: {error}"

    def _next_at(self) -> float:
        number = self._burst
        after = FIRST_S[number] if number < len(FIRST_S) else FIRST_S[-1] + EVERY_S * (number - len(FIRST_S) + 1)
        return self._begun + after

    def _chosen(self) -> list[int]:
        """Places of the hosts to exchange with: the reference, and others that differ from host to host."""
        mine = f"{self._hosts[self._place]}"
        others = [n for n in range(1, len(self._hosts)) if n != self._place]
        others.sort(key=lambda n: hashlib.sha256(f"{mine} {self._hosts[n]}".encode()).digest())
        first = [] if self._place == 0 else [0]
        return [n for n in (*first, *others[:OTHERS]) if n not in self._same]

    def _bursts(self) -> None:
        self._burst += 1
        for place in self._chosen():
            address = self._address(place)
            if address is not None:
                self._one_burst(place, address)

    def _address(self, place: int) -> datagrams.Address | None:
        at, address = self._known.get(place, (-_NAME_S, None))
        if self._own is not None and time.monotonic() - at >= _NAME_S:
            address = datagrams.address_of(*self._hosts[place], self._own.family)
            self._known[place] = (time.monotonic(), address)
        return address

    def _one_burst(self, place: int, address: datagrams.Address) -> None:
        until = time.monotonic() + (_LAST_S if self._ending.is_set() else _BURST_S)
        silent = 0
        nonce = int.from_bytes(os.urandom(8), "big")
        host, port = self._hosts[place]
        for number in range(BURST):
            now = time.monotonic()
            if now >= until or silent >= _SILENT or self._own is None:
                return
            asked = packet.Packet(kind=packet.REQUEST, domain=self._domain, nonce=nonce, number=number)
            sent_ns = time.monotonic_ns()  # before signing, as in answers: what both ways have in common cancels
            self._own.send(packet.encode(asked, self._key), address)
            got = self._serve(min(until, now + _ANSWER_S), asked)
            silent = 0 if got else silent + 1
            if got is None:
                continue
            answer, returned_ns, ahead_ns = got
            if answer.domain == self._domain:  # another name of this host
                self._same.add(place)
                return
            self._found.append(
                Exchange(
                    peer=f"clock:{answer.domain.hex()} {host}:{port}",
                    burst=self._burst,
                    sent_ns=sent_ns,
                    received_ns=answer.received_ns,
                    answered_ns=answer.answered_ns,
                    returned_ns=returned_ns,
                    real_ns=ahead_ns,
                    peer_real_ns=answer.real_ns,
                )
            )
            self._serve(time.monotonic() + _PAUSE_S)

    def _serve(self, until: float, asked: packet.Packet | None = None) -> tuple[packet.Packet, int, int] | None:
        """Answer requests until a time, or until the answer to ``asked`` is here; without ``asked``, or the end is due.

        Returns:
            The answer, when it came, and CLOCK_REALTIME minus CLOCK_MONOTONIC; None: time is up.
        """
        own = self._own
        if own is None:
            return None
        ready = select.poll()
        ready.register(own.fileno(), select.POLLIN)
        if asked is None and not self._ending.is_set():
            ready.register(self._woken.fileno(), select.POLLIN)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return None
            ready.poll(max(1, int(left * 1000)))
            if asked is None and self._ending.is_set() and left > _PAUSE_S:
                return None
            while (came := own.receive(MOST_BYTES)) is not None:
                data, sender, arrived_ns, ahead_ns = came
                known = self._read_one(own, data, sender, arrived_ns) if self._may_read() else None
                if known is None:
                    continue
                if known.kind == packet.REQUEST:
                    self._answer(own, known, sender, arrived_ns, ahead_ns)
                elif asked is not None and (known.nonce, known.number) == (asked.nonce, asked.number):
                    return known, arrived_ns, ahead_ns

    def _read_one(
        self, own: datagrams.Datagrams, data: bytes, sender: datagrams.Address, arrived_ns: int
    ) -> packet.Packet | None:
        """A datagram of an exchange; any other goes to who answers those."""
        if data.startswith(packet.MAGIC):
            known = packet.decode(data, self._key)
            self.dropped += known is None
            return known
        if self.others is None:
            self.dropped += 1
            return None
        answer = self.others(data, arrived_ns)
        if answer is not None:
            own.send(answer, sender)
        return None

    def _may_read(self) -> bool:
        second = int(time.monotonic())
        count = self._read[1] + 1 if self._read[0] == second else 1
        self._read = (second, count)
        return count <= _MAX_ANSWERS

    def _answer(
        self,
        own: datagrams.Datagrams,
        request: packet.Packet,
        sender: datagrams.Address,
        arrived_ns: int,
        ahead_ns: int,
    ) -> None:
        answer = packet.Packet(
            kind=packet.ANSWER,
            domain=self._domain,
            nonce=request.nonce,
            number=request.number,
            receiver=request.domain,
            received_ns=arrived_ns,
            answered_ns=time.monotonic_ns(),
            real_ns=ahead_ns,
        )
        own.send(packet.encode(answer, self._key), sender)
