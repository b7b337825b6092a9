"""Whether PyTorch's compiler is reading the calling code, not running it: it would take our code for the job's.

``torch.compiler.is_compiling`` says so, and the compiler knows that it is true. The package is imported after the
modules that have wrappers of ours, so these call ``compiling.is_compiling()``: the function that is here by then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

is_compiling: Callable[[], bool] = bool
"""A constant until ``torch.compiler`` is imported, and before PyTorch 2.1, which has none."""
