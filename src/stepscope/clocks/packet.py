"""The datagrams of an exchange: a request and its answer, of the same size, authenticated.

Requests and answers carry HMAC-SHA256 (RFC 2104) with a key that all hosts of the job share, cut to 16 bytes. An answer
is never larger than what asked for it, so nothing can be amplified. An answer counts only for the request that is under
way: nonce and number must be its own.
"""

from __future__ import annotations

import hmac
import struct

from msgspec import Struct

REQUEST, ANSWER = 1, 2
MAGIC = b"SSC1"
_BODY = struct.Struct("!4sB8sQI8sqqq")
_MAC_BYTES = 16
SIZE = _BODY.size + _MAC_BYTES
"""Bytes of every datagram."""


class Packet(Struct, frozen=True, kw_only=True):
    """One datagram."""

    kind: int
    domain: bytes
    """Clock domain of the sender, 8 bytes."""
    nonce: int
    """Random number of the burst."""
    number: int
    """Of the exchange within the burst."""
    receiver: bytes = bytes(8)
    """Clock domain of who asked; zeros in a request."""
    received_ns: int = 0
    """In an answer: when the request came, by the clock of who answers; like ``answered_ns``."""
    answered_ns: int = 0
    real_ns: int = 0
    """CLOCK_REALTIME minus CLOCK_MONOTONIC of the sender."""


def encode(packet: Packet, key: bytes) -> bytes:
    """The bytes of a datagram."""
    body = _BODY.pack(
        MAGIC,
        packet.kind,
        packet.domain,
        packet.nonce,
        packet.number,
        packet.receiver,
        packet.received_ns,
        packet.answered_ns,
        packet.real_ns,
    )
    return body + hmac.digest(key, body, "sha256")[:_MAC_BYTES]


def decode(data: bytes, key: bytes) -> Packet | None:
    """A datagram of somebody who has the key; None for all others."""
    if len(data) != SIZE or not data.startswith(MAGIC):
        return None
    body = data[: _BODY.size]
    if not hmac.compare_digest(hmac.digest(key, body, "sha256")[:_MAC_BYTES], data[_BODY.size :]):
        return None
    _, kind, domain, nonce, number, receiver, received, answered, real = _BODY.unpack(body)
    if kind not in (REQUEST, ANSWER):
        return None
    return Packet(
        kind=kind,
        domain=domain,
        nonce=nonce,
        number=number,
        receiver=receiver,
        received_ns=received,
        answered_ns=answered,
        real_ns=real,
    )
