"""Log line of an intervention in a trial, see ``agent.trials``."""

from __future__ import annotations

from stepscope.model.event import Event


class InterventionEnded(Event, tag="intervention", frozen=True, kw_only=True):
    """Result of an intervention in this process of a trial. ``at``: when it first took hold, else when the process
    ended. Since 0.1.
    """

    name: str
    argument: str = ""
    """Argument of the intervention; "" if it takes none."""
    outcome: str = ""
    """Outcome: "in-effect" | "not-reached" (what it changes never came) | "failed" (an error of ours; the program
    ran unchanged)."""
    count: int = 0
    """How often it took hold: calls that it changed or replaced."""
    text: str = ""
    """Reason, unless it was in effect."""
