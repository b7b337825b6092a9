"""The wall between code of ours and the job: what we raise stays here, what the job raises passes."""

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
"""Failures of one probe after which it is taken out."""


class Failures:
    """How often code of each probe has failed; the third failure takes a probe out."""

    def __init__(self, diagnostic: Callable[[str, str], object], uninstall: Callable[[str], object]) -> None:
        """``uninstall``: puts back what a probe has patched."""
        self._diagnostic = diagnostic
        self._uninstall = uninstall
        self._counts: dict[str, int] = {}

    def of(self, probe: str) -> int:
        """How often code of that probe has failed."""
        return self._counts.get(probe, 0)

    def add(self, where: str, error: BaseException) -> None:
        """Record a failure of ours; the third of one probe takes it out."""
        probe = where.partition(".")[0]
        self._counts[probe] = self._counts.get(probe, 0) + 1
        text = "%s: %s: %s%s" % (where, type(error).__name__, error, place_of(error))
        self._diagnostic("DX901", text)
        if self._counts[probe] == MAX_FAILURES:
            self._diagnostic("DX902", "probe %s failed %d times and was removed" % (probe, MAX_FAILURES))
            self._uninstall(probe)

    def guard(self, where: str) -> Guard:
        """Context manager and decorator for code of ours: see ``Guard``. ``where``: "probe" or "probe.place"."""
        return Guard(self, where)

    def swallow(self, where: str, error: Exception) -> bool:
        """In an ``except`` on a hot path, what ``guard`` does: False if the job's own code raised; re-raise then."""
        return Guard(self, where).__exit__(type(error), error, error.__traceback__)


class Guard:
    """Swallows exceptions of our own code and records them; what user code or a signal handler raises passes.

    As a decorator it makes the function return None when it failed, and does not call it any more once its probe
    has been taken out.
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
        """As a decorator."""
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
    """Whether user code is on the way to where the exception was raised: below our own first frame."""
    if trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # a decorated function: its first frame is below ours
    trace = trace.tb_next if trace is not None else None
    while trace is not None:
        if frames.is_user_frame(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def place_of(error: BaseException) -> str:
    """Where an exception was raised, in brackets; empty where that is not known."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return " (%s:%d)" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno or 0)
