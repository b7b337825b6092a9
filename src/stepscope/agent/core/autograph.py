"""Maps lines of AutoGraph's generated code to the user's lines."""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Origins = dict[tuple[str, int], tuple[str, int, Optional[str]]]

PREFIX = "__autograph_generated_file"
"""Prefix of the names of generated files."""
_API = "tensorflow.python.autograph.impl.api"
_MAX_FILES = 256
_FILES: dict[str, dict[int, tuple[str, int, str]]] = {}
"""Lines of generated files that were looked for in AutoGraph's cache."""


def origins() -> Origins:
    """(generated file, line) -> (user's file, line, function), for the functions that this thread is tracing."""
    stacks = getattr(sys.modules.get("tensorflow.python.util.tf_stack"), "_source_mapper_stacks", {})
    mappers = stacks.get(get_ident())  # not by index: the dictionary belongs to TensorFlow and creates missing keys
    found: Origins = mappers[-1].get_effective_source_map() if mappers else {}
    return found


def place_of(file: str, line: int) -> Optional[tuple[str, int, Optional[str]]]:
    """The user's (file, line, function) behind a line of a generated file; None: unknown.

    A thread that a strategy starts for a replica has no map of the function that started it: AutoGraph's cache has it.
    """
    found = origins().get((file, line))
    if found is not None:
        return found
    lines = _FILES.get(file)
    if lines is None:
        made = converted(file)
        if made is None:
            return None
        if len(_FILES) >= _MAX_FILES:
            _FILES.clear()
        lines = _FILES[file] = made[1]
    return lines.get(line)


def origin(file: str, first: int, last: int) -> tuple[str, int, int]:
    """The user's (file, first line, last line) behind these lines of a generated file; the arguments if unknown."""
    made = [place for key, place in origins().items() if key[0] == file and first <= key[1] <= last]
    if not made:
        return file, first, last
    lines = [place[1] for place in made if place[0] == made[0][0]]
    return made[0][0], min(lines), max(lines)


def converted(file: str) -> Optional[tuple[CodeType, dict[int, tuple[str, int, str]]]]:
    """The user's code behind a generated file, and its lines: of the file -> (user's file, line, function).

    Known on every thread and after the trace, from AutoGraph's cache; None if it does not hold the file, or changed
    while it was searched.
    """
    cache: Foreign = getattr(getattr(sys.modules.get(_API), "_TRANSPILER", None), "_cache", None)
    try:
        for code, factories in list(cache._cache.items()):
            for factory in list(factories.values()):
                if getattr(factory.module, "__file__", "") == file:
                    lines = {
                        made.lineno: (origin.loc.filename, origin.loc.lineno, origin.function_name or code.co_name)
                        for made, origin in factory.source_map.items()
                    }
                    return code, lines
    except (AttributeError, RuntimeError):  # another version of AutoGraph; or the cache grew during the search
        return None
    return None
