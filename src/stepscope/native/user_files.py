"""Tells the user's own source files from those of an interpreter, a package or stepscope."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from stepscope.wire.env import ARM_NAME

_OWN = Path(__file__).resolve().parents[1]

_RUN_PREFIX = "stepscope-"

_FOREIGN_PARTS = frozenset({"site-packages", "dist-packages"})


def is_user_file(name: str) -> bool:
    """Whether a path may be the user's own source: absolute, real, Python, not installed, not the interpreter's."""
    if not name.startswith("/") or not name.endswith((".py", ".pyw")):
        return False
    path = Path(name)
    parts = path.parts
    if _FOREIGN_PARTS.intersection(parts) or path.is_relative_to(_OWN):
        return False
    if any(part.startswith(_RUN_PREFIX) and inner == ARM_NAME for part, inner in pairwise(parts)):
        return False
    return not any(
        before in ("lib", "lib64") and part.startswith(("python3", "pypy3")) for before, part in pairwise(parts)
    )
