"""When the steps were made, without a long pause that came once: what is sampled by time is judged over it.

Serves all causes that rest on rates of CPU time, faults and waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.ledger import pauses

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> tuple[int, int]:
    """Begin and end in ns; (0, 0) without steps."""
    return pauses.busy_span(view.steps) if view.steps is not None else (0, 0)
