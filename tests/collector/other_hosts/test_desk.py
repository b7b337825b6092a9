"""What a host takes of what others ask: once, of who has the key, as often and as much as is sensible."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.collector.other_hosts import desk, message
from stepscope.collector.other_hosts.desk import Desk
from stepscope.collector.other_hosts.message import HostState, JointRequest, Message, Question, TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY, NONCE = b"k" * 32, b"n" * 16
HERE, THERE = b"h" * 8, b"t" * 8
S = 1_000_000_000
ENDS = tuple(range(100))
FIRST = TaskState(name="worker 1", outcome="done", steps=99, ends=ENDS)


class Tasks:
    """A host with two tasks of one job."""

    def __init__(self) -> None:
        self.led: list[JointRequest] = []
        self.done = threading.Event()

    def lead(self, wanted: JointRequest) -> str:
        """Whether it is its job."""
        self.led.append(wanted)
        self.done.set()
        return "" if wanted.job == "job" else "no task of the job is measured there"

    def look(self, job: str, joint: str) -> Sequence[TaskState]:
        """Both, of which one has failed."""
        assert job
        assert joint
        return [FIRST, TaskState(name="worker 2", outcome="missed", text="no space")]


class Host:
    """A desk, and what it is asked by a host that has the key."""

    def __init__(self) -> None:
        self.tasks = Tasks()
        self.desk = Desk(KEY, THERE, b"r" * 8, self.tasks)
        self.now_ns = time.monotonic_ns()

    def asked(self, kind: int, body: msgspec.Struct | None = None, challenge: bytes = bytes(24)) -> bytes:
        """A datagram."""
        payload = message.packed(body) if body is not None else b""
        sent = Message(kind=kind, domain=HERE, nonce=NONCE, challenge=challenge, payload=payload)
        return message.encode(sent, KEY)

    def answer(self, data: bytes, now_ns: int = 0) -> Message:
        """What it answers."""
        answer = self.desk.answer(data, now_ns or self.now_ns)
        assert answer is not None
        assert len(answer) <= len(data)
        found = message.decode(answer, KEY)
        assert found is not None
        return found

    def challenge(self) -> bytes:
        """What a question must have."""
        return self.answer(self.asked(message.HELLO)).challenge

    def wanted(self, joint: str = "j", **changed: object) -> JointRequest:
        """A sensible request."""
        begin_ns = self.now_ns + 5 * S
        made = JointRequest(joint=joint, job="job", begin_ns=begin_ns, mark_ns=begin_ns + S, steps=10)
        return msgspec.structs.replace(made, **changed)

    def state(self, wanted: JointRequest) -> HostState:
        """The answer to a request."""
        return self.of(self.answer(self.asked(message.REQUEST, wanted, self.challenge())))

    def looked(self, task: int = 0, first: int = 0, joint: str = "j") -> HostState:
        """The answer to a question."""
        question = Question(joint=joint, job="job", task=task, first=first)
        return self.of(self.answer(self.asked(message.LOOK, question, self.challenge())))

    def of(self, answer: Message) -> HostState:
        """Its body."""
        state = message.body_of(answer, message.HOST_STATE)
        assert state is not None
        return state

    def until(self, what: str) -> HostState:
        """The state once a field of it is set."""
        for _ in range(1_000):
            state = self.looked()
            if getattr(state, what):
                return state
            threading.Event().wait(0.01)
        raise AssertionError(what)


def test_a_request_is_led_once_however_often_it_comes() -> None:
    """Repetitions have the answer of the first; the tasks and their ends are told in parts."""
    host = Host()
    data = host.asked(message.REQUEST, host.wanted(), host.challenge())
    for _ in range(3):
        assert host.of(host.answer(data)).refused == ""
    assert host.tasks.done.wait(10)
    host.until("tasks")
    assert host.tasks.led == [host.wanted()]
    state = host.looked()
    assert (state.tasks, state.ends, state.state) == (2, 100, message.part(FIRST, 0))
    told = [end for first in (0, 40, 80) for end in _ends(host.looked(first=first))]
    assert told == list(ENDS)
    assert host.looked(task=1).state == TaskState(name="worker 2", outcome="missed", text="no space")
    assert host.looked(task=2).state is None
    host.desk.close()


def _ends(state: HostState) -> tuple[int, ...]:
    return state.state.ends if state.state is not None else ()


def test_a_recorded_request_is_nothing_later() -> None:
    """Its challenge is old, is that of another who asks, or of another collector; without one it is nothing either."""
    host, other = Host(), Host()
    data = host.asked(message.REQUEST, host.wanted(), host.challenge())
    assert host.desk.answer(data, host.now_ns + desk.FRESH_NS + S) is None
    assert other.desk.answer(data, host.now_ns) is None
    assert host.desk.answer(host.asked(message.REQUEST, host.wanted()), host.now_ns) is None
    strange = Message(kind=message.HELLO, domain=HERE, nonce=b"s" * 16)
    stolen = host.answer(message.encode(strange, KEY)).challenge
    assert host.desk.answer(host.asked(message.REQUEST, host.wanted(), stolen), host.now_ns) is None
    assert (host.desk.stale, other.desk.stale) == (3, 1)
    assert host.tasks.led == other.tasks.led == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": 1_001}, "more than 1000 steps"),
        ({"steps": -1}, "more than 1000 steps"),
        ({"seconds": 61.0}, "60 s"),
        ({"seconds": float("nan")}, "60 s"),
        ({"begin_ns": 1}, "had passed"),
        ({"begin_ns": 2**62, "mark_ns": 2**62}, "too far ahead"),
        ({"mark_ns": 2**62}, "too far ahead"),
    ],
)
def test_requests_are_bounded(changed: dict[str, object], said: str) -> None:
    """What is beyond the bounds is refused, and said."""
    host = Host()
    assert said in host.state(msgspec.structs.replace(host.wanted(), **changed)).refused
    assert host.tasks.led == []


def test_another_job_is_refused_with_the_reason() -> None:
    """The tasks' own side says so; later questions have the same answer."""
    host = Host()
    host.state(host.wanted(job="other"))
    assert host.until("refused").refused == "no task of the job is measured there"
    assert host.state(host.wanted(job="other")).refused == "no task of the job is measured there"
    assert len(host.tasks.led) == 1
    host.desk.close()


def test_requests_that_come_too_often_are_refused() -> None:
    """As many as a person asks for are taken, and some time later again."""
    host = Host()
    said = [host.state(host.wanted(f"j{n}")).refused for n in range(desk.AT_ONCE + 1)]
    assert said[:-1] == [""] * desk.AT_ONCE
    assert "requests of other hosts came in" in said[-1]
    begin_ns = host.now_ns + desk.PER_NS + S
    later = host.wanted("later", begin_ns=begin_ns, mark_ns=begin_ns)
    data = host.asked(message.REQUEST, later, host.challenge())
    assert host.of(host.answer(data, host.now_ns + desk.PER_NS)).refused == ""
    host.desk.close()


def test_another_collector_of_the_host_can_say_what_became_of_it() -> None:
    """The one that led a request may have ended; a question leads nothing."""
    host = Host()
    assert host.looked().led
    assert host.until("tasks").tasks == 2
    assert host.tasks.led == []
    host.desk.close()


@given(st.binary(max_size=2_000), st.sampled_from([message.HERE, message.STATE, message.REQUEST, message.LOOK]))
def test_whatever_comes_nothing_fails(data: bytes, kind: int) -> None:
    """Bytes of strangers, and of somebody with the key who makes no sense."""
    host = Host()
    assert host.desk.answer(data, host.now_ns) is None
    sent = Message(kind=kind, domain=HERE, nonce=NONCE, challenge=host.challenge(), payload=data[: message.PAYLOAD])
    assert host.desk.answer(message.encode(sent, KEY), host.now_ns) is None
    assert (host.desk.wrong, host.tasks.led) == (2, [])


@pytest.mark.parametrize("joint", ["../x", "", "A", "x" * 65, "a/b", ".tmp"])
def test_ids_that_are_no_ids_are_dropped(joint: str) -> None:
    """They become names of files."""
    host = Host()
    assert host.desk.answer(host.asked(message.REQUEST, host.wanted(joint), host.challenge()), host.now_ns) is None
    assert host.desk.wrong == 1
