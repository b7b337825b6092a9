"""The framework whose calls make the steps and are not measured: PyTorch or JAX, in a loop marked by stepscope.step().

Its import is seen, its calls are not: all of such a step looks like Python between calls. Nothing may be concluded from
that, least of all that Python takes the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

NAMES = {"torch": "PyTorch", "jax": "JAX"}
"""Frameworks without probes, and their names in reports."""
MIN_RATIO = 0.9
"""Of the step in Python between calls, from which none of its work was seen."""


def framework(view: SessionView) -> str:
    """The name of the framework; "" if the steps' work was measured, or none of these was imported."""
    anatomy = view.anatomy
    if anatomy is None or anatomy.ratio("other-python") < MIN_RATIO or anatomy.ratio("call") > 0:
        return ""
    return next((title for name, title in NAMES.items() if name in view.frameworks), "")
