"""The ledger of a job in its report: where its wall time went, part by part (docs/decisions/0041)."""

from __future__ import annotations

from typing import Literal, get_args

from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

Phase = Literal[
    "start",
    "imports",
    "building",
    "first-steps",
    "steps",
    "other-steps",
    "tracing",
    "evaluation",
    "saving",
    "between-steps",
    "end",
    "not-seen",
]
"""Part of a job's life. start: the interpreter and the program's Python before it imports a framework. imports: of
frameworks. building: making models, datasets and graphs, and all Python up to the first step. first-steps: the warm-up,
with first traces. steps: all later steps, by component. other-steps: those of other makers. tracing, evaluation,
saving: outside of steps. between-steps: what else lies between steps, such as Python between two fits. end: after the
last step. not-seen: what no record covers."""
PHASES: tuple[Phase, ...] = get_args(Phase)
"""All phases, in the order of a report."""
ONCE: frozenset[Phase] = frozenset({*PHASES[: PHASES.index("steps")], "tracing"})
"""Phases that a run pays for once, however long it is."""
NO_STEPS = "no steps were seen"
"""Begin of the text of "building" in a job without steps: all between the imports and the end."""
SettledBy = Literal["finding", "general", "limit", "small", "unexplained"]
"""Explanation of a part. finding: a finding of a detector. general: a finding that only names the component and its
deepest known place. limit: it is as fast as it can be here. small: less than 5 % of the wall time. unexplained: none of
these."""


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """A part of the wall time, of the job or of one maker of steps. Parts of one ledger add up to its wall time."""

    phase: Phase
    component: str = ""
    """Component of the step, see ``model.report.components``; "" in all phases but steps."""
    maker: int | None = None
    """Index in ``session.step_makers``; null: the ledger of the job."""
    ns: int
    ratio: float
    """Share of the wall time of its ledger."""
    unobserved_ratio: float = 0.0
    """Share of ``ns`` that lies in gaps of the duty cycle: calls were counted there, and the observed steps stand for
    those in between."""
    settled_by: SettledBy
    explained_ratio: float = 0.0
    """Share of ``ns`` that specific findings explain. Less than half of it does not settle the part, but is not counted
    as unexplained."""
    code: str = ""
    """Code of the finding that settles it; "" if none does."""
    text: str = ""
    """Short explanation of what it is: "600 steps", "3 evaluations"."""
    where: tuple[Place, ...] = ()
    """Places in the user's code that this time belongs to, the costliest first, where known."""
