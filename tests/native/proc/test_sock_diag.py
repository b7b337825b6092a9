"""Answers of the kernel's socket diagnostics, as Linux 6.18 gave them, and as older kernels would have."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from stepscope.native.proc import sock_diag
from stepscope.native.proc.sock_diag import Connection, TcpInfo

DATA = Path(__file__).parents[2] / "data" / "sock-diag" / "linux-6.18.hex"
"""Three connections with both ends, in a network namespace of their own; a line for each answer."""


def recorded() -> dict[str, Connection]:
    """The recorded connections by their ends."""
    found: list[Connection] = []
    ended = [not sock_diag.parse(bytes.fromhex(line), found) for line in DATA.read_text().split()]
    assert ended == [False, True, False, True]  # of each family the connections, and the end
    return {one.text: one for one in found}


def test_both_families_are_read() -> None:
    """IPv4, IPv6, and IPv4 on a socket of IPv6, of which the client's end is plain IPv4."""
    found = recorded()
    assert len(found) == 6
    assert "10.77.0.1:41000 10.77.0.1:5001" in found
    assert any(text.startswith("[fd77::1]:5002 [fd77::1]:") for text in found)
    mapped = next(one for text, one in found.items() if text.startswith("10.77.0.1:5003"))
    assert mapped.family == 10
    assert mapped.unread == 500


def test_numbers_are_the_kernels() -> None:
    """100,000 bytes were sent and acknowledged (and the SYN), 60,000 of them read."""
    found = recorded()
    sender, receiver = found["10.77.0.1:41000 10.77.0.1:5001"], found["10.77.0.1:5001 10.77.0.1:41000"]
    assert sender.info == TcpInfo(
        app_limited=0,
        rtt_us=26,
        rttvar_us=10,
        cwnd=13,
        retrans=0,
        acked_bytes=100_001,
        received_bytes=0,
        notsent_bytes=0,
        min_rtt_us=12,
        delivery_bytes_s=4_328_727_272,
        busy_us=0,
        rwnd_limited_us=0,
        sndbuf_limited_us=0,
        delivered=4,
        sent_bytes=100_000,
        retrans_bytes=0,
        dsack_dups=0,
        reord_seen=0,
        rcv_ooopack=0,
    )
    assert (sender.unread, receiver.unread) == (0, 40_000)
    assert receiver.info is not None
    assert receiver.info.received_bytes == 100_000


def shortened(length: int) -> list[Connection]:
    """The recorded IPv4 connections as a kernel would report them whose ``tcp_info`` has ``length`` bytes."""
    data = bytes.fromhex(DATA.read_text().split()[0])
    found: list[Connection] = []
    at, made = 0, b""
    while at + 16 <= len(data):
        size = struct.unpack_from("=I", data, at)[0]
        body, inner = data[at : at + size], b""
        place = 16 + 72
        while place + 4 <= len(body):
            part, kind = struct.unpack_from("=HH", body, place)
            content = body[place + 4 : place + part]
            if kind == 2:
                content = content[:length]
            inner += struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)
            place += (part + 3) & ~3
        message = body[4 : 16 + 72] + inner
        made += struct.pack("=I", 4 + len(message)) + message + bytes(-(4 + len(message)) % 4)
        at += (size + 3) & ~3
    sock_diag.parse(made, found)
    return found


@pytest.mark.parametrize(
    ("length", "missing"),
    [
        (280, set()),
        (192, {"delivered", "sent_bytes", "retrans_bytes", "dsack_dups", "reord_seen", "rcv_ooopack"}),  # Linux 4.10
        (104, {*TcpInfo._fields} - {"app_limited", "rtt_us", "rttvar_us", "cwnd", "retrans"}),  # Linux 3.10
    ],
)
def test_what_an_older_kernel_does_not_have_is_unknown(length: int, missing: set[str]) -> None:
    """Fields beyond the end are -1, those before it are as ever."""
    whole = {one.text: one.info for one in recorded().values()}
    for one in shortened(length):
        assert one.info is not None
        full = whole[one.text]
        assert full is not None
        assert one.info == full._replace(**dict.fromkeys(missing, -1))


def test_a_refusal_is_an_error() -> None:
    """The kernel's number becomes that of the OSError."""
    refused = struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -13)
    with pytest.raises(PermissionError):
        sock_diag.parse(refused, [])


def test_an_answer_that_is_cut_short() -> None:
    """A message without room for its connection cannot be read."""
    data = bytes.fromhex(DATA.read_text().split()[0])[:60]
    with pytest.raises(struct.error):
        sock_diag.parse(data, [])
