"""What a thread did at one moment, as seen from outside."""

from __future__ import annotations

from typing import NamedTuple


class PythonPlace(NamedTuple):
    """A Python function and its running line."""

    file: str
    function: str
    line: int
    """0: unknown."""


class ThreadShot(NamedTuple):
    """A thread of a process."""

    tid: int
    name: str
    """Name that the kernel has for it."""
    state: str
    """Letter of its state: R running, S sleeping, D in the kernel without being interruptible, T stopped, Z ended."""
    waits_in: str
    """Function of the kernel in which it waits; "" if it runs, or if it may not be read."""
    frames: tuple[PythonPlace, ...] = ()
    """Python functions, innermost first; empty for a thread that runs none."""
