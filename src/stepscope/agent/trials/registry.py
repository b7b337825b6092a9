"""The list of all interventions by family, kept by hand, and the start of a trial."""

from __future__ import annotations

import functools
import importlib

from stepscope.agent.trials.effect import Effect
from stepscope.agent.trials.ending import Ending
from stepscope.agent.trials.switching import Switching
from stepscope.wire.trials import (
    BLOCK_SECONDS,
    DEFAULT_BLOCK_S,
    DEFAULT_STEPS,
    INTERVENTIONS,
    MOST_SECONDS,
    NOTHING,
    SECONDS,
    STEPS,
    SWITCHED,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.probes.registry import Target
    from stepscope.agent.state import AgentState

    Attach = Callable[[AgentState, Foreign], object]

FAMILIES = {
    "compute-only": "inputs.compute_only",
    "input-only": "inputs.input_only",
    "no-callbacks": "callbacks",
    "without-callback": "callbacks",
    "no-validation": "parameters",
    "no-metrics": "parameters",
    "simple-loss": "simple_loss",
    "no-summaries": "summaries",
    "no-checkpoints": "checkpoints",
    "batch": "batch",
    "steps-per-execution": "compile_settings",
    "graph": "compile_settings",
    "graph-function": "code.graph_function",
    "xla-on": "xla",
    "xla-off": "xla",
    "reduce-retracing": "tracing",
    "functions-reused": "tracing",
    "mixed-bfloat16": "precision",
    "float32": "precision",
    "parallel-map": "inputs.pipelines",
    "prefetch": "inputs.pipelines",
    "cache-input": "inputs.pipelines",
    "private-threads": "inputs.pipelines",
    "without-stage": "inputs.stages",
    "input-edits": "inputs.edits",
    "feeds-kept": "inputs.feeds_kept",
    "checks-off": "switches",
    "determinism-off": "switches",
    "threads": "threads",
    "threads-default": "threads",
    "stub": "code.stub",
    "slopes": "slopes.place",
    "gc-off": "garbage",
    "gc-calls-off": "garbage",
    "values": "tensors.values",
    "without-ops": "tensors.without_ops",
    "without-lines": "tensors.without_lines",
    "small-kernels": "kernels",
    NOTHING: "nothing",
}
"""Names of interventions, and the files of this folder that know them."""


def begin(state: AgentState, wanted: Mapping[str, Foreign]) -> list[Target]:
    """Begin the trial ``wanted`` (``wire.trials``); returns what is to be attached, before any probe is.

    (probe, module name, attach) each, as from ``probes.registry.targets``.
    """
    one = str(wanted.get(SWITCHED) or "")
    effects = [Effect(state, str(text), switched=text == one) for text in wanted.get(INTERVENTIONS) or ()]
    found: list[Target] = []
    for effect in effects:
        with effect.wall:
            found.extend(_targets(effect))
    switched = next((effect for effect in effects if effect.switched), None)
    block_s, most_s = float(wanted.get(BLOCK_SECONDS) or DEFAULT_BLOCK_S), float(wanted.get(MOST_SECONDS) or 0.0)
    switching = Switching(switched, block_s, most_s) if switched else None
    state.hooks.on_finish(functools.partial(_log, state, effects, switching))
    steps, seconds = int(wanted.get(STEPS) or DEFAULT_STEPS), float(wanted.get(SECONDS) or 0.0)
    ending = Ending(state, tuple(effects), steps, seconds, switching)
    state.hooks.on_tick(ending.tick)
    return found


def _targets(effect: Effect) -> list[Target]:
    family = FAMILIES.get(effect.name)
    if family is None:
        effect.failure = "no such intervention in this version of the agent"
        return []
    targets = importlib.import_module("stepscope.agent.trials." + family).targets(effect)
    return [(effect.probe, module_name, _walled(effect, attach)) for module_name, attach in targets]


def _walled(effect: Effect, attach: Attach) -> Attach:
    def attach_walled(state: AgentState, module: Foreign) -> None:
        with effect.wall:
            attach(state, module)

    return attach_walled


def _log(state: AgentState, effects: list[Effect], switching: Optional[Switching]) -> None:
    while effects:  # the early end and the exit handler may both come here
        state.log(effects.pop(0).line())
    for line in switching.take_lines() if switching is not None else ():
        state.log(line)
