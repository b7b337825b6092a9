"""BPF programs that tell of each TCP segment that is sent again, and of each packet of a socket that this host drops.

They run at raw tracepoints, which need no tracefs, and copy out when it was and the two ends of the connection. In
softirqs the current process is the one that was interrupted, so the connection alone says whose packet it is.

Source: include/trace/events/tcp.h (tcp_retransmit_skb: socket, buffer), include/trace/events/skb.h (kfree_skb: buffer,
place, reason, and from 6.11 on the receiving socket), include/net/sock.h (struct sock_common begins with the addresses
and ports of IPv4), bpf-helpers(7).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.native.kernel.bpf import (
    ADD,
    ALWAYS,
    COPY,
    EXIT,
    IF_EQUAL,
    IF_OTHER,
    LOAD,
    MOVE,
    STORE,
    STORE_32,
    TOP,
    Assembler,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from stepscope.native.formats.btf import KernelTypes

RECORD = struct.Struct("<QII4s4s4x2sHH6x16s16sI4x")
"""When (CLOCK_MONOTONIC, ns); what; reason of a drop; of the socket: the other's address, its own, the other's port in
network order, its own in this machine's, family, both addresses of IPv6; inode of the network namespace."""
SENT_AGAIN, DROPPED_HERE, DROPPED_ON_ARRIVAL = 0, 1, 2
_NOW, _READ, _OUTPUT = 5, 113, 130
_EVENT, _SOCKET, _REASON = 6, 7, 8
"""Registers that calls preserve."""
_SCRATCH = -8
_AT = _SCRATCH - RECORD.size
_WHAT, _WHY, _COMMON, _COMMON_BYTES, _V6, _V6_BYTES, _INODE = 8, 12, 16, 24, 40, 32, 72
_FAMILY = 16
_ARGUMENT = 8


class KernelOffsets(Struct, frozen=True, kw_only=True):
    """Offsets in the kernel's structures."""

    v6: int
    """In ``sock_common``: the other's address of IPv6, which its own follows."""
    namespace: int
    """In ``sock_common``: the network namespace."""
    inode: int
    """In ``net``: the number of its inode."""
    socket: int
    """In ``sk_buff``: its socket; -1: not known."""


def layout(types: KernelTypes) -> KernelOffsets | None:
    """The offsets in this kernel; None if one of them is not found."""
    common, net, inside = types.members("sock_common"), types.members("net"), types.members("ns_common")
    known = {"skc_family", "skc_v6_daddr", "skc_v6_rcv_saddr", "skc_net"} <= common.keys()
    if not known or "ns" not in net or "inum" not in inside or common["skc_family"] != _FAMILY:
        return None
    if common["skc_v6_rcv_saddr"] - common["skc_v6_daddr"] != _V6_BYTES // 2:
        return None
    return KernelOffsets(
        v6=common["skc_v6_daddr"],
        namespace=common["skc_net"],
        inode=net["ns"] + inside["inum"],
        socket=types.members("sk_buff").get("sk", -1),
    )


def sent_again(ring: int, where: KernelOffsets) -> bytes:
    """The instructions for a segment that is sent again; ``ring``: descriptor of the ring for its records."""
    code = _begun()
    code.add(LOAD, _SOCKET, _EVENT)
    code.add(MOVE, _REASON)
    code.add(MOVE, 1, value=SENT_AGAIN)
    _told(code, ring, where)
    return code.assembled()


def dropped(ring: int, where: KernelOffsets, *, ignored: Collection[int], receiver: bool) -> bytes:
    """The instructions for a packet that is dropped.

    Args:
        ring: descriptor of the ring for its records.
        where: offsets in the kernel.
        ignored: reasons that are no loss.
        receiver: whether the event has the receiving socket.
    """
    code = _begun()
    code.add(LOAD, _REASON, _EVENT, 2 * _ARGUMENT)
    for reason in sorted(ignored):
        code.jump(IF_EQUAL, _REASON, "other", reason)
    code.add(LOAD, 3, _EVENT)
    _read(code, _SCRATCH, _ARGUMENT, where.socket)
    code.add(LOAD, _SOCKET, TOP, _SCRATCH)
    code.add(MOVE, 1, value=DROPPED_HERE)
    code.jump(IF_OTHER, _SOCKET, "known")
    if receiver:
        code.add(LOAD, _SOCKET, _EVENT, 3 * _ARGUMENT)
        code.add(MOVE, 1, value=DROPPED_ON_ARRIVAL)
    code.label("known")
    _told(code, ring, where)
    return code.assembled()


def _begun() -> Assembler:
    code = Assembler()
    code.add(COPY, _EVENT, 1)
    code.add(MOVE, 2)
    for offset in range(_AT, 0, 8):
        code.add(STORE, TOP, 2, offset)
    return code


def _told(code: Assembler, ring: int, where: KernelOffsets) -> None:
    """Copy the record out: what in register 1, the socket and the reason in theirs."""
    code.jump(IF_EQUAL, _SOCKET, "other")
    code.add(STORE_32, TOP, 1, _AT + _WHAT)
    code.add(STORE_32, TOP, _REASON, _AT + _WHY)
    code.call(_NOW)
    code.add(STORE, TOP, 0, _AT)
    for to, size, offset in (
        (_AT + _COMMON, _COMMON_BYTES, 0),
        (_AT + _V6, _V6_BYTES, where.v6),
        (_SCRATCH, _ARGUMENT, where.namespace),
    ):
        code.add(COPY, 3, _SOCKET)
        _read(code, to, size, offset)
    code.add(LOAD, 3, TOP, _SCRATCH)
    _read(code, _AT + _INODE, 4, where.inode)
    code.map(1, ring)
    code.add(COPY, 2, TOP)
    code.add(ADD, 2, value=_AT)
    code.add(MOVE, 3, value=RECORD.size)
    code.add(MOVE, 4)
    code.call(_OUTPUT)
    code.jump(ALWAYS, 0, "other")
    code.label("other")
    code.add(MOVE, 0)
    code.add(EXIT)


def _read(code: Assembler, to: int, size: int, offset: int) -> None:
    """Read kernel memory at register 3 and an offset to a place on the stack; zeros where that fails."""
    code.add(ADD, 3, value=offset)
    code.add(COPY, 1, TOP)
    code.add(ADD, 1, value=to)
    code.add(MOVE, 2, value=size)
    code.call(_READ)
