"""Identifies the agent's process: its folder in the run directory, and the log's first line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from stepscope.wire.env import CONFIG_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start_ticks() -> int:
    """When this process started, in clock ticks since boot."""
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def make_folder(parent: str) -> str:
    """Make the directory of this process below ``parent``, with a name that distinguishes reused pids and ``exec``.

    Raises:
        OSError: no space, no rights, or too many of that name.
    """
    base = os.path.join(parent, "%d-%d" % (os.getpid(), start_ticks()))
    for suffix in ("", *("-%d" % n for n in range(2, 1000))):
        with contextlib.suppress(FileExistsError):
            os.mkdir(base + suffix, 0o700)
            return base + suffix
    raise FileExistsError(base)


def first_line(origin: str) -> dict[str, object]:
    """The log's first line. ``origin``: how the process was created, "exec" or "fork"."""
    argv = list(getattr(sys, "orig_argv", None) or [sys.executable, *getattr(sys, "argv", ())])
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    line: dict[str, object] = {"t": "process", "at": time.monotonic_ns(), "pid": os.getpid(), "ppid": os.getppid()}
    line.update(argv=argv, executable=sys.executable, python="%d.%d.%d" % sys.version_info[:3], cwd=cwd)
    line.update(main_thread=os.getpid(), origin=origin)  # by the kernel's rule, in a forked child too
    return line


def read_config(run: str) -> dict[str, Any]:
    """The configuration that the launcher wrote for the agents of a run.

    Raises:
        OSError, ValueError, TypeError: it is missing or damaged.
    """
    with open(os.path.join(run, CONFIG_NAME), encoding="utf-8") as file:
        config = json.load(file)
    if not isinstance(config, dict):
        raise TypeError("%s is not an object" % CONFIG_NAME)
    return config
