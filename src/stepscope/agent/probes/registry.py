"""The list of all probes, kept by hand.

A probe is one file of these packages with ``TARGETS``: (module name, attach). ``attach(state, module)`` runs after that
module's import and logs a ``probe`` line. A probe that cannot be loaded becomes a diagnostic; the others continue.
A new framework also needs its module in ``agent.bootstrap`` (``ROOTS``, ``COMPUTES``) and ``agent.payload.always_on``.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Target = tuple[str, str, Callable[[AgentState, Foreign], object]]

PROBES = (
    "python.gc",
    "python.children",
    "python.thread_deaths",
    "python.memory_watch",
    "keras.frameworks",
    "tensorflow.settings",
    "tensorflow.graph_nodes",
    "tensorflow.tf_function",
    "tensorflow.padding",
    "tensorflow.tf_data",
    "tensorflow.tf_data_model",
    "python.py_functions",
    "keras.keras_loops",
    "keras.keras_steps",
    "keras.keras_batches",
    "keras.keras_callbacks",
    "keras.layers",
    "tensorflow.session",
    "tensorflow.session_hooks",
    "onnxruntime.inference",
    "jax.processes",
    "jax.compilations",
    "jax.waits",
    "jax.jit_calls",
    "torch.optimizer_steps",
    "torch.backward",
    "torch.data_loaders",
    "tensorflow.servers",
    "tensorflow.saving",
    "tensorflow.building",
    "tensorflow.sync",
    "tensorflow.gradients",
    "tensorflow.eager_turns",
    "tensorflow.eager_ops",
    "keras.model_calls",
    "tensorflow.profiler",
    "tensorflow.device_memory",
)
"""Probe files by package, in the order in which they attach."""


def targets(state: AgentState) -> Iterator[Target]:
    """(probe, module name, attach) of every probe."""
    for path in PROBES:
        probe = path.rpartition(".")[2]
        try:
            module = importlib.import_module("stepscope.agent.probes." + path)
        except Exception as error:
            state.failures.add(probe, error)
            continue
        for module_name, attach in module.TARGETS:
            yield probe, module_name, attach
