"""The datagrams by which a collector asks those of other hosts for a joint capture; all of one size, authenticated.

They go to the address at which clocks are compared (``clocks``), with the same key, and carry HMAC-SHA256
(RFC 2104), cut to 16 bytes. An answer is never larger than what asked for it. What is asked (REQUEST, LOOK) counts only
with the newest challenge of who is asked: a datagram that somebody has recorded and sends again later is stale.
"""

from __future__ import annotations

import hmac
import struct
from typing import TypeVar

import msgspec
from msgspec import Struct

HELLO, HERE, REQUEST, LOOK, STATE = 1, 2, 3, 4, 5
"""Who is there; an answer to it; a request; a question what became of it; the answer to both."""
MAGIC = b"SSJ1"
CHALLENGE_BYTES = 24
NONCE_BYTES = 16
_HEAD = struct.Struct(f"!4sB8s8s{NONCE_BYTES}sIqq{CHALLENGE_BYTES}sH")
_MAC_BYTES = 16
SIZE = 1_232
"""Bytes of every datagram: what every path takes whole (1,280 of IPv6, less its headers; RFC 8200)."""
PAYLOAD = SIZE - _HEAD.size - _MAC_BYTES
MOST_ENDS = 40
"""Ends of steps in one answer."""
MOST_NAME, MOST_TEXT = 40, 120
"""Characters of a name, and of a reason: four bytes each at most."""

Body = TypeVar("Body", bound=msgspec.Struct)


class JointRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A joint capture. Times are CLOCK_MONOTONIC of who is asked."""

    joint: str
    """Its id."""
    job: str
    """Id of the job, as its tasks have it."""
    begin_ns: int
    """When all tasks begin to record."""
    mark_ns: int
    """After which the first step begins that counts."""
    span_ns: int = 0
    """Time that the steps take in the task that leads; 0: unknown."""
    steps: int = 0
    seconds: float = 0.0
    keep_raw: bool = False
    servers: bool = True
    """Flag: parameter servers are asked too."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a task of a joint capture."""

    joint: str
    job: str
    task: int = 0
    """Number of the task on this host."""
    first: int = 0
    """From which of its ends on they are wanted."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a task. Times are CLOCK_MONOTONIC of its host."""

    name: str
    outcome: str = ""
    """"" as long as it is not known; "done", "missed"."""
    text: str = ""
    """Why it is missed."""
    steps: int = 0
    ends: tuple[int, ...] = ()
    """Begin of its first step, and end of each."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says of a joint capture: of one of its tasks at a time."""

    refused: str = ""
    """Why it takes no part; then there are no tasks."""
    led: bool = False
    """Whether its tasks have been asked."""
    tasks: int = 0
    task: int = 0
    state: TaskState | None = None
    """State of the task with that number, with some of its ends."""
    first: int = 0
    """Number of the first of these ends."""
    ends: int = 0
    """Number of all of its ends."""


WANTED = msgspec.msgpack.Decoder(JointRequest)
QUESTION = msgspec.msgpack.Decoder(Question)
HOST_STATE = msgspec.msgpack.Decoder(HostState)
"""Made at import, by one thread: two threads that first decode a type at the same time crash (msgspec 0.22)."""


class Message(Struct, frozen=True, kw_only=True):
    """One datagram."""

    kind: int
    domain: bytes
    """Clock domain of the sender, 8 bytes."""
    nonce: bytes
    """Random number of who asks, one for each host and request."""
    reach: bytes = bytes(8)
    """Which tasks the sender reaches without the network: see ``host_members.reach``."""
    number: int = 0
    """Of the exchange."""
    received_ns: int = 0
    """In an answer: when the question came, by the clock of who answers; like ``answered_ns``."""
    answered_ns: int = 0
    challenge: bytes = bytes(CHALLENGE_BYTES)
    """In an answer: what the next question must have; in a question: what the last answer had."""
    payload: bytes = b""


def encode(message: Message, key: bytes) -> bytes:
    """The bytes of a datagram.

    Raises:
        ValueError: the payload is too large.
    """
    if len(message.payload) > PAYLOAD:
        raise ValueError(f"a payload of {len(message.payload)} bytes; at most {PAYLOAD} are sent")
    head = _HEAD.pack(
        MAGIC,
        message.kind,
        message.domain,
        message.reach,
        message.nonce,
        message.number,
        message.received_ns,
        message.answered_ns,
        message.challenge,
        len(message.payload),
    )
    body = head + message.payload.ljust(PAYLOAD, b"\0")
    return body + hmac.digest(key, body, "sha256")[:_MAC_BYTES]


def decode(data: bytes, key: bytes) -> Message | None:
    """A datagram of somebody who has the key; None for all others."""
    if len(data) != SIZE or not data.startswith(MAGIC):
        return None
    body = data[:-_MAC_BYTES]
    if not hmac.compare_digest(hmac.digest(key, body, "sha256")[:_MAC_BYTES], data[-_MAC_BYTES:]):
        return None
    _, kind, domain, reach, nonce, number, received, answered, challenge, length = _HEAD.unpack_from(body)
    if not HELLO <= kind <= STATE or length > PAYLOAD:
        return None
    return Message(
        kind=kind,
        domain=domain,
        reach=reach,
        nonce=nonce,
        number=number,
        received_ns=received,
        answered_ns=answered,
        challenge=challenge,
        payload=body[_HEAD.size : _HEAD.size + length],
    )


def body_of(message: Message, kind: msgspec.msgpack.Decoder[Body]) -> Body | None:
    """What a message holds; None if it is something else."""
    try:
        return kind.decode(message.payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def packed(body: msgspec.Struct) -> bytes:
    """A body as payload."""
    return msgspec.msgpack.encode(body)


def part(state: TaskState, first: int) -> TaskState:
    """As much of the state of a task as one answer holds, with ends from ``first`` on."""
    return msgspec.structs.replace(
        state,
        name=state.name[:MOST_NAME],
        text=state.text[:MOST_TEXT],
        ends=state.ends[first : first + MOST_ENDS],
    )
