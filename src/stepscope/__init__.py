"""Finds out why a deep-learning job is slow, and proves that the fix works.

Importing this package has no effect: no I/O, no environment, no framework. ``step``, ``span``, ``timer``, ``metric``
and ``keras_callback`` do nothing outside of a run; ``open`` reads a session. ``%load_ext stepscope`` is for notebooks.
"""

from __future__ import annotations

from stepscope._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.api import metric, span, step, timer
    from stepscope.agent.keras_callback import keras_callback
    from stepscope.notebook.magics import load_ipython_extension as load_ipython_extension
    from stepscope.notebook.magics import unload_ipython_extension as unload_ipython_extension
    from stepscope.use_cases.opened_session import OpenedSession

    open = OpenedSession  # noqa: A001 - as of gzip and tarfile

__all__ = ["__version__", "keras_callback", "metric", "span", "step", "timer"]
"""Without ``open``: what ``import *`` brings would hide Python's."""
_LOADED_LATER = {name: ("agent.api", name) for name in ("metric", "span", "step", "timer")}
_LOADED_LATER |= {"keras_callback": ("agent.keras_callback", "keras_callback")}
_LOADED_LATER |= {"open": ("use_cases.opened_session", "OpenedSession")}
_LOADED_LATER |= {name: ("notebook.magics", name) for name in ("load_ipython_extension", "unload_ipython_extension")}


def __dir__() -> list[str]:
    """What the package has, also before it is loaded: for completion."""
    return sorted([*__all__, "open"])


def __getattr__(name: str) -> object:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - an import of the package alone loads nothing more

    module, attribute = _LOADED_LATER[name]
    value = globals()[name] = getattr(importlib.import_module(f"stepscope.{module}"), attribute)
    return value
