"""Datagrams of requests between hosts: only those of the key's owners count, all have one size."""

from hypothesis import given
from hypothesis import strategies as st

from stepscope.clocks import packet
from stepscope.collector.other_hosts import message
from stepscope.collector.other_hosts.message import HostState, Message, TaskState

KEY, OTHER = b"k" * 32, b"x" * 32
I64 = st.integers(-(2**63), 2**63 - 1)
MESSAGES = st.builds(
    Message,
    kind=st.integers(message.HELLO, message.STATE),
    domain=st.binary(min_size=8, max_size=8),
    nonce=st.binary(min_size=16, max_size=16),
    reach=st.binary(min_size=8, max_size=8),
    number=st.integers(0, 2**32 - 1),
    received_ns=I64,
    answered_ns=I64,
    challenge=st.binary(min_size=message.CHALLENGE_BYTES, max_size=message.CHALLENGE_BYTES),
    payload=st.binary(max_size=message.PAYLOAD),
)
WORDS = st.text(max_size=300)


@given(MESSAGES)
def test_what_is_sent_arrives(sent: Message) -> None:
    """A datagram carries all of its fields; questions and answers have the same number of bytes."""
    data = message.encode(sent, KEY)
    assert len(data) == message.SIZE
    assert message.decode(data, KEY) == sent


@given(MESSAGES, st.integers(0, message.SIZE - 1), st.integers(1, 255))
def test_another_key_or_an_altered_byte_is_nobody(sent: Message, place: int, change: int) -> None:
    """Every byte is authenticated, and an exchange of clocks is no request."""
    data = bytearray(message.encode(sent, KEY))
    assert message.decode(bytes(data), OTHER) is None
    assert packet.decode(bytes(data), KEY) is None
    data[place] ^= change
    assert message.decode(bytes(data), KEY) is None


@given(st.binary(max_size=2_000))
def test_noise_is_nothing(data: bytes) -> None:
    """Whatever arrives, with the key or without, decoding does not fail."""
    assert message.decode(data, KEY) is None
    held = Message(kind=message.STATE, domain=bytes(8), nonce=bytes(16), payload=data[: message.PAYLOAD])
    message.body_of(held, message.WANTED)
    message.body_of(held, message.QUESTION)
    message.body_of(held, message.HOST_STATE)


@given(WORDS, WORDS, st.lists(I64, max_size=100), st.integers(0, 120))
def test_the_state_of_a_task_fits_into_a_datagram(name: str, text: str, ends: list[int], first: int) -> None:
    """Long names, reasons and traces are sent in parts."""
    state = TaskState(name=name, outcome="missed", text=text, steps=2**40, ends=tuple(ends))
    part = message.part(state, first)
    assert part.ends == tuple(ends[first : first + message.MOST_ENDS])
    whole = HostState(led=True, tasks=2**20, task=2**20, state=part, first=first, ends=2**20)
    assert len(message.packed(whole)) <= message.PAYLOAD
