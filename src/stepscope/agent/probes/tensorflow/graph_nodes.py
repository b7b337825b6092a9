"""The nodes of graphs: noted when made (``node_lines``), read later by the agent's thread (``node_reader``)."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs.node_reader import GraphReader
from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import drop_our_frame, lacking, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``Graph._create_op_helper``: an op was added to a graph."""
    cls = getattr(module, "Graph", None)
    why = "no Graph" if cls is None else lacking(cls, "_create_op_helper", ("self", "op", "compute_device"))
    for part in ("get_operations", "num_operations"):
        why = why or lacking(cls, part)
    if not why:
        common = shared(state)
        state.patch(cls, "_create_op_helper", _wrap(state, cls.__dict__["_create_op_helper"]))
        common.reader = reader = GraphReader(state, common.lines, common.graphs, WeakIds())
        state.hooks.on_tick(reader.errand)
        state.hooks.on_finish(state.guard("graph_nodes.finish")(reader.finish))
    report(state, "graph_nodes", why)


def _wrap(state: AgentState, original: Callable[..., Foreign]) -> Callable[..., Foreign]:
    note = shared(state).lines.note
    caller = sys._getframe

    @functools.wraps(original)
    def helper(self: Foreign, op: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        try:
            result = original(self, op, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        try:
            note(self, op, caller(1))
        except Exception as error:
            if not state.failures.swallow("graph_nodes.note", error):
                raise
        return result

    return helper


TARGETS = (("tensorflow.python.framework.ops", attach),)
