"""Measures what windows of native stacks cost a job: its throughput in them against its neighbours in time, in one run.

The job trains under ``stepscope run``; windows of 49 and 99 samples a second alternate. Each is opened as the sidecar
opens it: at the same nice level, perf with the events that the job gives cause for, and Python stacks requested from
the agent if the window does not see them itself.
Recordings are decoded after the job has ended, so that decoding is a separate figure.

Step times vary by a tenth from one second to the next if others use the machine; so CPU time is printed too: the
additional CPU time of a step in a window, and that of perf. If all cores are busy the sum is lost.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from _stats import Interval, bootstrap
from stepscope.launcher import jobs
from stepscope.native import own_python
from stepscope.native.formats.elf import ElfFile
from stepscope.native.kernel import perf
from stepscope.native.windows.native_window import SECONDS, NativeWindow
from stepscope.wire import commands

PROGRAM = Path(__file__).with_name("programs") / "without_end.py"
RATES = (49, 99)
ALLOWED = {49: 0.02, 99: 0.03}
BESIDE_S = SECONDS
"""Seconds of the job before and after a window that it is compared with."""
APART_S = 1.5
"""Seconds between a window and its neighbours: counting and Python's samples begin before it and end after it."""
_WARM_S = 15.0
_LEAST_CHUNKS = 5
_HEADER = "window   windows   throughput lost             CPU time of a step          perf, of a core   asked"


class _Window(NamedTuple):
    hz: int
    began_ns: int
    ended_ns: int
    perf_cpu_s: float
    decode_cpu_s: float
    samples: int


class _Chunk(NamedTuple):
    """Consecutive steps of the job."""

    began_ns: int
    ended_ns: int
    cpu_ns: int

    @property
    def wall_ns(self) -> int:
        return self.ended_ns - self.began_ns


def windows(rounds: int) -> str:
    """The table."""
    can = perf.abilities()
    if not can.perf:
        return f"## Windows\n\nNot measured: {can.missing[0].text}\n"
    with tempfile.TemporaryDirectory() as folder:
        made, chunks = _run(Path(folder), can, rounds)
    rows = [_HEADER]
    for hz in RATES:
        of_rate = [window for window in made if window.hz == hz]
        found = [change for change in (_change(window, chunks) for window in of_rate) if change is not None]
        seconds = sum(window.ended_ns - window.began_ns for window in of_rate) / 1e9
        share = sum(window.perf_cpu_s for window in of_rate) / seconds if seconds else 0.0
        if found:
            lost = bootstrap([lost for lost, _ in found])
            added = bootstrap([added for _, added in found])
            rows.append(
                f"{hz:>3} Hz{len(found):>10}   {lost.percent():<26}  {added.percent():<26}  {100 * share:>13.1f} %   "
                f"at most {100 * ALLOWED[hz]:.0f} %: {_verdict(lost, ALLOWED[hz])}"
            )
    decode = median(window.decode_cpu_s for window in made)
    count = median(window.samples for window in made)
    rows.append(f"\ndecoding a window, symbols included: {decode:.2f} CPU-s for {count:.0f} samples")
    lines = (
        f"bench/programs/without_end.py (Keras fit) under `stepscope run`, windows of {SECONDS:g} s, "
        f"each against the {BESIDE_S:g} s before and after it; medians over windows with their intervals of 95 %. "
        f"{os.cpu_count()} CPUs; perf's share is that of one, its start included."
    )
    return f"## Windows\n\n{lines}\n\n```text\n" + "\n".join(rows) + "\n```\n"


def _run(folder: Path, can: perf.Abilities, rounds: int) -> tuple[list[_Window], list[_Chunk]]:
    """The windows, and all chunks of steps."""
    out = folder / "out"
    words = [sys.executable, "-m", "stepscope", "run", "-q", "--budget", "0%", "--session", str(folder / "s.stepscope")]
    with out.open("wb") as stream:
        words.append(str(PROGRAM))
        job = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.DEVNULL)
    try:
        pid, inbox = armed(job, folder / "s.stepscope")
        os.nice(own_python.NICE)
        time.sleep(_WARM_S)
        taken = [
            _open(folder / f"window{number}", can, pid, inbox, RATES[number % len(RATES)])
            for number in range(rounds * len(RATES))
        ]
        made = [_decoded(hz, window) for hz, window in taken]
    finally:
        job.terminate()
        job.wait()
    lines = (line.split() for line in out.read_text().splitlines())
    return made, [_Chunk(*map(int, line)) for line in lines if len(line) == len(_Chunk._fields)]


def armed(job: subprocess.Popen[bytes], session: Path) -> tuple[int, str]:
    """(pid of the process that trains, the folder of its commands)."""
    while job.poll() is None:
        ours = [running for running in jobs.running() if running.status.session == str(session)]
        for running in ours:
            for folder in running.run.glob(f"*/*/{commands.COMMANDS_NAME}"):
                return running.status.pid, str(folder)
        time.sleep(1)
    raise SystemExit("the job ended before it had trained")


def _open(folder: Path, can: perf.Abilities, pid: int, inbox: str, hz: int) -> tuple[int, NativeWindow]:
    """Run one window, then its neighbour."""
    seconds = SECONDS + perf.COUNT_SECONDS + 1.0
    window = NativeWindow(pid, folder, can, perf.Rates(cores=1.0, faults_per_s=0.0, hz=hz), SECONDS)
    denser = 0 if window.watch is not None else hz
    commands.send(inbox, {"kind": commands.STACKS, "hz": denser, "seconds": seconds})
    while not window.poll(time.monotonic_ns()):
        time.sleep(0.1)
    time.sleep(BESIDE_S + 2 * APART_S)
    return hz, window


def _decoded(hz: int, window: NativeWindow) -> _Window:
    taken = window.take(origin_ns=0, window=1)
    window.close()
    return _Window(
        hz=hz,
        began_ns=taken.began_ns,
        ended_ns=taken.began_ns + taken.recorded_ns,
        perf_cpu_s=taken.perf_cpu_ns / 1e9,
        decode_cpu_s=taken.decode_cpu_ns / 1e9,
        samples=sum(len(profile.samples) for profile in taken.profiles),
    )


def _change(window: _Window, chunks: list[_Chunk]) -> tuple[float, float] | None:
    """(share of throughput lost against the neighbours, added share of CPU time per step); None with too few chunks."""
    apart, beside = int(APART_S * 1e9), int(BESIDE_S * 1e9)
    inside = [chunk for chunk in chunks if window.began_ns <= chunk.began_ns and chunk.ended_ns <= window.ended_ns]
    around = [
        chunk
        for chunk in chunks
        if window.began_ns - apart - beside <= chunk.began_ns <= chunk.ended_ns <= window.began_ns - apart
        or window.ended_ns + apart <= chunk.began_ns <= chunk.ended_ns <= window.ended_ns + apart + beside
    ]
    if min(len(inside), len(around)) < _LEAST_CHUNKS:
        return None
    slower = median(chunk.wall_ns for chunk in inside) / median(chunk.wall_ns for chunk in around)
    dearer = median(chunk.cpu_ns for chunk in inside) / median(chunk.cpu_ns for chunk in around)
    return 1 - 1 / slower, dearer - 1


def _verdict(lost: Interval, allowed: float) -> str:
    """Whether the limit holds; undecided if the interval contains it."""
    if lost.low <= allowed < lost.high:
        return "undecided"
    return "holds" if lost.high <= allowed else "does not hold"


class Symbols(NamedTuple):
    """Cost of reading a library's symbols."""

    cpu_s: float
    functions: int


def symbol_load() -> Symbols:
    """Read all symbols of TensorFlow and name a thousand addresses."""
    found = importlib.util.find_spec("tensorflow")
    library = Path(found.origin or "" if found else "").with_name("libtensorflow_cc.so.2")
    began = time.process_time()
    elf = ElfFile.open(library)
    functions = elf.functions()
    for at in range(0, len(functions.name), max(1, len(functions.name) // 1000)):
        elf.name_at(int(functions.name[at]))
    return Symbols(time.process_time() - began, len(functions.name))
