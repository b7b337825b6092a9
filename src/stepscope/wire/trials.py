"""What the launcher says about a trial: a run of the job with interventions in effect, which ends early.

The configuration of the run (``wire.env``) then has the key ``CONFIG_KEY``::

    {"interventions": ["xla-on", "batch:4", "stub:train.py:41"], "seconds": 6.0, "steps": 20, "switched": ""}

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
SWITCHED, BLOCK_SECONDS, MOST_SECONDS = "switched", "block_seconds", "most_seconds"
"""Fields of a trial that is switched on and off in one process: which of the interventions ("": none, all are in effect
all the time), the least time of a block, and the most of all blocks of delays (``slopes``; 0: as others)."""
DEFAULT_BLOCK_S = 0.5
"""Where neighbours disturb the machine, their load changes within seconds: of blocks of 0.3 to 1.5 s the shorter ones
tell more in the same time (docs/decisions/0058-in-process-trials.md), and a queue needs some time to settle."""
DEFAULT_STEPS = 20
NOTHING = "nothing"
"""Intervention that changes nothing: blocks with it differ by noise alone."""
EAGER = "eager code"
"""Function that the value trial names for what runs eagerly."""
IN_EFFECT, NOT_REACHED, FAILED = "in-effect", "not-reached", "failed"
"""Outcomes of an intervention in a process."""


def split(text: str) -> tuple[str, str]:
    """(name, argument) of an intervention; the argument is "" if there is none."""
    name, _, argument = text.partition(":")
    return name.strip(), argument.strip()


def settings(
    interventions: Sequence[str],
    seconds: float,
    steps: int,
    switched: str = "",
    block_s: float = DEFAULT_BLOCK_S,
    most_s: float = 0.0,
) -> dict[str, object]:
    """The value of ``CONFIG_KEY``."""
    found: dict[str, object] = {INTERVENTIONS: list(interventions), SECONDS: seconds, STEPS: steps}
    return {**found, SWITCHED: switched, BLOCK_SECONDS: block_s, MOST_SECONDS: most_s}
