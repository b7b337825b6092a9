"""All probes, by hand.

A probe is one file of this package with ``TARGETS``: (module name, attach). ``attach(state, module)`` runs after that
module's import and logs a ``probe`` line. A probe that cannot be loaded is a diagnostic, the others go on.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stepscope.agent.state import AgentState

    Target = tuple[str, str, Callable[[AgentState, Any], object]]

PROBES = (
    "gc",
    "children",
    "frameworks",
    "settings",
    "graph_nodes",
    "tf_function",
    "padding",
    "tf_data",
    "tf_data_model",
    "py_functions",
    "keras_loops",
    "keras_steps",
    "keras_callbacks",
    "layers",
    "session",
    "session_hooks",
    "inference",
    "servers",
    "saving",
    "building",
    "sync",
    "model_calls",
    "profiler",
    "device_memory",
)
"""File names, in the order in which they attach."""


def targets(state: AgentState) -> Iterator[Target]:
    """(probe, module name, attach) of every probe."""
    for probe in PROBES:
        try:
            module = importlib.import_module("stepscope.agent.probes." + probe)
        except Exception as error:
            state.fail(probe, error)
            continue
        for module_name, attach in module.TARGETS:
            yield probe, module_name, attach
