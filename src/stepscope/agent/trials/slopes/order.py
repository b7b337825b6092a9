"""Whether tf.data may give elements in another order when its stages take longer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

MODULE = "stepscope.agent.probes.common"
_DEEPEST = 100


def unordered(state: AgentState) -> bool:
    """Whether an iterator that is in use gives its elements in no fixed order: by an option, or at a stage."""
    common = sys.modules.get(MODULE)
    if "tensorflow" not in sys.modules or common is None:
        return False
    return any(_unordered(iterator) for iterator, _ in common.shared(state).iterators.alive())


def _unordered(iterator: Foreign) -> bool:
    dataset = getattr(iterator, "_dataset", None)
    options = getattr(dataset, "options", None)
    if options is None:
        return False
    if getattr(options(), "deterministic", None) is False:
        return True
    stages: list[Foreign] = [dataset]
    for stage in stages:
        if getattr(stage, "_deterministic", None) == "false":
            return True
        if len(stages) < _DEEPEST:
            stages.extend(stage._inputs())
    return False
