"""What the launcher says about a trial: a run of the job with interventions in effect, which ends early.

The configuration of the run (``wire.env``) then has the key ``CONFIG_KEY``::

    {"interventions": ["xla-on", "batch:4", "stub:train.py:41"], "seconds": 6.0, "steps": 20}

An intervention is ``NAME[:ARGUMENT]``; ``experiments.interventions`` lists them, ``agent.trials`` puts them in effect
and writes an ``intervention`` line for each.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIG_KEY = "trial"
"""Key of the configuration; absent where the run is no trial."""
INTERVENTIONS, SECONDS, STEPS = "interventions", "seconds", "steps"
"""Fields of a trial: what is in effect; seconds and number of steady steps, both of which must have passed. 0
seconds: the job's own end."""
DEFAULT_STEPS = 20
EAGER = "eager code"
"""Function that the value trial names for what runs eagerly."""
IN_EFFECT, NOT_REACHED, FAILED = "in-effect", "not-reached", "failed"
"""Outcomes of an intervention in a process."""


def split(text: str) -> tuple[str, str]:
    """(name, argument) of an intervention; the argument is "" if there is none."""
    name, _, argument = text.partition(":")
    return name.strip(), argument.strip()


def settings(interventions: Sequence[str], seconds: float, steps: int) -> dict[str, object]:
    """The value of ``CONFIG_KEY``."""
    return {INTERVENTIONS: list(interventions), SECONDS: seconds, STEPS: steps}
