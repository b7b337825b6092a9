"""The lines where sequences are padded. Arrays are examined when a fit or a dataset gets them (``agent.padding``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.agent.padding import MAX_TOLD
from stepscope.agent.probes.common import padding_of
from stepscope.agent.probes.support import followed, lacking, leaf, report, user_stack

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Array = Foreign


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``pad_sequences``: its line is the one to change."""
    why = lacking(module, "pad_sequences", ("sequences", "maxlen"))
    if not why:
        made = padding_of(state).made

        def tell(result: Array, *_: object) -> None:
            if len(made) < MAX_TOLD:
                made[result.shape[1]] = leaf(user_stack())

        state.patch(module, "pad_sequences", followed(state, module.pad_sequences, "padding.made", tell))
    report(state, "padding:%s" % module.__name__, why)


TARGETS = (
    ("keras.src.utils.sequence_utils", attach),
    ("keras.src.utils.data_utils", attach),
    ("tf_keras.src.utils.data_utils", attach),
)
