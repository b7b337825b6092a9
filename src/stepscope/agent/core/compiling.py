"""Whether PyTorch's compiler is reading the calling code, not running it: it would take our code for the job's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def test() -> Callable[[], bool]:
    """``torch.compiler.is_compiling``, which its compiler knows to be true; a constant without it (before 2.1)."""
    found = getattr(sys.modules.get("torch.compiler"), "is_compiling", None)
    return found if callable(found) else bool
