"""Finds the user's own Python behind the functions that Keras and tf.data wrap around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


class FromCode:
    """Stands for a generator object whose function is gone: only its code is known."""

    def __init__(self, code: Foreign) -> None:
        self.__code__ = code
        self.__name__ = code.co_name


def generator_function(generator: Foreign) -> Foreign:
    """An object with the code of what a user passed as a generator, None if there is none."""
    code = getattr(generator, "gi_code", None)
    if code is not None:
        return FromCode(code)
    if callable(getattr(type(generator), "__next__", None)):
        return type(generator).__next__
    return None


def user_source(state: AgentState, function: Foreign) -> tuple[str, Foreign]:
    """(role, function) of the argument of ``from_generator``; the user's function if Keras wrapped it.

    The role is "generator", or "" if the user's part is recorded elsewhere (``PyDataset.__getitem__``).
    """
    adapters = shared(state).adapters
    owner = getattr(function, "__self__", None)
    known = adapters.get(owner) if owner is not None else None
    if known is not None:
        return known  # type: ignore[no-any-return]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        known = adapters.get(content)
        if known is not None:
            return known  # type: ignore[no-any-return]
    return "generator", function


def data_function(wrapped: Foreign) -> Foreign:
    """The user's function behind the one that tf.data traces: two closures deep, in its wrapper object."""
    for function in (wrapped, *_cells(wrapped)):
        for content in _cells(function):
            found = getattr(content, "_func", None)
            if callable(found) and hasattr(content, "_input_structure"):
                return found
    return None


def _cells(function: Foreign) -> list[Foreign]:
    found = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found
