"""Writes the imports that the program's own lines asked for before stacks were sampled (``agent.bootstrap``)."""

from __future__ import annotations

import sys

from stepscope.agent.core import frames

ModuleType = type(sys)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from stepscope.agent.state import AgentState

    class Hook(Protocol):
        """What is noted: see ``agent.bootstrap``."""

        notes: bool
        asked: list[tuple[int, str, list[tuple[str, str, int]]]]


_LEAST_NS = 2_000_000
"""An import within this time of those around it has no line."""
_MOST_LINES = 64


def write(state: AgentState, hook: Hook) -> None:
    """End the notes, and log them; the last line, without a name, says where the main thread is now."""
    hook.notes = False
    asked, hook.asked = hook.asked, []
    now = [(file, function, line) for file, function, line in frames.user_stack(_MOST_LINES)]
    before = 0
    asked.append((state.now(), "", now))
    for number, (at, name, lines) in enumerate(asked):
        lasts = asked[number + 1][0] - at if name else _LEAST_NS
        own = [(frames.absolute(file), *rest) for file, *rest in lines if frames.is_own(file)][:_MOST_LINES]
        if own and max(lasts, at - before) >= _LEAST_NS:
            state.log({"t": "import", "at": at, "name": name, "file": _own_file(name), "stack": own})
            before = at


def _own_file(name: str) -> str:
    """The file of a module of the user's; "" for any other. A module that is loaded lazily stays so."""
    module = sys.modules.get(name)
    file = object.__getattribute__(module, "__dict__").get("__file__") if isinstance(module, ModuleType) else None
    return frames.absolute(file) if isinstance(file, str) and frames.is_own(file) else ""
