"""The readers of bench/fuzz.py: what each reads, from which real files it begins, and how it may refuse."""

from __future__ import annotations

import functools
import gzip
import json
import lzma
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.native.perf_file import CALL, DWARF, TID_OF, PerfFile
from tests.readers import xspace

from _fuzz_mutations import BINARY, JSON, PROTOBUF, TEXT, Change
from stepscope.check.source import source
from stepscope.check.source.source import SkippedError
from stepscope.collector.agent_files.log import LogTail
from stepscope.collector.agent_files.ring import RingReader
from stepscope.model.log import events
from stepscope.native.formats import perf_data
from stepscope.native.formats.eh_frame import UnwindTable
from stepscope.native.formats.elf import ElfFile
from stepscope.readers import run_metadata
from stepscope.readers.chrome import trace_events
from stepscope.readers.stacks import detect, perf_script, pprof, speedscope
from stepscope.readers.xplane import xspace as xplane
from stepscope.sessions import bundle
from stepscope.store import open_session, whole_files
from stepscope.tables.errors import StepscopeError
from stepscope.tables.optrace import OpTrace
from stepscope.wire.log import LogWriter
from stepscope.wire.ring import MIN_SLOTS, RingWriter
from stepscope.wire.seals import Sealer

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
FOLDED = b"main;train;step 12\nmain;train;read_batch 30\nmain;[unknown];gemm_[k] 7\n# remark\n"
PERF_TEXT = b"""python  1234/1240  100.000200:     250000 cpu-clock:
\t    7f10 sgemm_kernel+0x20 (/usr/lib/libopenblas.so.0)
\t    55aa _PyEval_EvalFrameDefault+0x1e9 (/usr/bin/python3.11)

python  1234/1241  100.010400:     250000 cpu-clock:
\tffffffff81 do_syscall_64 ([kernel.kallsyms])
\t    7f20 __read (/usr/lib/libc.so.6)

"""
EVENTS_KEPT = 25


class Reader(NamedTuple):
    """``read`` gets a file's bytes and a scratch folder."""

    seeds: Callable[[], Sequence[bytes]]
    changes: Sequence[Change]
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[BaseException], ...] = (StepscopeError,)


def data(name: str) -> bytes:
    """A file of tests/data."""
    raw = (DATA / name).read_bytes()
    return lzma.decompress(raw) if name.endswith(".xz") else raw


def short_trace(name: str) -> bytes:
    """A Chrome trace of which some events are kept, of each kind."""
    trace = json.loads(data(name))
    events_of = trace["traceEvents"] if isinstance(trace, dict) else trace
    step = max(1, len(events_of) // EVENTS_KEPT)
    kept = events_of[: EVENTS_KEPT // 2] + events_of[::step]
    if isinstance(trace, dict):
        return json.dumps({**trace, "traceEvents": kept}).encode()
    return json.dumps(kept).encode()


def all_of(trace: OpTrace) -> None:
    """What is read later of an op trace."""
    for name in trace.stats.event_names():
        trace.ints(name)
        trace.texts(name)
    for name in trace.stats.meta_names():
        trace.stats.of_metas(name)


def made_xspace() -> list[bytes]:
    """Spaces as TensorFlow's profiler writes them, small."""
    stats = (("group_id", 3), ("step_num", 4), ("tf_op", "a/MatMul:MatMul"), ("bytes", 1.5))
    events_of = tuple(xspace.Event(f"op{n}", 1000 * n, 900, stats[: n % 5]) for n in range(12))
    line = xspace.Line("python", events_of)
    return [xspace.space(xspace.Plane("/host:CPU", (line, line))), xspace.space(xspace.Plane("/device:GPU:0", (line,)))]


def perf_file() -> bytes:
    """A recording of perf."""
    file = PerfFile([("cpu-clock/freq=99/", DWARF), ("page-faults", DWARF), ("syscalls:sys_enter_madvise", CALL)])
    file.mmap(0, 0x1000, 0x2000, "/usr/lib/libx.so", offset=0x400)
    file.comm(5, TID_OF, "tf_Compute")
    file.sample(1, 30, ip=0x1234, address=0x9999, period=200, registers=range(17), stack=b"12345678")
    file.sample(0, 20, ip=0x1111, kernel=(0xFFFF1, 0xFFFF2), registers=range(17), stack=b"abcdefghij")
    file.lost(7)
    return file.encode()


def libraries() -> list[bytes]:
    """Small libraries of the Python that runs."""
    folder = Path(resource.__file__).parent
    return [path.read_bytes() for path in sorted(folder.glob("*.so"), key=lambda p: p.stat().st_size)[:3]]


def read_elf(content: bytes, scratch: Path) -> None:
    """Symbols, build id and what it needs."""
    path = scratch / "file.so"
    path.write_bytes(content)
    elf = ElfFile.open(path)
    try:
        elf.functions()
        str(elf.build_id)
        elf.dynamic()
        elf.address_of(4096)
        elf.functions_named("Py")
    finally:
        elf.close()


def read_dwarf(content: bytes, scratch: Path) -> None:
    """Unwind rules along the code."""
    path = scratch / "file.so"
    path.write_bytes(content)
    table = UnwindTable(ElfFile.open(path))  # a view into the file, which lives as long
    for address in range(0x1000, 0x6000, 0x1F3):
        table.row(address)


@functools.cache
def profile() -> tuple[bytes, bytes]:
    """A pprof and a speedscope file of the same stacks."""
    (read,) = detect.read(FOLDED, where="seed")
    return gzip.decompress(pprof.write(read)), speedscope.write(read)


def read_ring(content: bytes, scratch: Path) -> None:
    """All of a ring whose writer is dead."""
    path = scratch / "ring"
    path.write_bytes(content)
    reader = RingReader(str(path), writable=False)
    try:
        reader.drain(0)
        reader.drain(1 << 40, final=True)
        reader.take_untold(1 << 62)
    finally:
        reader.close()


def ring() -> bytes:
    """A ring of the smallest size that has wrapped, sealed."""
    with tempfile.TemporaryDirectory() as folder:
        writer = RingWriter(f"{folder}/ring", MIN_SLOTS)
        sealer = Sealer(writer)
        for n in range(MIN_SLOTS + 500):
            writer.write(time.monotonic_ns(), n, -n, n % 9, 18, 0, 1)
            if n % 1000 == 0:
                sealer.seal()
        return Path(folder, "ring").read_bytes()


def log() -> bytes:
    """Lines of an agent's log."""
    with tempfile.TemporaryDirectory() as folder:
        writer = LogWriter(folder)
        writer.write({"t": "process", "at": 1, "pid": 5, "ppid": 1, "argv": ["train.py", "--x"]})
        writer.write({"t": "name", "at": 2, "id": 1, "text": "work", "file": "/job/train.py", "line": 3})
        writer.write({"t": "batch", "at": 3, "loop": 2, "role": "train", "samples": 32, "steps": 4})
        writer.write({"t": "end", "at": 9, "records": 3, "lost_lines": 0, "thread_cpu_ns": 5})
        writer.close()
        return next(Path(folder).glob("log-*")).read_bytes()


def read_log(content: bytes, scratch: Path) -> None:
    """Its lines, and the events in them."""
    (scratch / "log-000001.jsonl").write_bytes(content)
    tail = LogTail(str(scratch))
    try:
        for line in tail.read(final=True):
            try:
                events.decode(line.text)
            except ValueError:  # msgspec's errors derive from it
                continue
    finally:
        tail.close()


@functools.cache
def stored() -> Path:
    """A session of a few kB, with records, log lines, stacks and a manifest."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-")) / "seed.stepscope"
    shutil.copytree(DATA / "mirrored-replicas" / "slow.stepscope", folder)
    return folder


def session_files() -> list[bytes]:
    """Each file of the session, its name in front."""
    root = stored()
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return [path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() for path in paths]


def read_session(content: bytes, scratch: Path) -> None:
    """The session with one file exchanged; half of the checksums are made right again, for what lies behind them."""
    name, _, data_of = content.partition(b"\0")
    root = scratch / "a.stepscope"
    shutil.copytree(stored(), root, dirs_exist_ok=True)
    if len(data_of) % 2 and data_of[-4:] == b"PAR1":
        data_of = whole_files.sealed(data_of)
    (root / name.decode()).write_bytes(data_of)
    session = open_session(root)
    for one in session.op_traces:
        all_of(one.load())
    shutil.rmtree(root)


def pack() -> bytes:
    """The same session, packed."""
    with tempfile.TemporaryDirectory() as folder:
        path, _ = bundle.pack(stored(), Path(folder, "a.stepscope.zip"))
        return path.read_bytes()


def read_pack(content: bytes, scratch: Path) -> None:
    """A pack, in place."""
    path = scratch / "a.stepscope.zip"
    path.write_bytes(content)
    open_session(path)


def sources() -> list[bytes]:
    """Programs as users write them."""
    return [path.read_bytes() for path in sorted((ROOT / "bench" / "cases").glob("0*/slow.py"))[:6]]


def notebooks() -> list[bytes]:
    """The same programs as cells."""

    def cell(text: bytes) -> dict[str, object]:
        return {"cell_type": "code", "source": text.decode().splitlines(keepends=True), "outputs": [], "metadata": {}}

    head = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    words = {"cell_type": "markdown", "source": ["# x"], "metadata": {}}
    return [json.dumps({**head, "cells": [words, cell(text)]}).encode() for text in sources()[:3]]


def noise(chance: random.Random) -> bytes:
    """Bytes that are nothing."""
    return np.random.default_rng(chance.randrange(1 << 32)).bytes(chance.randint(0, 300))


def chrome_seeds() -> list[bytes]:
    """Traces of PyTorch and Horovod."""
    names = ("traced-ranks/compute-rank0.json.xz", "gpu-h100/torch-loader-bound.json.xz", "horovod-0.28.1/cached.json")
    return [short_trace(name) for name in names]


READERS: dict[str, Reader] = {
    "xplane": Reader(made_xspace, PROTOBUF, lambda content, _: all_of(xplane.read_bytes(content, "f"))),
    "chrome": Reader(chrome_seeds, JSON, lambda content, _: all_of(trace_events.read_bytes(content, "f"))),
    "run-metadata": Reader(
        lambda: [data("run-metadata-2.21/ps-worker.pb")],
        PROTOBUF,
        lambda content, _: all_of(run_metadata.read_bytes(content, "f")),
    ),
    "perf-script": Reader(lambda: [PERF_TEXT], TEXT, lambda content, _: perf_script.read(content, where="f")),
    "perf-data": Reader(lambda: [perf_file()], BINARY, lambda content, _: perf_data.decode(content, "f")),
    "elf": Reader(libraries, BINARY, read_elf, (StepscopeError, OSError)),
    "dwarf": Reader(libraries, BINARY, read_dwarf, (StepscopeError, OSError)),
    "pprof": Reader(lambda: [profile()[0]], PROTOBUF, lambda content, _: detect.read(content, where="f")),
    "speedscope": Reader(lambda: [profile()[1]], JSON, lambda content, _: detect.read(content, where="f")),
    "folded": Reader(lambda: [FOLDED], TEXT, lambda content, _: detect.read(content, where="f")),
    "session": Reader(session_files, BINARY, read_session),
    "pack": Reader(lambda: [pack()], BINARY, read_pack),
    "ring": Reader(lambda: [ring()], BINARY, read_ring, (StepscopeError, OSError)),
    "log": Reader(lambda: [log()], (*TEXT, *JSON), read_log),
    "notebook": Reader(notebooks, JSON, lambda content, _: source.read("f.ipynb", content), (SkippedError,)),
    "source": Reader(sources, TEXT, lambda content, _: source.read("f.py", content), (SkippedError,)),
}
