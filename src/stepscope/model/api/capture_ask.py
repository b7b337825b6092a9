"""A request to a job's sidecar for a capture, which ``stepscope trace`` leaves in ``RUN/requests``."""

from __future__ import annotations

import msgspec

KINDS = ("ops", "native", "memory", "python", "syscalls")
"""Kinds of captures."""
MAX_STEPS = 1_000
DEFAULT_STEPS = 10
DEFAULT_WAIT_S = 60.0
DEFAULT_WHEN_WAIT_S = 300.0
"""Default of ``wait_s`` with a condition."""
DEFAULT_RUNS = 1
"""Default number of session runs to trace, one by one."""

OF_SIDECARS = frozenset({"joint", "begin_ns", "mark_ns", "span_ns", "clock"})
"""Fields that only a sidecar sets, which asks those of the job's other tasks."""


class CaptureAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A request. Additions only."""

    id: str
    kind: str = "ops"
    steps: int = 0
    """Number of steps; 0: ``DEFAULT_STEPS``, or ``DEFAULT_RUNS`` of a session."""
    task: str = ""
    """Name of the task whose calls are the steps, as listed by ``top``; "": the job's own steps."""
    every_s: float = 0.0
    """Interval between repetitions; 0: once, unless ``count`` says more."""
    count: int = 0
    """Maximum number of captures; 0: until the job ends if ``every_s`` is given, otherwise once."""
    seconds: float = 0.0
    """Length of a window; 0: five seconds, for memory ten."""
    ops: bool = True
    """Flag: with a native window, also trace ops, which shows the ops behind generated code."""
    keep_raw: bool = False
    """Flag: keep the framework's own file in addition to the data read from it."""
    wait_s: float = DEFAULT_WAIT_S
    """Time to wait for steps, or for the task, if the job has made none yet. After it a second of whatever runs is
    traced, and a missing task is an error."""
    when: str = ""
    """Condition that must hold in the capture (``capture_when``): captures are repeated until it does, for ``wait_s``
    seconds at most; those without it are discarded. "": none."""
    force: bool = False
    """Flag: do not wait for the budget."""
    alone: bool = False
    """Flag: of this task only, where the job has others on this host."""
    joint: str = ""
    """Of the sidecars of other tasks, asked by the one that was asked: id of the joint capture. "": none."""
    begin_ns: int = 0
    """CLOCK_MONOTONIC at which all tasks of a joint capture begin to record; 0: it is none."""
    mark_ns: int = 0
    """The same, after which the first step begins that counts."""
    span_ns: int = 0
    """Time that its steps take in the task that was asked; 0: unknown."""
    clock: str = ""
    """Clock domain of these times."""
