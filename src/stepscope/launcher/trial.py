"""A trial: what the launcher is to put in effect in the job's processes, and when the job may end."""

from __future__ import annotations

from msgspec import Struct

from stepscope.wire import trials


class Trial(Struct, frozen=True, kw_only=True):
    """A run with interventions in effect that ends early (``wire.trials``)."""

    interventions: tuple[str, ...]
    """Interventions as ``NAME[:ARGUMENT]``; none: the job as it is."""
    seconds: float
    """Seconds of steady steps after which the job ends; 0: at its own end."""
    steps: int = trials.DEFAULT_STEPS
    """Number of steady steps that it makes at least."""
    switched: str = ""
    """The one of ``interventions`` that is switched on and off in the process; "": all are in effect all the time."""
    block_s: float = trials.DEFAULT_BLOCK_S
    """Least seconds for which it stays on or off."""
    most_s: float = 0.0
    """Most seconds for which it is switched, if it delays calls (``slopes``); 0: as others."""

    def settings(self) -> dict[str, object]:
        """The trial as a value of the run's configuration."""
        return trials.settings(self.interventions, self.seconds, self.steps, self.switched, self.block_s, self.most_s)
