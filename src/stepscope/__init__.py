"""Finds out why a deep-learning job is slow, and proves that the fix works.

Importing this package has no effect: no I/O, no environment, no framework. ``step``, ``span`` and ``metric`` do
nothing outside of a run.
"""

from __future__ import annotations

from stepscope._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.api import metric, span, step

__all__ = ["__version__", "metric", "span", "step"]


def __getattr__(name: str) -> object:
    if name in ("metric", "span", "step"):
        from stepscope.agent import api  # noqa: PLC0415 - an import of the package alone loads nothing more

        value = globals()[name] = getattr(api, name)
        return value
    raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
