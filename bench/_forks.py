"""Runs the programs of pairs in forks of one process that has TensorFlow, counting CPU time: for a busy machine.

On a busy machine a fresh process takes a minute until TensorFlow is imported, and wall-clock milliseconds are random.
CPU time of the process, over all threads, replaces them: not for pairs about waiting, parallel calls or memory, and not
for programs that fork themselves.
"""

from __future__ import annotations

import importlib
import os
import runpy
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import _pairs
from _pairs import Ran

UNFIT = frozenset(
    {"DEV005", "KER009", "KER012", "TFD001", "TFD003", "TFD004", "TFD005", "TFD008", "TFD012", "TFD013", "TFD022"}
)
"""Pairs about something that CPU time does not show, or that fork."""
_PIECE = 1 << 16


def prepare(environ: Mapping[str, str]) -> None:
    """Import what the programs import and nothing more, so that no TensorFlow thread runs yet."""
    os.environ.update(environ)
    for name in ("numpy", "keras", "tensorflow"):
        importlib.import_module(name)


def run(program: Path, timeout: float) -> Ran:
    """Run a program in a fork of this process.

    Raises:
        RuntimeError: it failed, took too long, or its last line is not what a pair prints.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be(program, writing)
    os.close(writing)
    output, end = bytearray(), time.monotonic() + timeout
    while time.monotonic() < end:
        if select.select([reading], [], [], 1.0)[0]:
            piece = os.read(reading, _PIECE)
            if not piece:
                break
            output += piece
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise RuntimeError(f"{program}: exit code {status}")
    return _pairs.parse(output.decode(errors="replace"), program)


def _be(program: Path, output: int) -> NoReturn:
    """Execute the program in this process."""
    code = 1
    try:
        os.dup2(output, 1)
        os.chdir(program.parent)
        sys.argv = [str(program)]
        time.perf_counter = time.process_time
        runpy.run_path(str(program), run_name="__main__")
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)
