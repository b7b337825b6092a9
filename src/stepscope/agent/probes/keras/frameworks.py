"""Keras' backend (the agent itself logs the frameworks' versions)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.agent.probes.support import keras_backend

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


def attach(state: AgentState, module: Foreign) -> None:
    """Log a ``framework`` line with the backend of the Keras that has just been imported."""
    name = module.__name__
    detail = keras_backend(name)
    if not detail:
        return
    version = str(getattr(module, "__version__", ""))
    state.log({"t": "framework", "at": state.now(), "name": name, "version": version, "detail": detail})


TARGETS = (
    ("keras", attach),
    ("tf_keras", attach),
)
