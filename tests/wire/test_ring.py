"""The ring: what is written can be read, under threads, wrapping, interrupts and odd values."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.conftest import Armed, Record, read_ring

from stepscope.wire import place, ring, seals

LONG = st.integers(-(2**63) + 1, 2**63 - 1)
SHORT = st.integers(0, 2**16 - 1)
FIELDS = st.tuples(LONG, LONG, LONG, st.integers(0, 2**32 - 1), SHORT, SHORT, SHORT)


@given(st.lists(FIELDS, max_size=40), st.integers(1, 12))
def test_what_is_written_is_read(rows: list[tuple[int, ...]], slots: int) -> None:
    """The last ``slots`` records lie in the ring as they were given, with their sequence numbers."""
    buffer = bytearray(ring.HEADER_BYTES + slots * ring.RECORD_BYTES)
    write, _ = ring.make_write(buffer, slots, itertools.count().__next__)
    for row in rows:
        write(*row)
    kept = list(enumerate(rows, 1))[-slots:]
    for number, row in kept:
        offset = ring.HEADER_BYTES + (number - 1) % slots * ring.RECORD_BYTES
        assert ring.RECORD.unpack_from(buffer, offset) == (*row, 0, number)


@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=3), st.floats(), st.integers(-(2**70), 2**70)), min_size=7, max_size=7
    )
)
def test_values_that_do_not_fit_never_raise_and_never_leave_a_hole(row: list[Any]) -> None:
    """Whatever is passed, the slot is complete afterwards."""
    buffer = bytearray(ring.HEADER_BYTES + 4 * ring.RECORD_BYTES)
    write, _ = ring.make_write(buffer, 4, itertools.count().__next__)
    write(*row)
    assert ring.RECORD.unpack_from(buffer, ring.HEADER_BYTES)[-1] == 1


def test_an_interrupt_passes_through_and_fills_its_slot() -> None:
    """KeyboardInterrupt in the middle of a write reaches the job; the claimed slot is complete."""

    class Interrupting:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    buffer = bytearray(ring.HEADER_BYTES + 4 * ring.RECORD_BYTES)
    write, _ = ring.make_write(buffer, 4, itertools.count().__next__)
    with pytest.raises(KeyboardInterrupt):
        write(1, 2, Interrupting(), 4, 5, 6, 7)  # type: ignore[arg-type]
    assert ring.RECORD.unpack_from(buffer, ring.HEADER_BYTES) == (1, 2, 0, 4, 5, 6, 7, 0, 1)


def test_sequence_numbers_wrap_at_32_bits() -> None:
    """The number after 2^32 - 1 is 0, and the slot is the index's all the same."""
    buffer = bytearray(ring.HEADER_BYTES + 3 * ring.RECORD_BYTES)
    write, _ = ring.make_write(buffer, 3, itertools.count(2**32 - 1).__next__)
    write(1, 2, 3, 4, 5, 6, 7)
    assert ring.RECORD.unpack_from(buffer, ring.HEADER_BYTES + (2**32 - 1) % 3 * 40)[-1] == 0


def test_threads_tear_and_lose_nothing(armed: Armed) -> None:
    """Four threads write 40,000 records: each is there once, whole, in its thread's order."""
    writer = ring.RingWriter(str(armed.folder / "ring"), 50_000)

    def work(thread: int) -> None:
        for i in range(10_000):
            writer.write(i, thread * i, -i, i, thread, thread, thread)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = read_ring(armed.folder / "ring")
    assert [record.seq for record in records] == list(range(1, 40_001))
    for n in range(1, 5):
        mine = [record for record in records if record.thread == n]
        assert mine == [Record(i, n * i, -i, i, n, n, n, 0, mine[i].seq) for i in range(10_000)]
    assert writer.written() == 40_000


def test_the_ring_wraps(armed: Armed) -> None:
    """A job that writes more than the ring holds leaves the newest records, and the count tells the rest."""
    armed.configure(slots=ring.MIN_SLOTS)
    armed.start("import stepscope\nfor _ in range(20_001): stepscope.step()")
    (process,) = armed.processes()
    assert len(process.records) == ring.MIN_SLOTS
    first, last = process.records[0].seq, process.records[-1].seq
    assert last - first + 1 == ring.MIN_SLOTS
    assert last >= 20_000


def test_a_ring_file_has_its_name_when_it_is_complete(tmp_path: Path) -> None:
    """Nothing but the finished ring lies in the folder, fully allocated."""
    ring.RingWriter(str(tmp_path / "ring"), 10_000)
    assert [path.name for path in tmp_path.iterdir()] == ["ring"]
    status = (tmp_path / "ring").stat()
    assert status.st_size == ring.HEADER_BYTES + 10_000 * ring.RECORD_BYTES
    assert status.st_blocks * 512 >= status.st_size
    assert status.st_mode & 0o777 == 0o600


def test_a_layout_has_a_version() -> None:
    """Agent and collector may be of two installations: a change of the header counts its version up."""
    kinds = "EXECUTION FUNCTION MODEL_CALL GRADIENT NEXT SYNC OP APPLY"
    found = (
        ring.UNCOMMITTED_OFFSET,
        " ".join(kind.name for kind in ring.UNCOMMITTED_KINDS),
        ring.DOING_OFFSET,
        (ring.SEALS_OFFSET, seals.SEALS, seals.SEAL.format),
    )
    assert {3: (64, kinds, 200, (512, 128, "<QIII"))}.get(ring.VERSION) == found


def test_a_look_ends_before_a_record_that_is_being_written(tmp_path: Path) -> None:
    """A thread that has claimed a slot may wait for the interpreter lock: the next look has its record."""
    made = ring.RingWriter(str(tmp_path / "ring"), ring.MIN_SLOTS)
    made.write(0, 0, 0, 0, 0, 0, 0)
    waiting = made.claim()
    made.write(2, 0, 0, 0, 0, 0, 0)
    position, rows = made.since(0, 100)
    assert (position, [row[0] for row in rows]) == (1, [0])
    ring.RECORD.pack_into(made.buffer, ring.HEADER_BYTES + waiting * ring.RECORD_BYTES, 1, 0, 0, 0, 0, 0, 0, 0, 2)
    assert [row[0] for row in made.since(position, 100)[1]] == [1, 2]


def test_a_slot_that_stays_empty_ends_no_look_for_ever(tmp_path: Path) -> None:
    """A thread that ended between the claim and the writing leaves a hole, which is passed over in the end."""
    made = ring.RingWriter(str(tmp_path / "ring"), ring.MIN_SLOTS)
    made.claim()
    for start in range(ring.MAX_UNWRITTEN):
        made.write(start, 0, 0, 0, 0, 0, 0)
    position, rows = made.since(0, 5_000)
    assert (position, len(rows)) == (ring.MAX_UNWRITTEN + 1, ring.MAX_UNWRITTEN)


def test_rebind_moves_a_writer() -> None:
    """The same function writes into another buffer after ``rebind``."""
    first, second = (bytearray(ring.HEADER_BYTES + 2 * ring.RECORD_BYTES) for _ in range(2))
    write, rebind = ring.make_write(first, 2, itertools.count().__next__)
    write(1, 0, 0, 0, 0, 0, 0)
    rebind(second, 2, itertools.count().__next__, None)
    write(2, 0, 0, 0, 0, 0, 0)
    assert [ring.RECORD.unpack_from(b, ring.HEADER_BYTES)[0] for b in (first, second)] == [1, 2]


def test_thinning_writes_every_kth_and_counts_the_rest() -> None:
    """Of a thinned kind every third record is written, marked; flagged ones and other kinds always are."""
    buffer = bytearray(ring.HEADER_BYTES + 64 * ring.RECORD_BYTES)
    counter = itertools.count()
    write, rebind = ring.make_write(buffer, 64, counter.__next__)
    entries: dict[int, ring.CountedCalls] = {}
    rebind(buffer, 64, counter.__next__, ring.Thinning(entries, 3, frozenset({4}), 1, 16))
    for i in range(9):
        write(i, 10, 0, 7, 4, 2, 1)
    write(100, 10, 0, 7, 4, 1, 1)
    write(101, 10, 0, 7, 5, 0, 1)
    rows = [ring.RECORD.unpack_from(buffer, ring.HEADER_BYTES + i * 40) for i in range(next(counter))]
    assert [(row[0], row[5]) for row in rows] == [(2, 18), (5, 18), (8, 18), (100, 1), (101, 0)]
    (entry,) = entries.values()
    assert (entry.name, entry.kind, entry.thread) == (7, 4, 1)
    assert (entry.calls, entry.counted, entry.total_ns, entry.first_ns) == (9, 6, 60, 0)


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 2**16 - 1))
def test_count_keys_are_reversible(name: int, kind: int, thread: int) -> None:
    """A key says what it counts."""
    entry = ring.new_entry(ring.count_key(name, kind, thread))
    assert (entry.name, entry.kind, entry.thread) == (name, kind, thread)


class TestPlace:
    """Where rings lie."""

    def test_on_the_folder_itself(self, tmp_path: Path) -> None:
        """A directory of the folder's own file system means the folder."""
        made = place.make_ring(str(tmp_path), [str(tmp_path.parent)], 10_000)
        assert made.path == str(tmp_path / "ring")
        assert made.slots == 10_000

    def test_elsewhere_with_a_link(self, tmp_path: Path) -> None:
        """On another file system the ring gets a name of its own, and the folder a link."""
        if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("/dev/shm is no file system of its own here")
        made = place.make_ring(str(tmp_path), ["/dev/shm"], 10_000)
        try:
            assert made.path.startswith("/dev/shm/stepscope-")
            made.write(1, 2, 3, 4, 5, 6, 7)
            assert read_ring(tmp_path / "ring")[0].arg == 3
        finally:
            Path(made.path).unlink()

    def test_a_quarter_of_what_is_free(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """On a file system with 64 MB free a ring gets at most 16 MB."""

        class Space:
            f_blocks = 1 << 20
            f_bavail = 64 << 8
            f_frsize = 4096

        monkeypatch.setattr(os, "statvfs", lambda _: Space)
        assert place.allowed_slots(str(tmp_path), ring.DEFAULT_SLOTS, []) == ((16 << 20) - 4096) // 40

    def test_network_file_systems_are_refused(self, tmp_path: Path) -> None:
        """The longest mount point that holds the path decides."""
        table = [("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "local"), "xfs")]
        (tmp_path / "local").mkdir()
        assert place.is_network(str(tmp_path / "x"), table)
        assert not place.is_network(str(tmp_path / "local" / "x"), table)
        assert place.allowed_slots(str(tmp_path), 10_000, table) == 0
        assert place.is_network(str(tmp_path), [(str(tmp_path), "fuse.sshfs")])

    def test_no_place(self, tmp_path: Path) -> None:
        """Where no directory will do the error names them."""
        with pytest.raises(ring.RingFullError, match="/nowhere"):
            place.make_ring(str(tmp_path), ["/nowhere"], 10_000)

    def test_next_directory(self, tmp_path: Path) -> None:
        """A directory that does not exist is passed over."""
        made = place.make_ring(str(tmp_path), ["/nowhere", str(tmp_path)], 10_000)
        assert made.path == str(tmp_path / "ring")
