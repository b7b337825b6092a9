"""Do readers of foreign files read or refuse whatever they are given? Page: docs/benchmarks/fuzzing.md.

Each reader gets real files with changes that keep most of their structure (``_fuzz_mutations``). Input number N of a
reader is made of the seed, the reader's name and N alone: ``--reader NAME --only N`` makes it again. An input fails
if the reader raises anything but its refusals, takes longer than ``LIMIT_S`` or needs more than ``LIMIT_BYTES`` of
memory, or if the process dies. What was done is kept in ``.fuzz/``, so that the next run goes on behind it.

    python bench/fuzz.py --seconds 15                 all readers, a part of the time each
    python bench/fuzz.py --seconds 600 --shard 0/2    every second input, for one of two machines
    python bench/fuzz.py --reader elf --only 1234     one input again, with its traceback
    python bench/fuzz.py --write                      the page, of all that was done
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType, TracebackType

import _fuzz_readers
from _fuzz_mutations import JSON, changed
from _fuzz_readers import READERS, ROOT, Reader

LIMIT_S = 10
LIMIT_BYTES = 512 << 20
NOISE_RATIO = 0.02
BATCH = 200
PAGE = ROOT / "docs" / "benchmarks" / "fuzzing.md"


class HangError(BaseException):
    """Raised in a reader that takes too long; no reader's ``except Exception`` holds it back."""


def made(seed: int, name: str, reader: Reader, number: int, seeds: list[bytes]) -> bytes:
    """Input ``number`` of a reader."""
    chance = random.Random(f"{seed} {name} {number}")
    data = chance.choice(seeds)
    if name == "session":  # the name of the file stays
        head, _, rest = data.partition(b"\0")
        changes = JSON if head.endswith(b".json") else reader.changes
        return head + b"\0" + changed(chance, rest, changes)
    if chance.random() < NOISE_RATIO:
        return _fuzz_readers.noise(chance)
    return changed(chance, data, reader.changes)


class Watch:
    """Bounds the time of a reader, and notes what became of an input: "read", "refused", or how it failed."""

    def __init__(self, refusals: tuple[type[BaseException], ...]) -> None:
        """``refusals``: what the reader may raise."""
        self.what = "read"
        self._refusals = refusals

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, LIMIT_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if isinstance(error, self._refusals):
            self.what = "refused" if "\n" not in str(error) else f"a refusal of several lines: {error!r:.200}"
        elif isinstance(error, HangError):
            self.what = f"longer than {LIMIT_S} s"
        elif isinstance(error, MemoryError):
            self.what = f"more than {LIMIT_BYTES >> 20} MB"
        elif error is not None:
            last = traceback.extract_tb(trace)[-1]
            self.what = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {error!s:.100}"
        return True


def work(seed: int, name: str, numbers: range, at: multiprocessing.sharedctypes.Synchronized[int], out: Path) -> None:
    """Try some inputs, in a process of their own whose memory is bounded; the counts go to ``out``."""
    reader, seeds = READERS[name], list(READERS[name].seeds())
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _ring_out)
    warnings.simplefilter("ignore")
    counts: dict[str, int] = {}
    failed: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in numbers:
            at.value = number
            content, watch = made(seed, name, reader, number, seeds), Watch(reader.refusals)
            with watch:
                reader.read(content, Path(scratch))
            what = watch.what
            if what not in {"read", "refused"}:
                failed.append((number, what))
                what = "failed"
            counts[what] = counts.get(what, 0) + 1
    out.write_text(json.dumps({"counts": counts, "failed": failed}), encoding="utf-8")


def _ring_out(_number: int, _frame: FrameType | None) -> None:
    raise HangError


class Done:
    """What was tried of a reader, kept in a file."""

    def __init__(self, folder: Path, name: str, seed: int, shard: tuple[int, int]) -> None:
        """Continue with what the file says."""
        self._path = folder / f"{name}-{seed}-{shard[0]}of{shard[1]}.json"
        self.next, self.read, self.refused = shard[0] * BATCH, 0, 0
        self.failed: list[tuple[int, str]] = []
        if self._path.is_file():
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self.next, self.read, self.refused = kept["next"], kept["read"], kept["refused"]
            self.failed = [(number, what) for number, what in kept["failed"]]

    def keep(self) -> None:
        """Write it."""
        self._path.parent.mkdir(exist_ok=True)
        kept = {"next": self.next, "read": self.read, "refused": self.refused, "failed": self.failed}
        self._path.write_text(json.dumps(kept), encoding="utf-8")


def batch(done: Done, name: str, seed: int, shards: int) -> None:
    """Try the next inputs. A process that dies is a failure of the input at which it did; another tries the rest."""
    end = done.next + BATCH
    context = multiprocessing.get_context("fork")
    at = context.Value("q", -1)
    while done.next < end:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.json"
            process = context.Process(target=work, args=(seed, name, range(done.next, end), at, out))
            process.start()
            process.join()
            if out.is_file():
                said = json.loads(out.read_text(encoding="utf-8"))
                done.read += said["counts"].get("read", 0)
                done.refused += said["counts"].get("refused", 0)
                done.failed += [(number, what) for number, what in said["failed"]]
                break
            done.failed.append((at.value, f"the process died: {process.exitcode}"))
            done.next = at.value + 1
    done.next = end + (shards - 1) * BATCH
    done.keep()


def table(folder: Path) -> str:
    """Counts of all readers, of all shards and seeds."""
    rows = ["| reader | inputs | read | refused | failed |", "|---|---|---|---|---|"]
    total = 0
    for name in READERS:
        kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"{name}-[0-9]*.json"))]
        read, refused = (sum(one[key] for one in kept) for key in ("read", "refused"))
        failed = sum(len(one["failed"]) for one in kept)
        total += read + refused + failed
        rows.append(f"| {name} | {read + refused + failed:,} | {read:,} | {refused:,} | {failed} |")
    return "\n".join([*rows, f"| all | {total:,} | | | |"])


def write(folder: Path) -> None:
    """Exchange the table of the page."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition("| reader |")
    tail = rest.partition("\n\n")[2]
    PAGE.write_text(f"{head}{table(folder)}\n\n{tail}", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--reader", action="append", choices=list(READERS), help="only this one; may be given again")
    parser.add_argument("--seconds", type=float, default=60, help="for all readers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="0/1", help="I/N: batch I of every N")
    parser.add_argument("--only", type=int, help="one input, with its traceback")
    parser.add_argument("--state", type=Path, default=ROOT / ".fuzz", help="folder of what was done")
    parser.add_argument("--write", action="store_true", help="write the page and end")
    return parser.parse_args()


def again(name: str, seed: int, number: int) -> None:
    """One input, as the reader says it."""
    reader = READERS[name]
    content = made(seed, name, reader, number, list(reader.seeds()))
    with tempfile.TemporaryDirectory() as scratch:
        print(f"{len(content)} bytes: {content[:60]!r}", flush=True)
        reader.read(content, Path(scratch))


def main() -> int:
    """Try inputs until the time is over; 1 if one has failed."""
    asked = arguments()
    names = asked.reader or list(READERS)
    if asked.write:
        write(asked.state)
        return 0
    if asked.only is not None:
        again(names[0], asked.seed, asked.only)
        return 0
    shard, shards = map(int, asked.shard.split("/"))
    failed = 0
    for name in names:
        done = Done(asked.state, name, asked.seed, (shard, shards))
        before = len(done.failed)
        until = time.monotonic() + asked.seconds / len(names)
        while time.monotonic() < until:
            batch(done, name, asked.seed, shards)
        new = done.failed[before:]
        failed += len(new)
        print(f"{name:13} {done.read:8,} read {done.refused:8,} refused {len(done.failed):4} failed", flush=True)
        for number, what in new[:5]:
            print(f"    {number}: {what}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
