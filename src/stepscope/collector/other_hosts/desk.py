"""Takes requests of collectors of other hosts: answers at once, and leads them to this host's tasks in another thread.

What it answers comes from the thread that reads the socket, so nothing there waits for a file. A request is taken if
its challenge is the sender's and new, its moment is near, it is bounded, and not too many came before it; repetitions
are the same request. Everything else is dropped, and counted.
"""

from __future__ import annotations

import hmac
import os
import queue
import re
import struct
import threading
import time
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from stepscope.collector.other_hosts import message
from stepscope.collector.other_hosts.message import HostState, JointRequest, Question, TaskState
from stepscope.model.api.capture_ask import MAX_STEPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.collector.other_hosts.message import Message

FRESH_NS = 10_000_000_000
"""Age up to which a challenge counts."""
MOST_NS = 120_000_000_000
"""How far ahead a moment may lie: five seconds, and more on a full machine."""
MAX_SECONDS = 60.0
AT_ONCE, PER_NS = 4, 10_000_000_000
"""Requests that are taken in a time."""
KEPT = 64
"""Requests that are remembered: those of ``FRESH_NS`` at least."""
LOOK_NS = 500_000_000
"""Least time between two looks at what became of a request."""
_WAITING = 16
_ISSUED = struct.Struct("!q")
_ID = re.compile(r"[0-9a-z][0-9a-z-]{0,63}")


class TaskDesk(Protocol):
    """This host's tasks."""

    def lead(self, wanted: JointRequest) -> str:
        """Ask the tasks of a job; return why there are none to ask, or ""."""

    def look(self, job: str, joint: str) -> Sequence[TaskState]:
        """What became of each task of a joint capture."""


class _Held(Struct, kw_only=True):
    """A request, and what has become of it."""

    job: str
    asked: bool = False
    """Whether it is one, and not a question for one that another collector of this host has led."""
    refused: str = ""
    led: bool = False
    tasks: Sequence[TaskState] = ()
    looked_ns: int = 0
    looking: bool = False


class Desk:
    """Requests of other hosts, from ``answer`` of one thread to the tasks by another, which ends with ``close``."""

    def __init__(self, key: bytes, domain: bytes, reach: bytes, host: TaskDesk) -> None:
        """``domain``: clock domain of this host; ``reach``: which tasks it reaches; ``host``: these."""
        self._key = key
        self._domain = domain
        self._reach = reach
        self._host = host
        self._secret = os.urandom(32)
        self._held: dict[str, _Held] = {}
        self._taken_ns: list[int] = []
        self._work: queue.Queue[tuple[JointRequest | Question, _Held] | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self.stale = 0
        """Datagrams that were repeated or too old."""
        self.wrong = 0
        """Those that had the key, and made no sense."""
        self.problem = ""
        """What went wrong with leading a request, the last time."""

    def answer(self, data: bytes, arrived_ns: int) -> bytes | None:
        """The answer to a datagram that came at ``arrived_ns``; None: it has none. Never fails, whatever comes."""
        asked = message.decode(data, self._key)
        if asked is None or asked.kind not in (message.HELLO, message.REQUEST, message.LOOK):
            self.wrong += 1
            return None
        if asked.kind == message.HELLO:
            return self._reply(asked, arrived_ns, message.HERE, b"")
        if not self._fresh(asked, arrived_ns):
            self.stale += 1
            return None
        body: JointRequest | Question | None = (
            message.body_of(asked, message.WANTED)
            if asked.kind == message.REQUEST
            else message.body_of(asked, message.QUESTION)
        )
        if body is None or not _ID.fullmatch(body.joint) or not _ID.fullmatch(body.job):
            self.wrong += 1
            return None
        state = self._request(body, arrived_ns) if isinstance(body, JointRequest) else self._question(body, arrived_ns)
        return self._reply(asked, arrived_ns, message.STATE, message.packed(state))

    def close(self) -> None:
        """Take no more."""
        if self._thread is not None:
            try:
                self._work.put_nowait(None)
            except queue.Full:  # it is busy for good; the thread ends with this process
                return
            self._thread.join(1.0)

    # -- the thread that reads ------------------------------------------------------------------------------------

    def _reply(self, asked: Message, arrived_ns: int, kind: int, payload: bytes) -> bytes:
        now_ns = time.monotonic_ns()
        answer = message.Message(
            kind=kind,
            domain=self._domain,
            nonce=asked.nonce,
            reach=self._reach,
            number=asked.number,
            received_ns=arrived_ns,
            answered_ns=now_ns,
            challenge=self._challenge(asked, now_ns),
            payload=payload,
        )
        return message.encode(answer, self._key)

    def _challenge(self, asked: Message, issued_ns: int) -> bytes:
        """What the next question of who asked must have; nothing is kept of it here."""
        issued = _ISSUED.pack(issued_ns)
        sealed = hmac.digest(self._secret, issued + asked.nonce + asked.domain, "sha256")
        return issued + sealed[: message.CHALLENGE_BYTES - _ISSUED.size]

    def _fresh(self, asked: Message, now_ns: int) -> bool:
        (issued_ns,) = _ISSUED.unpack_from(asked.challenge)
        age_ns = now_ns - issued_ns
        return -FRESH_NS <= age_ns <= FRESH_NS and hmac.compare_digest(
            asked.challenge, self._challenge(asked, issued_ns)
        )

    def _request(self, wanted: JointRequest, now_ns: int) -> HostState:
        held = self._held.get(wanted.joint)
        if held is None or not held.asked:
            refused = self._refusal(wanted, now_ns)
            held = self._keep(wanted.joint, _Held(job=wanted.job, asked=True, refused=refused))
            if not refused:
                self._taken_ns.append(now_ns)
                self._later(wanted, held)
        return _state(held, 0, 0)

    def _refusal(self, wanted: JointRequest, now_ns: int) -> str:
        self._taken_ns = [at for at in self._taken_ns if now_ns - at < PER_NS]
        if not 0 <= wanted.steps <= MAX_STEPS or not 0.0 <= wanted.seconds <= MAX_SECONDS or wanted.span_ns < 0:
            return f"more than {MAX_STEPS} steps or {MAX_SECONDS:g} s were asked for"
        if not now_ns < wanted.begin_ns <= wanted.mark_ns <= now_ns + MOST_NS:
            return "its moment had passed" if wanted.begin_ns <= now_ns else "its moment is too far ahead"
        if len(self._taken_ns) >= AT_ONCE:
            return f"{AT_ONCE} requests of other hosts came in {PER_NS // 10**9} s"
        return ""

    def _question(self, question: Question, now_ns: int) -> HostState:
        held = self._held.get(question.joint)
        if held is None:  # the collector that led it has ended
            held = self._keep(question.joint, _Held(job=question.job, led=True))
        if not held.refused and held.led and not held.looking and now_ns - held.looked_ns >= LOOK_NS:
            held.looking = True
            self._later(question, held)
        return _state(held, question.task, question.first)

    def _keep(self, joint: str, held: _Held) -> _Held:
        self._held[joint] = held
        while len(self._held) > KEPT:
            self._held.pop(next(iter(self._held)))
        return held

    def _later(self, what: JointRequest | Question, held: _Held) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stepscope-desk", daemon=True)
            self._thread.start()
        try:
            self._work.put_nowait((what, held))
        except queue.Full:
            held.looking = False
            held.refused = held.refused if held.led else "its collector is busy"

    # -- the thread that leads ------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            what, held = work
            try:
                if isinstance(what, JointRequest):
                    held.refused = self._host.lead(what)
                    held.led = not held.refused
                if held.led:
                    held.tasks = tuple(self._host.look(what.job, what.joint))
            except (OSError, ValueError, LookupError, msgspec.MsgspecError) as error:
                self.problem = f"{type(error).__name__}: {error}"
                held.refused = held.refused if held.led else f"its collector failed: {type(error).__name__}"
            held.looked_ns, held.looking = time.monotonic_ns(), False


def _state(held: _Held, task: int, first: int) -> HostState:
    if held.refused:
        return HostState(refused=held.refused[: message.MOST_TEXT])
    tasks = held.tasks
    if not 0 <= task < len(tasks) or first < 0:
        return HostState(led=held.led, tasks=len(tasks))
    state = tasks[task]
    return HostState(
        led=held.led,
        tasks=len(tasks),
        task=task,
        state=message.part(state, first),
        first=first,
        ends=len(state.ends),
    )
