"""``step``, ``span``, ``timer`` and ``metric``: the functions that a user may call. Outside a run they do nothing.

In an armed process the first call starts measuring and sampling, with or without a framework. No error of ours is
raised into the job.
"""

from __future__ import annotations

import functools
import math
import struct
import time

from stepscope.agent import bootstrap, state
from stepscope.agent.core import frames
from stepscope.wire.kinds import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Optional, TypeVar

    from typing_extensions import Self

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    F = TypeVar("F", bound=Callable[..., Foreign])

_STEP = int(Kind.STEP)
_SPAN = int(Kind.SPAN)
_METRIC = int(Kind.METRIC)
_TO_BITS = struct.Struct("<d").pack
_TO_INT = struct.Struct("<q").unpack
_RAISED = int(Flag.RAISED)
_NONE = (-1, 0)
_STEP_KEY = ("step", "stepscope.step")


def _current() -> Optional[AgentState]:
    hook = bootstrap.HOOK
    if state.CURRENT is None and hook is not None:
        hook.activate()
        if hook.plain is not None:
            hook.plain()
    return state.CURRENT


def step() -> None:
    """Mark the end of one training or inference step and the start of the next."""
    current = _current()
    if current is None:
        return
    try:
        now = current.now()
        if now >= current.hooks.off.due_ns:
            current.hooks.off.look(now)
        local = current.threads.local
        life, before = getattr(local, "api_step", _NONE)
        local.api_step = (current.threads.life, now)
        if life == current.threads.life:
            name = current.lines.names.get(_STEP_KEY) or _name(current, *_STEP_KEY)
            current.write(before, now - before, 0, name, _STEP, 0, current.thread())
    except Exception as error:
        if not current.failures.swallow("api.step", error):
            raise


def _name(current: AgentState, what: str, text: str) -> int:
    file, function, line = frames.user_frame() or ("", "", 0)
    return current.name((what, text), text, call_file=file, call_line=line, call_function=function)


class span:  # noqa: N801 - used like a function: with stepscope.span("augment"), @stepscope.span("augment")
    """Measures a block or each call of a function, under a name."""

    __slots__ = ("_name", "_starts")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._starts: list[int] = []

    def __enter__(self) -> Self:
        self._starts.append(time.monotonic_ns())
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _write_span(self._name, self._starts.pop(), _RAISED if kind is not None else 0)

    def __call__(self, function: F) -> F:
        """Decorate ``function`` so that each call is measured."""
        name = self._name

        @functools.wraps(function)
        def measured(*args: Foreign, **kwargs: Foreign) -> Foreign:
            with span(name):
                return function(*args, **kwargs)

        return measured  # type: ignore[return-value]


class timer:  # noqa: N801 - as span
    """A span with separate ends: ``t = stepscope.timer("load").start()`` ... ``seconds = t.stop()``.

    It can be restarted. ``stop`` returns the time even if nothing is measured.
    """

    __slots__ = ("_name", "_start")

    def __init__(self, name: str) -> None:
        self._name = str(name)
        self._start = 0

    def start(self) -> Self:
        """Start timing; restarts a running timer."""
        self._start = time.monotonic_ns()
        return self

    def stop(self) -> float:
        """Seconds since ``start``; 0.0 if the timer is not running."""
        start, self._start = self._start, 0
        if not start:
            return 0.0
        spent = time.monotonic_ns() - start
        _write_span(self._name, start, 0)
        return spent / 1e9


def _write_span(text: str, start: int, flags: int) -> None:
    current = _current()
    if current is None:
        return
    try:
        name = current.lines.names.get(("span", text)) or _name(current, "span", text)
        current.write(start, current.now() - start, 0, name, _SPAN, flags, current.thread())
    except Exception as failure:
        if not current.failures.swallow("api.span", failure):
            raise


def metric(name: str, value: float) -> None:
    """Record a number for this moment, such as a loss: anything that ``float`` accepts."""
    current = _current()
    if current is None:
        return
    try:
        number = float(value)
        if not math.isfinite(number):
            current.lines.diagnostic("DX913", "metric %s was not finite and is not stored" % name)
            return
        known = current.lines.names.get(("metric", name)) or _name(current, "metric", str(name))
        current.write(current.now(), 0, _TO_INT(_TO_BITS(number))[0], known, _METRIC, 0, current.thread())
    except Exception as error:
        if not current.failures.swallow("api.metric", error):
            raise
