"""threads:N, threads-default: threads within an op, whatever the program sets."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
"""Variables that set TensorFlow's threads where the program sets none."""
CONFIG = "tensorflow.python.framework.config"
SESSION = "tensorflow.python.client.session"


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold: before TensorFlow makes its threads."""
    threads = effect.number() if effect.name == "threads" else 0
    effect.missed("the program sets no threads")
    for variable in VARIABLES:
        if os.environ.pop(variable, None) is not None:
            effect.took()
    return [
        (CONFIG, functools.partial(_attach, effect, threads)),
        (SESSION, functools.partial(_attach_sessions, effect, threads)),
    ]


def _attach(effect: Effect, threads: int, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        del original

        def set_threads(num_threads: Foreign) -> None:
            del num_threads
            effect.took()

        return set_threads

    replace(state, module, "set_intra_op_parallelism_threads", make)
    if not threads:
        replace(state, module, "set_inter_op_parallelism_threads", make)
        return
    module.context.context().intra_op_parallelism_threads = threads
    effect.took()


def _attach_sessions(effect: Effect, threads: int, state: AgentState, module: Foreign) -> None:
    """Sessions of TensorFlow 1 have a configuration each."""

    def make(original: Foreign) -> Foreign:
        def init(self: Foreign, target: Foreign = "", graph: Foreign = None, config: Foreign = None) -> None:
            with effect.wall:
                if config is not None and (threads or config.intra_op_parallelism_threads):
                    config = type(config).FromString(config.SerializeToString())
                    config.intra_op_parallelism_threads = threads
                    effect.took()
            original(self, target, graph, config)

        return init

    replace(state, module.BaseSession, "__init__", make)
