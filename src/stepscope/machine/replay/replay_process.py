"""The process that replays ops: the job's Python, niced, without our agent; what it says is read as it says it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from stepscope.model.session.replays import Roofs, Variant
from stepscope.wire.env import ALWAYS_VARIABLE, RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.session.replays import ReplayOrder

PROGRAM = Path(__file__).with_name("op_replay.py")
PATIENCE_S = 3.0
"""Time beyond the order's after which the process is killed: an op that is running is not waited for."""
MAX_BYTES = 1 << 20
"""Output that is read at most."""
NOTHING_WRITTEN = {"KERAS_HOME": "/dev/null/none", "PYTHONDONTWRITEBYTECODE": "1"}
"""Keras writes keras.json into the user's home when it is imported, and Python writes compiled modules: not for us."""


class ReplayLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the program."""

    what: Literal["begin", "fixed", "op", "roofs", "busy", "end"]
    tensorflow: str = ""
    import_s: float = 0.0
    key: str = ""
    variant: Variant = ""
    threads: int = 0
    fastest_ns: float = 0.0
    median_ns: float = 0.0
    slow_ns: float = 0.0
    warm_ns: float = 0.0
    runs: int = 0
    waited_ratio: float = 0.0
    problem: str = ""
    others: float = 0.0
    flops_per_s: float = 0.0
    memory_bytes_per_s: float = 0.0
    copies: tuple[tuple[int, float], ...] = ()
    fixed_ns: float = 0.0

    def roofs(self) -> Roofs:
        """The roofs of a line about them."""
        return Roofs(
            flops_per_s=self.flops_per_s,
            memory_bytes_per_s=self.memory_bytes_per_s,
            copies=self.copies,
            fixed_ns=self.fixed_ns,
        )


def run(python: str, order: ReplayOrder, given: Mapping[str, str]) -> tuple[tuple[ReplayLine, ...], str]:
    """What the program measured, and why it ended early; "" if it did not.

    Args:
        python: the job's Python.
        order: what is to be measured.
        given: the environment of the job, without our agent.
    """
    environment = {name: value for name, value in given.items() if name != RUN_VARIABLE}
    environment |= {ALWAYS_VARIABLE: "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"} | NOTHING_WRITTEN
    try:
        process = subprocess.Popen(
            [python, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return (), f"{python} cannot be run: {error.strerror}"
    try:
        text, ended = _read(process, order)
    finally:
        _end(process)
    lines = _lines(text)
    if not ended:
        return lines, "it took longer than its time"
    if not lines or lines[-1].what != "end":
        return lines, "it ended early"
    return lines, ""


def _read(process: subprocess.Popen[bytes], order: ReplayOrder) -> tuple[bytes, bool]:
    """All output, and whether it ended by itself."""
    if process.stdin is None or process.stdout is None:
        return b"", False
    text = b""
    until = time.monotonic() + order.seconds + PATIENCE_S
    try:
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.close()
    except OSError:  # it has ended already
        return text, True
    while len(text) < MAX_BYTES:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return text, False
        part = os.read(process.stdout.fileno(), 1 << 16)
        if not part:
            return text, True
        text += part
    return text, False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it, and the children that measure for it."""
    with contextlib.suppress(OSError):  # it has ended, and its children too
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def _lines(text: bytes) -> tuple[ReplayLine, ...]:
    found = []
    for line in text.splitlines():
        try:
            found.append(msgspec.json.decode(line, type=ReplayLine))
        except (msgspec.DecodeError, ValueError):  # a library wrote to stdout
            continue
    return tuple(found)
