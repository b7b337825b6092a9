"""Are real anomalies of network and disk reported, and look-alikes left alone?

Each is made on this machine around one training loop (``programs/fed.py``): a network namespace with a server behind a
pair of interfaces whose rates a queueing discipline limits, a control group with limits for reading and for memory, a
loop device. Every row is the loop with the anomaly and with a look-alike: the same chart of bytes per second for
another reason, or the same traffic without a cost. Needs root, iproute2 and control groups of version 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import _far

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
PAGE = ROOT / "docs" / "benchmarks" / "anomalies.md"
GROUPS = Path("/sys/fs/cgroup")
GROUP = "stepscope-anomalies"
MIB = 1 << 20
STREAM = ("--source", "stream")
PIECES = ("--source", "pieces", "--record-bytes", "100000")
UPLOADS = ("--source", "pieces", "--record-bytes", "250000", "--piece-bytes", "1000000", "--upload", "--step-ms", "140")
"""Arguments that request 1 MB in 150 ms piece by piece, so that each piece pays for a queue on the way out."""
RANDOM = ("--source", "file", "--record-bytes", "16384", "--random-reads", "--batch", "8", "--step-ms", "10")
WHOLE = ("--source", "file", "--record-bytes", "262144", "--step-ms", "20", "--seconds", "40")
HEAD = """# Anomalies of network, disk and utilisation, made for real

Printed by `make bench-anomalies ARGS=--write`. *said*: the codes of all findings above info, the first first, and the
title of the one that is meant; *left alone*: the look-alike, and what was said of it. Rows of GPUs replay readings that
were written down, beside a loop on the CPU. Server, loop and what stepscope runs beside it share one of two CPUs, other
programs the other.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The environment of the loop. Rates of the network in Mbit/s, of the disk in bytes a second; 0 for no limit."""

    arguments: Sequence[str]
    down: float = 0
    up: float = 0
    queue_ms: int = 50
    read_bytes: int = 0
    read_requests: int = 0
    memory: int = 0
    file_bytes: int = 0
    """Size of the file that is read; 0 for none."""
    cached: bool = False
    """Whether the file is in the page cache before the loop starts."""
    loop_device: bool = False
    gpu: Sequence[int] = ()
    """Percent for which a GPU is busy, second by second; the last value persists."""
    gpu_memory: int = 75_000
    """MB reserved on the GPU, of 80,000."""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One anomaly and what looks like it."""

    code: str
    real: Setting
    alike: Setting


ROWS = {
    "capacity": Row(
        code="NET002",
        real=Setting(words="a stream through 40 Mbit/s", arguments=STREAM, down=40),
        alike=Setting(words="the stream unshaped, decoding 10 ms a record", arguments=(*STREAM, "--decode-ms", "10")),
    ),
    "choppy": Row(
        code="NET001",
        real=Setting(words="pieces of 8 MB, fetched whole, 80 Mbit/s", arguments=(*PIECES, "--step-ms", "35"), down=80),
        alike=Setting(
            words="the same, fetched ahead",
            arguments=("--source", "ahead", "--record-bytes", "100000", "--step-ms", "60"),
            down=80,
        ),
    ),
    "uploads": Row(
        code="NET003",
        real=Setting(words="uploads through 4 Mbit/s with a queue of 0.7 s", arguments=UPLOADS, up=4, queue_ms=700),
        alike=Setting(words="the same uploads, the way out free", arguments=UPLOADS),
    ),
    "limit": Row(
        code="DSK001",
        real=Setting(
            words="random reads of 16 kB, the group may read 6 MB/s",
            arguments=RANDOM,
            read_bytes=6_000_000,
            file_bytes=2048 * MIB,
        ),
        alike=Setting(
            words="the same from the page cache, decoding 3 ms a record",
            arguments=(*RANDOM, "--decode-ms", "3"),
            file_bytes=512 * MIB,
            cached=True,
            read_bytes=6_000_000,
        ),
    ),
    "busy": Row(
        code="DSK001",
        real=Setting(
            words="random reads of 16 kB, a loop device with 400 requests a second",
            arguments=RANDOM,
            read_requests=400,
            file_bytes=2048 * MIB,
            loop_device=True,
        ),
        alike=Setting(
            words="the same device without a limit", arguments=RANDOM, file_bytes=2048 * MIB, loop_device=True
        ),
    ),
    "memory": Row(
        code="DSK001",
        real=Setting(
            words="0.3 GB again and again, 25 MB/s, memory for the program alone",
            arguments=WHOLE,
            read_bytes=25_000_000,
            memory=480 * MIB,
            file_bytes=300 * MIB,
        ),
        alike=Setting(
            words="the same with memory for both",
            arguments=WHOLE,
            read_bytes=25_000_000,
            memory=4096 * MIB,
            file_bytes=300 * MIB,
            cached=True,
        ),
    ),
    "dips": Row(
        code="UTL001",
        real=Setting(words="the loop stops for 1.8 s every 5 s", arguments=("--flush-s", "5", "--seconds", "45")),
        alike=Setting(words="the loop without stops", arguments=("--seconds", "30")),
    ),
    "late": Row(
        code="GPU001",
        real=Setting(words="data is loaded for 25 s first", arguments=("--load-s", "25"), gpu=(*[0] * 30, 90)),
        alike=Setting(words="data is loaded while it trains", arguments=(), gpu=(*[0] * 5, 90)),
    ),
    "full": Row(
        code="GPU002",
        real=Setting(words="a GPU that is busy 98 % of the time", arguments=(), gpu=(98,)),
        alike=Setting(words="one that pauses every third second", arguments=(), gpu=(98, 98, 60) * 40),
    ),
    "idle": Row(
        code="GPU003",
        real=Setting(words="a GPU that nobody uses", arguments=(), gpu=(0,), gpu_memory=300),
        alike=Setting(words="one that is used a third of the time", arguments=(), gpu=(33,)),
    ),
    "headroom": Row(
        code="GPU004",
        real=Setting(words="8 of 80 GB live", arguments=("--gpu-live", "8000000000"), gpu=(40,)),
        alike=Setting(words="60 of 80 GB live", arguments=("--gpu-live", "60000000000"), gpu=(40,)),
    ),
}
"""Anomalies by name. A dip is reported as information, because another finding states its cost; so is a GPU's use."""


def quiet(*command: str) -> None:
    """Run a command that must not fail."""
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def far_server(setting: Setting) -> Iterator[Sequence[str]]:
    """A server in a separate namespace, behind the setting's rates. Yields the arguments that name it."""
    server = (sys.executable, str(PROGRAMS / "far_data.py"))
    with _far.served(server, down=setting.down, up=setting.up, queue_ms=setting.queue_ms) as address:
        yield ("--address", address)


@contextmanager
def file_of(setting: Setting, folder: Path) -> Iterator[Sequence[str]]:
    """A file of random bytes on the disk, or a loop device over it. Yields the arguments that name it."""
    path = folder / "data"
    with path.open("wb") as file:
        for _ in range(setting.file_bytes // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if setting.cached:
        path.read_bytes()
    if not setting.loop_device:
        yield ("--path", str(path))
        return
    device = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", str(path)], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        yield ("--path", device)
    finally:
        quiet("losetup", "--detach", device)


@contextmanager
def group_of(setting: Setting, folder: Path) -> Iterator[Sequence[str]]:
    """A control group with the setting's limits. Yields the command that enters it."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    limits = (
        ("blkio", "blkio.throttle.read_bps_device", f"{device} {setting.read_bytes}", setting.read_bytes),
        ("blkio", "blkio.throttle.read_iops_device", f"{device} {setting.read_requests}", setting.read_requests),
        ("memory", "memory.limit_in_bytes", str(setting.memory), setting.memory),
    )
    wanted = [(GROUPS / controller / GROUP, file, line) for controller, file, line, limit in limits if limit]
    groups = sorted({group for group, _, _ in wanted})
    for group, file, line in wanted:
        group.mkdir(exist_ok=True)
        (group / file).write_text(line)
    enter = "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups)
    try:
        yield ("sh", "-c", f'{enter}exec "$@"', "sh")
    finally:
        for group in groups:
            _remove(group)


@contextmanager
def gpu_of(setting: Setting, folder: Path) -> Iterator[Sequence[str]]:
    """A device that replays the setting's readings, visible to the command. Yields the command prefix."""
    library, readings = folder / "libnvidia-ml.so.1", folder / "readings"
    quiet(
        "gcc",
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        str(library),
        str(ROOT / "tests" / "collector" / "samplers" / "fake_nvml.c"),
    )
    lines = (f"{busy} {busy // 2} {setting.gpu_memory}000000 80000000000 100 100 0" for busy in setting.gpu)
    readings.write_text("\n".join(lines) + "\n")
    driver = "mount -t tmpfs none /proc/driver && mkdir -p /proc/driver/nvidia/gpus/0000:01:00.0"
    variables = (f"LD_LIBRARY_PATH={folder}", f"FAKE_NVML={readings}")
    yield ("unshare", "--mount", "env", *variables, "sh", "-c", f'{driver} && exec "$@"', "sh")


def _remove(group: Path) -> None:
    for _ in range(50):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The report of one run."""

    findings: Sequence[Mapping[str, object]]
    samples_per_s: float

    def title(self, code: str) -> str:
        """Title of the finding with this code; "" without one."""
        return next((str(f["title"]) for f in self.findings if f["code"] == code), "")

    def codes(self) -> str:
        """Codes of all findings above info, in the report's order."""
        return ", ".join(str(f["code"]) for f in self.findings if f["severity"] != "info") or "nothing"


def measure(setting: Setting, python: str, keep: Path | None) -> Said:
    """Run the loop under stepscope, in its setting."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "bench")))
        arguments = list(setting.arguments)
        if "stream" in arguments or "pieces" in arguments or "ahead" in arguments:
            arguments += stack.enter_context(far_server(setting))
        if setting.file_bytes:
            arguments += stack.enter_context(file_of(setting, folder))
        enter = stack.enter_context(group_of(setting, folder))
        device = stack.enter_context(gpu_of(setting, folder)) if setting.gpu else ()
        command = [*device, sys.executable, "-m", "stepscope", "run", "--quiet", "--report-json", "report.json", "--"]
        done = subprocess.run(
            [*command, *enter, python, str(PROGRAMS / "fed.py"), *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        if done.returncode:
            raise RuntimeError(f"{setting.words}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        report = json.loads((folder / "report.json").read_text())
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", setting.words)
            (keep / f"{name}.json").write_text(json.dumps(report))
            quiet("cp", "-r", str(next(folder.glob("*.stepscope"))), str(keep / f"{name}.stepscope"))
        said = json.loads(done.stdout.strip().splitlines()[-1])
        return Said(findings=report["findings"], samples_per_s=said["samples_per_s"])


def main() -> int:
    """Run the requested rows and print the results; 1 if an anomaly is missed or a look-alike is reported."""
    parser = argparse.ArgumentParser(description="anomalies of network, disk and utilisation, made for real")
    parser.add_argument("--only", default=",".join(ROWS), help="of " + ", ".join(ROWS))
    parser.add_argument("--python", default=sys.executable, help="the job's Python")
    parser.add_argument("--keep", type=Path, help="folder for sessions and reports")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/anomalies.md")
    options = parser.parse_args()
    lines = ["| anomaly | as | said | left alone |", "|---|---|---|---|"]
    wrong = 0
    for name in options.only.split(","):
        row = ROWS[name]
        real, alike = (measure(setting, options.python, options.keep) for setting in (row.real, row.alike))
        wrong += (not real.title(row.code)) + bool(alike.title(row.code))
        lines.append(
            f"| {row.code} | {row.real.words}: {real.samples_per_s:.1f} samples/s | "
            f"{real.codes()}: {real.title(row.code) or '**not told**'} | {row.alike.words}: "
            f"{alike.samples_per_s:.1f} samples/s; {'**told**, ' if alike.title(row.code) else ''}{alike.codes()} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
