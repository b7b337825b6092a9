"""What several detectors say of the turns of a job (``causes.general.turn_times``), and advise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.general import turn_times
from stepscope.tables.findings import Remedy
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from stepscope.derive.ledger.turns import ThreadTurns
    from stepscope.derive.python.stack_samples import Spot
    from stepscope.derive.steps_view import StepsView

MOST = 0.5
"""Share of what lies between the steps of a turn from which it is a function's."""
ONCE = Remedy(
    id="once-before-the-turns",
    text="do this work once, before the first turn, and keep its result if that is the same in each turn",
)
AHEAD = Remedy(
    id="work-ahead", text="else do less in it, vectorise it, or have a thread or process work ahead of the steps"
)
ONE_MODEL = Remedy(
    id="one-model",
    text="where the model is the same in each turn: build and trace it once, and set its first weights again "
    "(get_weights, set_weights)",
)


def count(turns: ThreadTurns) -> str:
    """``12 turns``; ``17 turns or more`` where some may not have been seen."""
    return f"{turns.count:,} turns{'' if turns.exact else ' or more'}"


def each(view: StepsView, spot: Spot) -> str:
    """``188 ms in each of 17 turns`` if a function runs between the steps of turns, which it takes most of; else ""."""
    found = view.get(turn_times.build)
    part = found.part("between-steps") if found is not None else None
    top = part.lines[0] if part is not None and part.lines else None
    if found is None or part is None or top is None or top.caller is None or top.ratio < MOST:
        return ""
    same = top.place.function == spot.function and view.place(spot.file, spot.line).file == top.place.file
    return f"{format_ns(part.ns * top.ratio)} in each of {count(found.turns)}" if same else ""
