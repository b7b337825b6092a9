"""Datagrams of exchanges: only those of the key's owners count, and none is larger than another."""

from hypothesis import given
from hypothesis import strategies as st

from stepscope.clocks import packet

KEY, OTHER = b"k" * 32, b"x" * 32
I64 = st.integers(-(2**63), 2**63 - 1)
EIGHT = st.binary(min_size=8, max_size=8)
PACKETS = st.builds(
    packet.Packet,
    kind=st.sampled_from([packet.REQUEST, packet.ANSWER]),
    domain=EIGHT,
    nonce=st.integers(0, 2**64 - 1),
    number=st.integers(0, 2**32 - 1),
    receiver=EIGHT,
    received_ns=I64,
    answered_ns=I64,
    real_ns=I64,
)


@given(PACKETS)
def test_what_is_sent_arrives(sent: packet.Packet) -> None:
    """A datagram carries all of its fields, in the same number of bytes for requests and answers."""
    data = packet.encode(sent, KEY)
    assert len(data) == packet.SIZE
    assert packet.decode(data, KEY) == sent


@given(PACKETS)
def test_another_key_is_nobody(sent: packet.Packet) -> None:
    """Who has not the key can neither ask nor answer."""
    assert packet.decode(packet.encode(sent, OTHER), KEY) is None


@given(PACKETS, st.integers(0, packet.SIZE - 1), st.integers(1, 255))
def test_an_altered_byte_is_noticed(sent: packet.Packet, place: int, change: int) -> None:
    """Every byte is authenticated."""
    data = bytearray(packet.encode(sent, KEY))
    data[place] ^= change
    assert packet.decode(bytes(data), KEY) is None


@given(st.binary(max_size=200))
def test_noise_is_nothing(data: bytes) -> None:
    """Whatever arrives, decoding does not fail."""
    assert packet.decode(data, KEY) is None
