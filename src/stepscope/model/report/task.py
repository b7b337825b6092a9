"""The tasks of a report: what the job does repeatedly."""

from __future__ import annotations

from stepscope.model.report.record_kinds import TaskKind
from stepscope.tables.place import Place
from stepscope.tables.structs import Struct


class TaskPart(Struct, frozen=True, kw_only=True):
    """A part of a task's calls with an addition: what the hooks of a MonitoredSession also fetched."""

    text: str
    count: int


class CallClass(Struct, frozen=True, kw_only=True):
    """Calls of a task that were given one shape while so many were in flight."""

    dims: tuple[int, ...] = ()
    """Sizes of the first array, at most five; empty if not recorded."""
    rounded: bool = False
    """Flag: each size is rounded up to a power of two, because the process met many shapes."""
    in_flight: int
    """Calls of the task that ran when one of these started, itself included: from ``in_flight`` to ``in_flight_to``."""
    in_flight_to: int
    count: int
    total_ns: int
    first_ns: int
    """Time of the first of these calls."""
    p50_ns: int
    p95_ns: int
    queued_ns: int | None = None
    """Part of the median beyond that of calls of this shape with no other in flight: cores shared, or waits for each
    other. Null for those, and if too few ran alone."""


class Task(Struct, frozen=True, kw_only=True):
    """A repeated activity of the job: a Session.run, a tf.function, a Keras loop, a request, a span.

    ``count`` and ``total_ns`` are of all calls, including those that were only counted; quantiles, outliers and trend
    are of the ``timed`` ones.
    """

    kind: TaskKind
    name: str
    """Name. Session.run: the user's fetches. tf.function, span: its name. Keras: the loop or its compiled function."""
    pid: int
    """Process id."""
    count: int
    exact: bool = True
    """Flag: false if records of this process were lost; ``count`` is then a lower bound."""
    timed: int
    """Number of individually timed calls. Less than ``count`` if a job is so fast that most calls are only counted."""
    first_ns: int
    last_ns: int
    """End of the last call since session start; ``first_ns`` is the start of the first."""
    rate_per_s: float | None = None
    """Calls per second from the first to the last; null for a single one."""
    total_ns: int
    """Time of all calls, with ``usual_ns`` for each that was only counted. Tasks may run inside others: totals do not
    add up."""
    mean_ns: int
    usual_ns: int = 0
    """Mean without the slow first calls and those that traced a function."""
    p50_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    outliers: int
    """Number of calls that took more than twice the median and lie far above the rest (Tukey's outer fence)."""
    trend_ratio: float | None = None
    """Change of the median call time over the run, as a share of it: 0.3 is 30 % slower at the end. 0: none beyond
    noise. Null: too few timed calls."""
    where: Place | None = None
    """Place where it is defined, or where the user calls it."""
    slow_first: int = 0
    """Number of first calls until one took no more than three medians."""
    first_call_ns: int = 0
    """Time of the first call."""
    classes: tuple[CallClass, ...] = ()
    """Calls by shape and calls in flight, at most 40; empty if there is one class, or some calls were only counted."""
    added: tuple[TaskPart, ...] = ()
    """Fetches of hooks, for Session.run in a MonitoredSession, in the same runs, each with its number of runs."""
