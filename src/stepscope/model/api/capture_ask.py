"""What somebody asks of a job's sidecar: the request that ``stepscope trace`` leaves in ``RUN/requests``."""

from __future__ import annotations

import msgspec

KINDS = ("ops", "native")
"""What can be captured."""
MAX_STEPS = 1_000
DEFAULT_STEPS = 10
DEFAULT_WAIT_S = 60.0
DEFAULT_RUNS = 1
"""Runs of a session are traced one by one unless more are asked for."""


class CaptureAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A request. Additions only."""

    id: str
    kind: str = "ops"
    steps: int = 0
    """0: ``DEFAULT_STEPS``, or ``DEFAULT_RUNS`` of a session."""
    task: str = ""
    """Name of the task whose calls are the steps, as ``top`` lists it; "": the job's own steps."""
    every_s: float = 0.0
    """Again after so long; 0: once, unless ``count`` says more."""
    count: int = 0
    """How often at most; 0: until the job ends where ``every_s`` is given, else once."""
    seconds: float = 0.0
    """Of a native window; 0: five."""
    ops: bool = True
    """With a native window: an op trace of the same time, which tells the ops that generated code works for."""
    keep_raw: bool = False
    """Keep the framework's own file beside what was read of it."""
    wait_s: float = DEFAULT_WAIT_S
    """How long to wait for steps, or for the task, where the job has made none yet; then a second of whatever runs is
    traced, and a task that is not there is an error."""
    force: bool = False
    """Do not wait for the budget."""
