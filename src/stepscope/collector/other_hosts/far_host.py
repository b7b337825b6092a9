"""One host that is asked for a joint capture: what it is sent next, and what its answers say.

It is greeted some times, which tells how far its clock is off this one's (the middle of the round trip, as
``clocks`` has it); then the moment is sent by its own clock, until it has answered; then it is asked what
became of its tasks. It knows no socket: what it is given are datagrams and times.
"""

from __future__ import annotations

import os
from typing import Literal

from msgspec import Struct, field

from stepscope.collector.other_hosts import message
from stepscope.collector.other_hosts.desk import FRESH_NS
from stepscope.collector.other_hosts.message import HostState, JointRequest, Message, Question, TaskState

GREETINGS = 4
"""Exchanges before the moment is sent; the shortest round trip of them counts."""
FEWER_NS = 1_000_000_000
"""Time after which a single one is enough."""
FIRST_NS, MOST_NS = 50_000_000, 400_000_000
"""Time until a greeting without an answer is repeated: at first, doubled each time up to the second."""
AGAIN_NS = 200_000_000
"""The same of a request."""
LOOK_NS = 500_000_000
"""Time between two questions for something that is not known yet."""
SOON_NS = 2_000_000
"""The same where more is known than one answer holds."""
SILENT_NS = 20_000_000_000
"""Time without an answer after which a host counts as cut off."""
DRIFT = 50e-6
"""By how much clocks of hosts may run apart: an older exchange is worth less."""
MOST_TASKS, MOST_ENDS = 256, 2_000
"""Tasks of one host that are asked for, and ends of steps of one of them."""
_EXCHANGES = 32

Phase = Literal["greet", "request", "look", "over"]


class Exchange(Struct, frozen=True, kw_only=True):
    """A round trip: its clock minus ours lies within ``half_ns`` of ``ahead_ns``."""

    at_ns: int
    ahead_ns: int
    half_ns: int


class FarHost(Struct, kw_only=True):
    """A host, as the one that asks sees it. Times are CLOCK_MONOTONIC of this one."""

    name: str
    domain: bytes
    """Clock domain of this host, not of that one."""
    wanted: JointRequest
    """The capture, with times of this host."""
    began_ns: int
    phase: Phase = "greet"
    why: str = ""
    """Why it takes no part, or no more."""
    reach: bytes = b""
    """Which tasks it reaches; empty: it has not answered."""
    tasks: list[TaskState] = field(default_factory=list)
    """What is known of its tasks, by its clock."""
    next_ns: int = 0
    same_clock: bool = False
    heard_ns: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    nonce: bytes = field(default_factory=lambda: os.urandom(message.NONCE_BYTES))
    _number: int = 0
    _sent: dict[int, int] = field(default_factory=dict)
    _repeat_ns: int = FIRST_NS
    _challenge: bytes = bytes(message.CHALLENGE_BYTES)
    _challenge_ns: int = 0
    _cursor: int = 0

    def due(self, now_ns: int) -> Message | None:
        """What to send now; None: nothing."""
        self._proceed(now_ns)
        if self.phase == "over" or now_ns < self.next_ns:
            return None
        self._number += 1
        stale = now_ns - self._challenge_ns > FRESH_NS // 2
        if self.phase == "greet" or stale:
            self.next_ns, self._repeat_ns = now_ns + self._repeat_ns, min(MOST_NS, 2 * self._repeat_ns)
            return self._message(message.HELLO, b"")
        if self.phase == "request":
            self.next_ns = now_ns + AGAIN_NS
            return self._message(message.REQUEST, message.packed(self._by_its_clock(now_ns)))
        self.next_ns = now_ns + LOOK_NS
        first = len(self.tasks[self._cursor].ends) if self._cursor < len(self.tasks) else 0
        asked = Question(joint=self.wanted.joint, job=self.wanted.job, task=self._cursor, first=first)
        return self._message(message.LOOK, message.packed(asked))

    def note_sent(self, at_ns: int) -> None:
        """What ``due`` gave is sent at this time."""
        self._sent[self._number] = at_ns
        while len(self._sent) > _EXCHANGES:
            self._sent.pop(next(iter(self._sent)))

    def take(self, answer: Message, returned_ns: int) -> None:
        """An answer with its nonce."""
        sent_ns = self._sent.pop(answer.number, 0)
        if not sent_ns or answer.kind not in (message.HERE, message.STATE):
            return  # of a question that is forgotten, or was answered already
        self.heard_ns, self._challenge, self._challenge_ns = returned_ns, answer.challenge, returned_ns
        self._repeat_ns = FIRST_NS
        self.reach, self.same_clock = answer.reach, answer.domain == self.domain
        half_ns = max(0, (returned_ns - sent_ns) - (answer.answered_ns - answer.received_ns)) // 2
        ahead_ns = ((answer.received_ns - sent_ns) + (answer.answered_ns - returned_ns)) // 2
        self.exchanges.append(Exchange(at_ns=returned_ns, ahead_ns=ahead_ns, half_ns=half_ns))
        del self.exchanges[:-_EXCHANGES]
        if answer.kind == message.HERE:
            self.next_ns = returned_ns
            enough = len(self.exchanges) >= GREETINGS
            if self.phase == "greet" and enough:
                self.phase = "request"
            return
        state = message.body_of(answer, message.HOST_STATE)
        if state is not None:
            self._hear(state, returned_ns)

    def ahead(self, at_ns: int) -> tuple[int, int]:
        """Its clock minus ours at a time, and how sure that is."""
        if self.same_clock:
            return 0, 0
        best = min(self.exchanges, key=lambda one: one.half_ns + DRIFT * abs(at_ns - one.at_ns))
        return best.ahead_ns, best.half_ns + int(DRIFT * abs(at_ns - best.at_ns))

    def stop(self, why: str) -> None:
        """Ask it no more."""
        self.phase, self.why = "over", why

    def _message(self, kind: int, payload: bytes) -> Message:
        return Message(
            kind=kind,
            domain=self.domain,
            nonce=self.nonce,
            number=self._number,
            challenge=self._challenge,
            payload=payload,
        )

    def _by_its_clock(self, now_ns: int) -> JointRequest:
        wanted, (ahead_ns, _) = self.wanted, self.ahead(now_ns)
        return JointRequest(
            joint=wanted.joint,
            job=wanted.job,
            begin_ns=wanted.begin_ns + ahead_ns,
            mark_ns=wanted.mark_ns + ahead_ns,
            span_ns=wanted.span_ns,
            steps=wanted.steps,
            seconds=wanted.seconds,
            keep_raw=wanted.keep_raw,
            servers=wanted.servers,
        )

    def _proceed(self, now_ns: int) -> None:
        """What follows from the time."""
        if self.phase == "greet" and self.exchanges and now_ns >= self.began_ns + FEWER_NS:
            self.phase = "request"
        if now_ns >= self.wanted.begin_ns:
            if self.phase == "greet" and not self.exchanges:
                self.stop("no answer")
            elif self.phase in ("greet", "request"):  # it may have taken it: only its answer was lost
                self.phase = "look"
            if self.phase == "look" and now_ns - max(self.heard_ns, self.wanted.begin_ns) >= SILENT_NS:
                self.stop("answers no more")

    def _hear(self, state: HostState, now_ns: int) -> None:
        if state.refused:
            self.stop(state.refused)
            return
        if self.phase == "request":
            self.phase = "look"
        self.next_ns = now_ns + LOOK_NS
        while len(self.tasks) < min(state.tasks, MOST_TASKS):
            self.tasks.append(TaskState(name=""))
        if state.state is not None and state.task < len(self.tasks):
            self._hear_task(state, state.state, now_ns)
        if self.tasks and all(task.outcome for task in self.tasks):
            self.stop("")

    def _hear_task(self, state: HostState, told: TaskState, now_ns: int) -> None:
        old = self.tasks[state.task]
        ends = old.ends + told.ends if state.first == len(old.ends) else old.ends
        whole = told.outcome != "done" or len(ends) >= min(state.ends, MOST_ENDS)
        outcome = told.outcome if whole else ""
        self.tasks[state.task] = TaskState(
            name=told.name, outcome=outcome, text=told.text, steps=told.steps, ends=ends if told.outcome else ()
        )
        if not whole:
            self.next_ns = now_ns + SOON_NS
            return
        following = [n for n, task in enumerate(self.tasks) if not task.outcome]
        later = [n for n in following if n > state.task]
        if following:
            self._cursor = later[0] if later else following[0]
            self.next_ns = now_ns + (SOON_NS if later else LOOK_NS)
