"""Writes small perf.data files, as ``perf record`` writes them: the test chooses what they hold.

Source: linux/tools/perf/Documentation/perf.data-file-format.txt, perf_event_open(2).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

IP, TID, TIME, ADDR, CALLCHAIN, PERIOD, RAW = 1, 2, 4, 8, 32, 256, 1024
REGS, STACK, IDENTIFIER = 4096, 8192, 1 << 16
PLAIN = IP | TID | TIME | ADDR | PERIOD | IDENTIFIER
DWARF = PLAIN | CALLCHAIN | REGS | STACK
CALL = IP | TID | TIME | PERIOD | RAW | IDENTIFIER
KERNEL, USER = 2**64 - 128, 2**64 - 512
REGISTERS = 0b111111111 | 0xFF << 16
"""AX BX CX DX SI DI BP SP IP, R8 to R15."""
ATTR_BYTES = 128
PID, TID_OF = 50, 51


@dataclass
class PerfFile:
    """A file that is being written. ``add_*`` take the event by its index."""

    events: Sequence[tuple[str, int]]
    """(name, sample_type)."""
    records: list[bytes] = field(default_factory=list)

    def _record(self, kind: int, misc: int, body: bytes) -> None:
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def _trailer(self, at: int, pid: int, tid: int) -> bytes:
        return struct.pack("<IIQQ", pid, tid, at, 100)

    def mmap(self, at: int, start: int, size: int, name: str, *, offset: int = 0, data: bool = False) -> None:
        """A mapping (MMAP2)."""
        text = name.encode() + b"\0"
        text += b"\0" * (-len(text) % 8)
        body = struct.pack("<IIQQQ", PID, PID, start, size, offset) + b"\0" * 24 + b"\0" * 8 + text
        self._record(10, 1 << 13 if data else 0, body + self._trailer(at, PID, PID))

    def comm(self, at: int, tid: int, name: str) -> None:
        """A thread's name."""
        text = name.encode() + b"\0"
        text += b"\0" * (-len(text) % 8)
        self._record(3, 0, struct.pack("<II", PID, tid) + text + self._trailer(at, PID, tid))

    def lost(self, count: int) -> None:
        """Samples that the kernel could not store."""
        self._record(2, 0, struct.pack("<QQ", 100, count) + self._trailer(0, 0, 0))

    def sample(
        self,
        event: int,
        at: int,
        *,
        ip: int = 0,
        address: int = 0,
        period: int = 1,
        kernel: Sequence[int] = (),
        registers: Sequence[int] | None = None,
        stack: bytes = b"",
        raw: bytes = b"",
        pid: int = PID,
        tid: int = TID_OF,
    ) -> None:
        """A sample, with the fields that its event records."""
        kinds = self.events[event][1]
        body = struct.pack("<QQIIQ", 100 + event, ip, pid, tid, at)
        if kinds & ADDR:
            body += struct.pack("<Q", address)
        body += struct.pack("<Q", period)
        if kinds & CALLCHAIN:
            chain = [KERNEL, *kernel, USER, ip] if kernel else [USER, ip]
            body += struct.pack(f"<{1 + len(chain)}Q", len(chain), *chain)
        if kinds & RAW:
            padded = raw + b"\0" * (-(len(raw) + 4) % 8)
            body += struct.pack("<I", len(padded)) + padded
        if kinds & REGS:
            body += struct.pack("<Q", 0 if registers is None else 2)
            if registers is not None:
                body += struct.pack(f"<{len(registers)}Q", *registers)
        if kinds & STACK:
            room = stack + b"\0" * 64 if stack else b""
            body += struct.pack("<Q", len(room)) + room + (struct.pack("<Q", len(stack)) if stack else b"")
        self._record(9, 2, body)

    def encode(self) -> bytes:
        """The file's bytes."""
        count = len(self.events)
        header = 104
        ids_at = header
        attrs_at = ids_at + 8 * count
        attr_size = ATTR_BYTES + 16
        data_at = attrs_at + attr_size * count
        data = b"".join(self.records)
        table_at = data_at + len(data)
        attrs, description = b"", struct.pack("<II", count, ATTR_BYTES)
        for index, (name, kinds) in enumerate(self.events):
            attr = struct.pack("<IIQQQQQ", 1, ATTR_BYTES, 0, 7, kinds, 0, 1 << 18)
            attr += b"\0" * (80 - len(attr))
            attr += struct.pack("<QIi", REGISTERS if kinds & REGS else 0, 0, 0)
            attr += b"\0" * (ATTR_BYTES - len(attr))
            attrs += attr + struct.pack("<QQ", ids_at + 8 * index, 8)
            text = name.encode() + b"\0"
            text += b"\0" * (-len(text) % 8)
            description += attr + struct.pack("<II", 1, len(text)) + text + struct.pack("<Q", 100 + index)
        ids = struct.pack(f"<{count}Q", *(100 + i for i in range(count)))
        feature = struct.pack("<QQ", table_at + 16, len(description)) + description
        first = struct.pack(
            "<8s8Q4Q",
            b"PERFILE2",
            104,
            attr_size,
            attrs_at,
            attr_size * count,
            data_at,
            len(data),
            0,
            0,
            1 << 12,
            0,
            0,
            0,
        )
        return first + ids + attrs + data + feature
