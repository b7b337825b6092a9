"""Programs that run in copies of one process, which has imported TensorFlow and Keras: that takes 5 s of CPU each time.

A copy is armed after the import, which the agent supports as it does for what a notebook has imported before. What a
test asserts of the import itself, of start-up or of whole stacks needs a process without this.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRAMEWORK = ("TF_", "KERAS_", "CUDA_", "XLA_", "OMP_")
"""Beginnings of the variables that frameworks read while they are imported."""
SERVER = Path(__file__).with_name("copies_server.py")
PATIENCE_S = 200.0
"""Time after which a program is killed."""


class Copies:
    """The process that is copied."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """``env``: what frameworks read of it while they are imported."""
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER)],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether it still makes copies."""
        return self._process.poll() is None

    def run(
        self, program: str | Path, env: Mapping[str, str], output: Path, args: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program (a script's path, or source) to its end.

        Args:
            program: what runs.
            env: all of its environment.
            output: a folder for what it prints.
            args: its arguments.

        Raises:
            subprocess.TimeoutExpired: it was killed.
        """
        path = str(program) if isinstance(program, Path) else ""
        source = program.read_text("utf-8") if isinstance(program, Path) else program
        argv = [path or "-c", *args]
        asked = {"argv": argv, "source": source, "env": dict(env), "cwd": str(Path.cwd()), "output": str(output)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], PATIENCE_S)[0]:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise subprocess.TimeoutExpired(argv, PATIENCE_S)
        code = int(self._process.stdout.readline())
        printed = ((output / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(argv, code, *printed)

    def end(self) -> None:
        """Make no more copies."""
        self._process.communicate()


_known: dict[tuple[tuple[str, str], ...], Copies] = {}


def run(program: str | Path, env: Mapping[str, str], folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a program (a script's path, or source) to its end; what it prints goes to a folder below ``folder``."""
    output = folder / "output"
    output.mkdir(exist_ok=True)
    return of(env).run(program if isinstance(program, Path) else textwrap.dedent(program), env, output, args)


def of(env: Mapping[str, str]) -> Copies:
    """The process to copy for programs with this environment; it is made at the first call."""
    read = tuple(sorted((key, value) for key, value in env.items() if key.startswith(FRAMEWORK)))
    found = _known.get(read)
    if found is None or not found.alive:
        dropped = ("STEPSCOPE_RUN", "PYTHONPATH")
        found = _known[read] = Copies({key: value for key, value in env.items() if key not in dropped})
    return found


@atexit.register
def _end() -> None:
    for one in _known.values():
        one.end()
