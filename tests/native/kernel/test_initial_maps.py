"""What a process has mapped, and what its threads are called, as perf would have told it."""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path

from stepscope.native.kernel import initial_maps


def test_this_process() -> None:
    """Its interpreter's code is a file that is there; anonymous data has perf's name; a thread of ours has its own."""
    block = mmap.mmap(-1, 1 << 20)
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        there = initial_maps.read(os.getpid())
    finally:
        over.set()
        thread.join()
        block.close()
    code = [mapping for mapping in there.mappings if not mapping.data]
    assert any(Path(mapping.name).is_file() and "python" in mapping.name for mapping in code)
    assert all(mapping.at_ns == 0 and mapping.size > 0 and mapping.start < 1 << 63 for mapping in there.mappings)
    assert any(mapping.data and mapping.name == "//anon" for mapping in there.mappings)
    assert {comm.tid for comm in there.comms} >= {os.getpid(), thread.native_id}
    own = Path("/proc/self/comm").read_text("utf-8").strip()
    assert next(comm.name for comm in there.comms if comm.tid == os.getpid()) == own
