"""The turns of a job in its report: how the mean one divides (docs/decisions/0065)."""

from __future__ import annotations

from stepscope.model.report.ledger import Phase
from stepscope.tables.place import Place
from stepscope.tables.structs import Struct


class TurnPart(Struct, frozen=True, kw_only=True):
    """A part of the mean turn. Parts of a turn add up to its time, unless observed and counted steps overlap."""

    phase: Phase
    """As in the ledger; first traces are "tracing", whatever step they lie in."""
    component: str = ""
    """"input-wait" for that part of the steps, which a turn has apart; else ""."""
    ns: int
    ratio: float
    """Share of the turn's time."""
    where: tuple[Place, ...] = ()
    """Lines of the user's code that run in it, the costliest first, each followed by the loop's line that calls it."""


class Turns(Struct, frozen=True, kw_only=True):
    """Repetitions that hold many steps each: folds, trials, prompts, epochs of the user's own loop."""

    count: int
    """Number of turns, the last one included."""
    exact: bool = True
    """False: there may be more, and shorter ones, because some pauses between turns were too short to be seen."""
    call: str = ""
    """The loop of Keras that each calls (fit, predict): a turn lasts up to the next call. "": each is a repetition of a
    loop of the user's code around that of the steps."""
    where: Place
    """The call, or where the loop begins."""
    mean_ns: int
    job_ratio: float
    """Share of all turns in the job's wall time."""
    steady_ratio: float
    """Share of the turns' time in the steady steps, of which the costs of findings are shares."""
    parts: tuple[TurnPart, ...]
    """The largest first."""
