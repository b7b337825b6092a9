"""The wall between our code and the job: our exceptions stay here, the job's pass through."""

from __future__ import annotations

import functools
import os

from stepscope.agent.core import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

MAX_FAILURES = 3
"""Number of failures after which a probe is removed."""


class Failures:
    """Counts the failures of each probe; the third removes the probe."""

    def __init__(self, diagnostic: Callable[[str, str], object], uninstall: Callable[[str], object]) -> None:
        """``uninstall``: restores what a probe has patched."""
        self._diagnostic = diagnostic
        self._uninstall = uninstall
        self._counts: dict[str, int] = {}

    def of(self, probe: str) -> int:
        """Number of failures of that probe's code."""
        return self._counts.get(probe, 0)

    def add(self, where: str, error: BaseException) -> None:
        """Record a failure of ours; a probe's third failure removes it."""
        probe = where.partition(".")[0]
        self._counts[probe] = self._counts.get(probe, 0) + 1
        text = "%s: %s: %s%s" % (where, type(error).__name__, error, place_of(error))
        self._diagnostic("DX901", text)
        if self._counts[probe] == MAX_FAILURES:
            self._diagnostic("DX902", "probe %s failed %d times and was removed" % (probe, MAX_FAILURES))
            self._uninstall(probe)

    def guard(self, where: str) -> Guard:
        """Context manager and decorator for our code: see ``Guard``. ``where``: "probe" or "probe.place"."""
        return Guard(self, where)

    def swallow(self, where: str, error: Exception) -> bool:
        """``guard`` for an ``except`` on a hot path. False if the job's own code raised: then re-raise."""
        return Guard(self, where).__exit__(type(error), error, error.__traceback__)


class Guard:
    """Swallows exceptions of our code and records them; those of user code or a signal handler pass.

    As a decorator it makes the function return None after a failure, and stops calling it once its probe has been
    removed.
    """

    __slots__ = ("_failures", "_probe", "_where")

    def __init__(self, failures: Failures, where: str) -> None:
        self._failures = failures
        self._where = where
        self._probe = where.partition(".")[0]

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> bool:
        if error is None:
            return False
        if not isinstance(error, Exception) or _from_user(trace):
            return False
        self._failures.add(self._where, error)
        return True

    def __call__(self, function: Callable[..., Foreign]) -> Callable[..., Foreign]:
        """Use as a decorator."""
        failures = self._failures.of
        probe = self._probe

        @functools.wraps(function)
        def guarded(*args: Foreign, **kwargs: Foreign) -> Foreign:
            if failures(probe) >= MAX_FAILURES:
                return None
            with self:
                return function(*args, **kwargs)
            return None

        return guarded


def _from_user(trace: Optional[TracebackType]) -> bool:
    """Whether user code lies between our first frame and the place of the exception."""
    if trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # a decorated function: its first frame is below ours
    trace = trace.tb_next if trace is not None else None
    while trace is not None:
        if frames.is_user_frame(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def place_of(error: BaseException) -> str:
    """Where an exception was raised, in brackets; empty if unknown."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return " (%s:%d)" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno or 0)
