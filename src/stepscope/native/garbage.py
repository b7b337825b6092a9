"""How often Python looks for garbage in our own processes."""

from __future__ import annotations

import gc

OBJECTS = (50_000, 20, 50)
"""New containers before each generation is looked through; CPython's own value is 700 for the youngest.

Loading a thousand modules and reading a session makes many objects that stay and few circles: the usual looks took a
sixth of an analysis' CPU time. Its memory is as before: 119 MiB for a session of 2 MB."""


def collect_less() -> None:
    """Let the garbage collector of this process run less often. Only in processes that run no code of the user."""
    gc.set_threshold(*OBJECTS)
