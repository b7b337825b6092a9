"""AutoGraph's generated code: how its files are called, and which line of the user's each of its lines is."""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    Origins = dict[tuple[str, int], tuple[str, int, Optional[str]]]

PREFIX = "__autograph_generated_file"
"""What the names of the generated files begin with."""


def origins() -> Origins:
    """(generated file, line) -> (user's file, line, function), of the functions that this thread traces at present."""
    stacks = getattr(sys.modules.get("tensorflow.python.util.tf_stack"), "_source_mapper_stacks", {})
    mappers = stacks.get(get_ident())  # not by index: the dictionary is TensorFlow's and makes what it lacks
    found: Origins = mappers[-1].get_effective_source_map() if mappers else {}
    return found


def origin(file: str, first: int, last: int) -> tuple[str, int, int]:
    """The user's (file, first line, last line) that the lines ``first`` to ``last`` of a generated file were made from;
    what was given where nothing is known of them.
    """
    made = [place for key, place in origins().items() if key[0] == file and first <= key[1] <= last]
    if not made:
        return file, first, last
    lines = [place[1] for place in made if place[0] == made[0][0]]
    return made[0][0], min(lines), max(lines)
