"""Seals: checksums of the records in a ring, made beside the writers and never in their way."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.conftest import Armed

from stepscope.wire import ring, seals


@pytest.fixture(name="made")
def _made(tmp_path: Path) -> ring.RingWriter:
    return ring.RingWriter(str(tmp_path / "ring"), ring.MIN_SLOTS)


def write(made: ring.RingWriter, count: int) -> None:
    """Records that differ."""
    for number in range(made.written(), made.written() + count):
        made.write(number, number % 7, -number, number % 3, 18, 0, 1)


def found(made: ring.RingWriter, since: int = 0) -> list[tuple[int, int, int]]:
    """The seals in the ring's header."""
    return seals.read(bytes(made.buffer[: ring.HEADER_BYTES]), since)


def bytes_of(made: ring.RingWriter, first: int, count: int) -> bytes:
    """Of records in the ring, one by one."""
    places = (ring.HEADER_BYTES + index % made.slots * ring.RECORD_BYTES for index in range(first, first + count))
    return b"".join(bytes(made.buffer[at : at + ring.RECORD_BYTES]) for at in places)


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=12))
def test_seals_cover_what_was_written(tmp_path_factory: pytest.TempPathFactory, counts: list[int]) -> None:
    """However much is written between two seals, also around the ring's end: each record is in one seal."""
    made = ring.RingWriter(str(tmp_path_factory.mktemp("ring") / "ring"), ring.MIN_SLOTS)
    sealer = seals.Sealer(made)
    for count in counts:
        write(made, count)
        sealer.seal()
        if count:
            first, sealed, crc = found(made)[-1]
            assert (first, sealed) == (made.written() - count, count)
            assert crc == zlib.crc32(bytes_of(made, first, count))
    assert sum(count for _, count, _ in found(made)) == sum(counts)


def test_of_more_than_half_a_ring_the_oldest_have_no_seal(made: ring.RingWriter) -> None:
    """They could be overwritten while the checksum is computed, and would be taken for damaged."""
    sealer = seals.Sealer(made)
    write(made, 3 * ring.MIN_SLOTS)
    sealer.seal()
    assert [(first, count) for first, count, _ in found(made)] == [(5 * ring.MIN_SLOTS // 2, ring.MIN_SLOTS // 2)]


def test_a_seal_ends_before_a_record_that_is_being_written(made: ring.RingWriter) -> None:
    """A claimed slot is sealed once it is written; one that stays empty is passed over in the end."""
    sealer = seals.Sealer(made)
    write(made, 5)
    made.claim()
    write(made, 5)
    for _ in range(3):
        sealer.seal()
    assert [(first, count) for first, count, _ in found(made)] == [(0, 5)]
    write(made, ring.MAX_UNWRITTEN)
    sealer.seal()
    sealer.seal()
    assert [(first, count) for first, count, _ in found(made)] == [(0, 5), (6, 5 + ring.MAX_UNWRITTEN)]


def test_the_newest_seals_stay(made: ring.RingWriter) -> None:
    """The header has room for so many; older ones give way."""
    sealer = seals.Sealer(made)
    for _ in range(seals.SEALS + 10):
        write(made, 1)
        sealer.seal()
    assert [first for first, _, _ in found(made)] == list(range(10, seals.SEALS + 10))
    assert [first for first, _, _ in found(made, 100)] == list(range(100, seals.SEALS + 10))


def test_a_damaged_seal_is_none(made: ring.RingWriter) -> None:
    """Whatever byte of a seal is changed, it says nothing of the records."""
    write(made, 9)
    seals.Sealer(made).seal()
    for at in range(ring.SEALS_OFFSET, ring.SEALS_OFFSET + seals.SEAL.size):
        made.buffer[at] ^= 0x40
        assert found(made) == []
        made.buffer[at] ^= 0x40
    assert len(found(made)) == 1


def test_seals_are_apart_in_time(made: ring.RingWriter) -> None:
    """The agent's thread turns more often than a seal is needed."""
    sealer = seals.Sealer(made)
    for now_ns in range(seals.EVERY_NS, 5 * seals.EVERY_NS, seals.EVERY_NS // 3):
        write(made, 1)
        sealer.tick(now_ns)
    assert 3 <= len(found(made)) <= 5


def test_seals_hold_while_threads_write(made: ring.RingWriter) -> None:
    """Of four threads that write at once, every sealed record is what it was at the end."""

    def work(n: int) -> None:
        for i in range(900):
            made.write(i, n, i, n, 1, 0, n)

    sealer, writers = seals.Sealer(made), [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        sealer.seal()
    sealer.seal()
    assert all(crc == zlib.crc32(bytes_of(made, first, count)) for first, count, crc in found(made))
    last, count, _ = found(made)[-1]
    assert last + count == 3_600


def test_a_measured_process_seals_all_its_records(armed: Armed) -> None:
    """A job that ends by itself leaves no record without a checksum but those of its very end."""
    armed.start("import time, stepscope\nfor _ in range(300): stepscope.step(); time.sleep(0.001)")
    (process,) = armed.processes()
    header = (process.folder / "ring").read_bytes()[: ring.HEADER_BYTES]
    sealed = seals.read(header, 0)
    assert len(sealed) > 1
    assert sum(count for _, count, _ in sealed) >= 300


def test_what_an_agent_wrote_before_it_left_is_sealed(armed: Armed) -> None:
    """The collector takes only sealed records while the process lives, and frees the ring once the agent has left."""
    armed.start(
        "import os, stepscope\nfrom stepscope.agent import state\n"
        "for _ in range(40): stepscope.step()\n"
        "state.CURRENT.take_out('a test')\nos._exit(0)"
    )
    (process,) = armed.processes()
    first, count, _ = seals.read((process.folder / "ring").read_bytes()[: ring.HEADER_BYTES], 0)[-1]
    assert first + count >= 40
