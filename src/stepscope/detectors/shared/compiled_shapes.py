"""Shared by the detectors of programs that are compiled again for shapes that change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.graph import long_compiled_calls
from stepscope.causes.system import contention
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.causes.graph.long_compiled_calls import LongCalls
    from stepscope.derive.view import SessionView

CONSTANT = Remedy(
    id="constant-shapes",
    text="keep the shapes constant: drop or pad the last partial batch, pad sequences to a few lengths",
)


def long_calls(view: SessionView) -> LongCalls | None:
    """Calls in which XLA compiles, by their times; None where other processes take as much of the steps' time: then the
    calls may be long because their thread waits for a CPU.
    """
    found, others = view.get(long_compiled_calls.build), view.get(contention.build)
    return None if found is not None and others is not None and others.lost_ratio >= found.ratio else found
