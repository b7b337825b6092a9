"""The order in which parameters come from other tasks in the traced steps.

Serves DST010 and the report's part on traced steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.optrace.exchange import transfer_order

if TYPE_CHECKING:
    from stepscope.derive.optrace.exchange.transfer_order import DeviceTransfers
    from stepscope.derive.view import SessionView


def build(view: SessionView) -> DeviceTransfers | None:
    """The order in the trace that the report is about; None without one, or if it is not known."""
    trace = view.traces.shown
    return transfer_order.build(trace.trace) if trace is not None else None
