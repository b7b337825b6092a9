"""no-summaries: nothing is written for TensorBoard; what the program computes for it in Python it still computes."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import eager, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

IN_GRAPH = "summaries are written in a graph, which cannot be switched"


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: the condition that all summaries of TensorFlow 2 ask, and the writers of version 1."""
    effect.missed("no summary was written")
    return [
        ("tensorflow.python.ops.summary_ops_v2", functools.partial(_attach, effect)),
        ("tensorflow.python.summary.writer.writer", functools.partial(_attach_writer, effect)),
    ]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make_condition(original: Foreign) -> Foreign:
        def should_record_summaries() -> Foreign:
            if module._summary_state.writer is None:
                return original()
            if effect.switched and not eager():
                effect.missed(IN_GRAPH)
                return original()
            if effect.passed():
                return original()
            effect.took()
            return sys.modules["tensorflow.python.framework.constant_op"].constant(value=False)

        return should_record_summaries

    def make_flush(original: Foreign) -> Foreign:
        def flush(*args: Foreign, **kwargs: Foreign) -> Foreign:
            return None if effect.on and eager() else original(*args, **kwargs)

        return flush

    replace(state, module, "should_record_summaries", make_condition)
    replace(state, module, "flush", make_flush)
    replace(state, module._ResourceSummaryWriter, "flush", make_flush)


def _attach_writer(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def nothing(*args: Foreign, **kwargs: Foreign) -> Foreign:
            if effect.passed():
                return original(*args, **kwargs)
            effect.took()
            return None

        return nothing

    replace(state, module.SummaryToEventTransformer, "add_summary", make)
    replace(state, module.FileWriter, "flush", make)
