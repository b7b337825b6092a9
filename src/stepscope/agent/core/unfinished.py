"""Calls through which an exception ended the program: they were counted when they began, and never completed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

_MOST = 16
"""Wrappers of one function that are looked through."""


def ended_the_program(counts: Foreign) -> bool:
    """Whether the exception that nothing caught, if there was one, came out of a call of what is counted."""
    called = counts
    for _ in range(_MOST):  # decorators share their code
        called = getattr(called, "__wrapped__", None) or called
    code = getattr(called, "__code__", None)
    trace = getattr(sys, "last_traceback", None)
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return code is not None and trace is not None
