"""Threads of the job that an uncaught exception ended: their work is no longer done, and no other thread is notified.

Serves HNG001, and the diagnostics of the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.model.log.program import ThreadDied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.view import SessionView


def build(view: SessionView) -> tuple[ThreadDied, ...]:
    """Of all processes, in their order."""
    return tuple(died for worker in view.session.workers for died in worker.all(ThreadDied))


def sentence(view: SessionView, died: Sequence[ThreadDied]) -> str:
    """The first of them, and how many more there are."""
    first = died[0]
    at = ""
    if first.file:
        place = view.place(first.file, first.line)
        at = f" in {first.function} ({place.file}:{place.line})"
    more = f" (the first of {len(died)} threads that died)" if len(died) > 1 else ""
    return f"thread {first.name or first.thread} ended with an uncaught {first.error}{at}{more}"
