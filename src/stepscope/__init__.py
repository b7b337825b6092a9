"""Finds out why a deep-learning job is slow, and proves that the fix works.

Importing this package has no effect: no I/O, no environment, no framework. ``step``, ``span``, ``timer``, ``metric``
and ``keras_callback`` do nothing outside of a run.
"""

from __future__ import annotations

from stepscope._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.api import metric, span, step, timer
    from stepscope.agent.keras_callback import keras_callback

__all__ = ["__version__", "keras_callback", "metric", "span", "step", "timer"]


def __dir__() -> list[str]:
    """What the package has, also before it is loaded: for completion."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name in ("metric", "span", "step", "timer"):
        from stepscope.agent import api  # noqa: PLC0415 - an import of the package alone loads nothing more

        value = globals()[name] = getattr(api, name)
        return value
    if name == "keras_callback":
        from stepscope.agent import keras_callback  # noqa: PLC0415 - as above

        value = globals()[name] = keras_callback.keras_callback
        return value
    raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
