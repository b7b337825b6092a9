"""The ring's reader gives every complete record once, and counts what is not there."""

import itertools
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.collector.agent_files.ring import HOLE_PATIENCE_NS, SEAL_PATIENCE_NS, RingReader
from stepscope.tables.errors import CaptureError
from stepscope.wire.ring import HEADER_BYTES, MIN_SLOTS, RECORD, RECORD_BYTES, RingWriter
from stepscope.wire.seals import Sealer


@pytest.fixture
def writer(tmp_path: Path) -> RingWriter:
    """The smallest ring."""
    return RingWriter(str(tmp_path / "ring"), MIN_SLOTS)


def write(writer: RingWriter, count: int, first: int = 0) -> None:
    """Records whose argument counts up."""
    for number in range(first, first + count):
        writer.write(1000 + number, 5, number, 1, 2, 3, 4)


def test_records_come_as_they_were_written(writer: RingWriter) -> None:
    """Every field of a record arrives; nothing arrives twice."""
    writer.write(11, 12, -13, 4_000_000_000, 65_535, 16, 17)
    reader = RingReader(writer.path)
    batch = reader.drain(0)
    assert batch.records.tolist() == [(11, 12, -13, 4_000_000_000, 65_535, 16, 17, 0, 1)]
    assert batch.indexes.tolist() == [0]
    assert len(reader.drain(0).records) == 0
    write(writer, 3)
    assert reader.drain(0).indexes.tolist() == [1, 2, 3]


@given(st.lists(st.integers(0, 3 * MIN_SLOTS), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_read_and_lost_add_up_to_written(tmp_path_factory: pytest.TempPathFactory, counts: list[int]) -> None:
    """However much is written between two looks: what is read and what is lost is what was written, in order."""
    writer = RingWriter(str(tmp_path_factory.mktemp("ring") / "ring"), MIN_SLOTS)
    reader = RingReader(writer.path)
    seen: list[int] = []
    total = 0
    for count in counts:
        write(writer, count, total)
        total += count
        seen += reader.drain(0).records["arg"].tolist()
        assert len(seen) + reader.lost == total
    assert seen == sorted(set(seen))
    assert reader.torn == 0
    if total:
        assert seen[-1] == total - 1


def test_nothing_is_lost_within_the_ring(writer: RingWriter) -> None:
    """A reader that comes round in time loses nothing over several laps."""
    reader = RingReader(writer.path)
    seen: list[int] = []
    for lap in range(7):
        write(writer, MIN_SLOTS - 1, lap * (MIN_SLOTS - 1))
        seen += reader.drain(0).records["arg"].tolist()
    assert seen == list(range(7 * (MIN_SLOTS - 1)))
    assert (reader.lost, reader.torn) == (0, 0)


def hole(writer: RingWriter, index: int) -> bytes:
    """Make a slot look claimed but not written; gives the record that belongs there."""
    at = HEADER_BYTES + index % writer.slots * RECORD_BYTES
    record = bytes(writer.buffer[at : at + RECORD_BYTES])
    RECORD.pack_into(writer.buffer, at, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return record


def test_hole_is_waited_for(writer: RingWriter) -> None:
    """A record that a thread is still writing is waited for, and what is behind it with it."""
    reader = RingReader(writer.path)
    write(writer, 10)
    missing = hole(writer, 4)
    assert reader.drain(0).indexes.tolist() == [0, 1, 2, 3]
    assert len(reader.drain(HOLE_PATIENCE_NS - 1).records) == 0
    at = HEADER_BYTES + 4 * RECORD_BYTES
    writer.buffer[at : at + RECORD_BYTES] = missing
    assert reader.drain(HOLE_PATIENCE_NS).indexes.tolist() == [4, 5, 6, 7, 8, 9]
    assert reader.torn == 0


@pytest.mark.parametrize("final", [False, True])
def test_hole_is_given_up(writer: RingWriter, final: bool) -> None:
    """A hole that stays, or whose writer is dead, is counted as torn and skipped."""
    reader = RingReader(writer.path)
    write(writer, 10)
    hole(writer, 4)
    hole(writer, 5)
    indexes = reader.drain(0, final=final).indexes.tolist()
    indexes += reader.drain(HOLE_PATIENCE_NS, final=final).indexes.tolist()
    assert indexes == [0, 1, 2, 3, 6, 7, 8, 9]
    assert (reader.torn, reader.lost) == (2, 0)


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    """Beyond 2**32 records the reader goes on counting in 64 bits."""
    writer = RingWriter(str(tmp_path / "ring"), MIN_SLOTS)
    start = 2**32 - 100
    counter = itertools.count(start)
    writer.rebind(writer.buffer, writer.slots, counter.__next__, None)
    reader = RingReader(writer.path, start)
    write(writer, 200)
    assert reader.drain(0).indexes.tolist() == list(range(start, start + 200))
    write(writer, 2 * MIN_SLOTS, 200)
    batch = reader.drain(0)
    assert batch.records["arg"].tolist() == list(range(200 + 2 * MIN_SLOTS - len(batch.records), 200 + 2 * MIN_SLOTS))
    assert batch.lost == 2 * MIN_SLOTS - len(batch.records)


def test_reader_goes_on_where_another_ended(writer: RingWriter) -> None:
    """A new reader that is told what is durable reads the rest, and the ring says how much is durable."""
    write(writer, 30)
    first = RingReader(writer.path)
    first.drain(0)
    first.mark_durable(20)
    second = RingReader(writer.path, 20, writable=False)
    assert second.header.reader == 20
    assert second.drain(0).indexes.tolist() == list(range(20, 30))


def test_reading_while_several_threads_write(writer: RingWriter) -> None:
    """Under concurrent writers every record arrives once, or is counted as lost."""
    reader = RingReader(writer.path)
    threads = [threading.Thread(target=write, args=(writer, 20_000, n * 20_000)) for n in range(4)]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    while any(t.is_alive() for t in threads):
        seen += reader.drain(0).records["arg"].tolist()
    seen += reader.drain(0, final=True).records["arg"].tolist()
    assert len(set(seen)) == len(seen)
    assert len(seen) + reader.lost + reader.torn == 80_000


@pytest.mark.parametrize(
    ("offset", "data", "words"),
    [
        (0, b"NOTARING", "expected a ring"),
        (8, struct.pack("<I", 99), "ring version 99"),
        (8, struct.pack("<I", 1), "ring version 1 "),  # of seven kinds that are counted in gaps
        (12, struct.pack("<I", 48), "records of 48 bytes"),
        (16, struct.pack("<Q", 2**40), "for 1099511627776 slots"),
    ],
)
def test_what_is_no_ring(writer: RingWriter, offset: int, data: bytes, words: str) -> None:
    """A file of another kind, version or size is refused with one line."""
    writer.buffer[offset : offset + len(data)] = data
    with pytest.raises(CaptureError, match=words):
        RingReader(writer.path)


def test_short_file(tmp_path: Path) -> None:
    """A file without even a header is refused."""
    (tmp_path / "short").write_bytes(b"STEPRING")
    with pytest.raises(CaptureError, match="8 bytes; expected a ring"):
        RingReader(str(tmp_path / "short"))


def test_record_dtype_is_the_wires() -> None:
    """The numpy layout and the struct that the writer packs are the same."""
    from stepscope.collector.agent_files.ring import RECORD_DTYPE

    assert RECORD_DTYPE.itemsize == RECORD_BYTES
    packed = RECORD.pack(1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert np.frombuffer(packed, RECORD_DTYPE).tolist() == [(1, 2, 3, 4, 5, 6, 7, 8, 9)]


def test_what_is_sealed_is_taken_and_the_rest_waits(writer: RingWriter) -> None:
    """Of a writer that seals, the newest records come with their seal, or after a while without."""
    reader, sealer = RingReader(writer.path), Sealer(writer)
    write(writer, 10)
    sealer.seal()
    write(writer, 5, 10)
    assert reader.drain(0).records["arg"].tolist() == list(range(10))
    assert len(reader.drain(1).records) == 0
    sealer.seal()
    assert reader.drain(2).records["arg"].tolist() == list(range(10, 15))
    write(writer, 5, 15)
    assert len(reader.drain(3).records) == 0
    assert reader.drain(3 + SEAL_PATIENCE_NS).records["arg"].tolist() == list(range(15, 20))
    write(writer, 5, 20)
    assert reader.drain(0, final=True).records["arg"].tolist() == list(range(20, 25))


@pytest.mark.parametrize("bit", range(8))
def test_every_byte_of_a_sealed_record_is_covered(tmp_path: Path, bit: int) -> None:
    """Whatever byte of a record is changed in the ring, it is not shown, it is counted, and the other batches are
    shown.
    """
    writer = RingWriter(str(tmp_path / "ring"), 10_000)
    sealer = Sealer(writer)
    for batch in range(3):
        write(writer, 20, 20 * batch)
        sealer.seal()
    for at in range(RECORD_BYTES):
        place = HEADER_BYTES + 30 * RECORD_BYTES + at
        writer.buffer[place] ^= 1 << bit
        reader = RingReader(writer.path)
        read = reader.drain(0, final=True).indexes.tolist()
        if at < RECORD_BYTES - 4:
            assert (read, reader.damaged, reader.torn) == ([*range(20), *range(40, 60)], 20, 0)
        else:  # its sequence number: it counts as never written
            assert (read, reader.damaged, reader.torn) == ([*range(30), *range(31, 60)], 0, 1)
        writer.buffer[place] ^= 1 << bit
        reader.close()


def test_a_batch_that_was_partly_overwritten_is_not_called_damaged(writer: RingWriter) -> None:
    """What the writer has reached again is lost, not damaged; the rest of it is good."""
    reader, sealer = RingReader(writer.path), Sealer(writer)
    write(writer, 2_000)
    sealer.seal()
    write(writer, MIN_SLOTS - 1_000, 2_000)
    read = reader.drain(0, final=True).records["arg"].tolist()
    assert reader.damaged == 0
    assert len(read) + reader.lost == MIN_SLOTS + 1_000
