"""Which variable of the job's Python keeps the memory that rises over the steady steps, by two looks of the agent.

Serves MEM001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import memory_owners
from stepscope.derive.machine import memory_use

if TYPE_CHECKING:
    from stepscope.causes.system.memory_owners import MemoryOwner
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.memory import MemoryHeld

MIN_GROWN_BYTES = 16 << 20
"""Growth of the memory between two looks from which they say who keeps it."""
MIN_SHARE = 0.5
"""Of the growth, that a variable must have grown by to be the one that keeps it."""


class Keeper(Struct, frozen=True, kw_only=True):
    """What two looks say of the memory that came between them."""

    grown_bytes: float
    owner: MemoryOwner | None
    """The variable that keeps at least half of it; None: no variable does."""
    share: float
    """Share of the growth that it keeps."""


def build(view: StepsView) -> Keeper | None:
    """None without two looks between which memory has grown."""
    use = memory_use.build(view.session, view.steps.worker)
    lo, hi = view.steps.windows
    before = [look for look in use.looks if look.at <= lo[0]]
    looks = [*before[-1:], *(look for look in use.looks if lo[0] < look.at <= hi[-1])]
    if not looks[1:]:
        return None
    first, last = looks[0], looks[-1]
    if before and looks[2:] and last.own_bytes - looks[1].own_bytes >= MIN_GROWN_BYTES:
        first = looks[1]  # what was made between the look before and the first step is no growth of theirs
    grown = last.own_bytes - first.own_bytes
    if grown < MIN_GROWN_BYTES:
        return None
    was, now = _sizes(first), _sizes(last)
    best = max(now, key=lambda key: now[key] - was.get(key, 0), default=None)
    share = (now[best] - was.get(best, 0)) / grown if best is not None else 0.0
    owners = memory_owners.variables(view, use)
    mine = [o for o in owners if best is not None and (o.function, o.name) == best[1:]] if share >= MIN_SHARE else []
    return Keeper(grown_bytes=float(grown), owner=mine[0] if mine else None, share=min(1.0, share))


def _sizes(look: MemoryHeld) -> dict[tuple[str, str, str], int]:
    return {(row.file, row.function, row.name): row.bytes for row in look.rows}
