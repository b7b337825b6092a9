"""BTF: members of structures and values of enumerations by their names, in bytes made here and in this kernel's."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from stepscope.native.formats.btf import KernelTypes
from stepscope.tables.errors import FormatError

KERNEL = Path("/sys/kernel/btf/vmlinux")
STRUCT, ENUM = 4, 6


def made(*types: tuple[str, int, int, list[tuple[str, int, int] | tuple[str, int]]]) -> bytes:
    """BTF of types: (name, kind, size, members (name, type, bits) or values (name, value))."""
    strings, words = b"\0", b""

    def text(name: str) -> int:
        nonlocal strings
        if not name:
            return 0
        at = strings.find(b"\0" + name.encode() + b"\0")
        if at < 0:
            at, strings = len(strings) - 1, strings + name.encode() + b"\0"
        return at + 1

    for name, kind, size, parts in types:
        words += struct.pack("<III", text(name), kind << 24 | len(parts), size)
        for part in parts:
            words += struct.pack(f"<{len(part)}I", text(part[0]), *part[1:])
    head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(words), len(words), len(strings))
    return head + words + strings


def test_members_and_values() -> None:
    """Offsets are in bytes, parts without a name are left out, and of two types of a name the larger counts."""
    types = KernelTypes(
        made(
            ("net", STRUCT, 0, []),
            ("net", STRUCT, 64, [("count", 1, 0), ("", 2, 64), ("ns", 3, 128)]),
            ("reason", ENUM, 4, [("NONE", 0), ("FULL", 7)]),
            ("ns", STRUCT, 4, [("inum", 1, 32)]),
        )
    )
    assert types.members("net") == {"count": 0, "ns": 16}
    assert types.members("ns") == {"inum": 4}
    assert types.values("reason") == {0: "NONE", 7: "FULL"}
    assert types.members("reason") == {}
    assert types.members("absent") == {}
    assert types.values("absent") == {}


@pytest.mark.parametrize("data", [b"", b"\0" * 24, made(("net", STRUCT, 0, []))[:-1]], ids=["empty", "zeros", "cut"])
def test_what_is_no_btf(data: bytes) -> None:
    """It is refused."""
    with pytest.raises(FormatError):
        KernelTypes(data)


@pytest.mark.skipif(not KERNEL.exists(), reason="a kernel without BTF")
def test_this_kernel() -> None:
    """A socket begins with its addresses, and packets are dropped for many reasons."""
    types = KernelTypes(KERNEL.read_bytes())
    assert types.members("sock_common")["skc_family"] == 16
    assert len(types.values("skb_drop_reason")) > 20
