"""Keras' backend (the agent itself logs the frameworks' versions)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


def attach(state: AgentState, module: Foreign) -> None:
    """Log a ``framework`` line with the backend of the Keras that has just been imported."""
    name = module.__name__
    detail = _detail(name)
    if not detail:
        return
    version = str(getattr(module, "__version__", ""))
    state.log({"t": "framework", "at": state.now(), "name": name, "version": version, "detail": detail})


def _detail(name: str) -> str:
    """Keras' backend according to its own configuration, read without importing anything."""
    config = sys.modules.get("%s.src.backend.config" % name) or sys.modules.get("%s.src.backend.common" % name)
    backend = getattr(config, "backend", None)
    if not callable(backend):
        return ""
    try:
        return str(backend())
    except (TypeError, RuntimeError):
        return ""


TARGETS = (
    ("keras", attach),
    ("tf_keras", attach),
)
