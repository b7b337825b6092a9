"""The package ``stepscope`` as the job sees it: ``step``, ``span``, ``timer``, ``metric`` and ``keras_callback``.

Importing it has no effect. An installed stepscope stays reachable: its submodules are found after those that travel
with the agent.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.agent.api import metric, span, step, timer
    from stepscope.agent.keras_callback import keras_callback

__version__ = "0+job"
__all__ = ["__version__", "keras_callback", "metric", "span", "step", "timer"]


class _Path(list):  # type: ignore[type-arg]  # Python 3.8 cannot subscript it, and this file may be read there
    """The folders of this package: the agent's, then on demand those that ``pkgutil.extend_path`` would find.

    They are looked up only for a submodule that is not the agent's, because importing pkgutil would cost each of the
    job's processes more than all the rest of arming.
    """

    def __iter__(self) -> Iterator[str]:
        yield from list.__iter__(self)
        for entry in list(sys.path):
            folder = os.path.join(entry, "stepscope")
            if folder not in self and os.path.isfile(os.path.join(folder, "__init__.py")):
                yield folder


__path__ = _Path([os.path.dirname(os.path.abspath(__file__))])


def __getattr__(name: str) -> object:
    if name in ("metric", "span", "step", "timer"):
        from stepscope.agent import api

        value = globals()[name] = getattr(api, name)
        return value
    if name == "keras_callback":
        from stepscope.agent import keras_callback

        value = globals()[name] = keras_callback.keras_callback
        return value
    raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
