"""Threads of the job that die of an exception which nobody catches: who, of what, where. Never the exception's message.

``threading.excepthook`` is the interpreter's own hook for this. What was there before, the user's hook too, is called
after ours with the same arguments; a hook that is set later replaces ours, and then nothing is told.
"""

from __future__ import annotations

import functools

from stepscope.agent.core import frames
from stepscope.agent.probes.support import drop_our_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

MAX_TOLD = 100
"""Deaths that are told of one process: a server may lose a thread with each request."""
_STACK = 8


def attach(state: AgentState, module: Foreign) -> None:
    """Put our hook before the one that is there."""
    original = module.excepthook
    guard = state.guard("thread_deaths")
    told = 0

    def tell(error: Foreign, trace: Optional[TracebackType], thread: Foreign) -> None:
        nonlocal told
        if state.lines.dormant or told >= MAX_TOLD or error is None or issubclass(error, SystemExit):
            return
        told += 1
        stack = _user_stack(trace)
        file, function, line = stack[-1] if stack else ("", "", 0)
        entry: dict[str, object] = {"t": "thread-death", "at": state.now(), "thread": state.thread()}
        entry.update(name=str(getattr(thread, "name", "")), error=str(error.__qualname__))
        entry.update(file=file, function=function, line=line, stack=stack)
        state.log(entry)

    @functools.wraps(original)
    def excepthook(args: Foreign, /) -> Foreign:
        with guard:
            tell(args.exc_type, args.exc_traceback, args.thread)
        try:
            return original(args)
        except BaseException as error:
            drop_our_frame(error)
            raise

    state.patch(module, "excepthook", excepthook)
    state.log({"t": "probe", "at": state.now(), "name": "thread_deaths", "attached": True})


def _user_stack(trace: Optional[TracebackType]) -> list[tuple[str, str, int]]:
    """The innermost user frames of a traceback, root to leaf."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if frames.is_own(code.co_filename):
            found.append((frames.absolute(code.co_filename), frames.function_name(code), trace.tb_lineno or 0))
        trace = trace.tb_next
    return found[-_STACK:]


TARGETS = (("threading", attach),)
