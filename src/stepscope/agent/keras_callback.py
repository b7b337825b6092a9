"""``keras_callback()``: records epochs as spans and logs as metrics. Optional: nothing else depends on it."""

from __future__ import annotations

import importlib
import os
import sys

from stepscope.agent import api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

_CLASSES: dict[tuple[type, bool], type] = {}
"""Generated classes by base class and whether they read the logs of batches."""


def keras_callback(every: int = 0) -> Foreign:
    """Make a callback for ``fit``: each epoch becomes a span, the logs at its end become metrics.

    Args:
        every: read the logs of every ``every``-th batch too. Reading them may make the host wait for the device.

    Raises:
        ImportError: Keras is not installed.
    """
    base = _base()
    key = (base, every > 0)
    made = _CLASSES.get(key)
    if made is None:
        made = _CLASSES[key] = _make(base, batches=every > 0)
    callback = made()
    callback.every = int(every)
    return callback


def _base() -> type:
    """The ``Callback`` class of the Keras that the program uses."""
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    names = ("tf_keras", "keras") if legacy or "keras" not in sys.modules else ("keras", "tf_keras")
    loaded = [name for name in names if name in sys.modules]
    callback: type = importlib.import_module(loaded[0] if loaded else "keras").callbacks.Callback
    return callback


def _metrics(logs: Optional[dict[str, Foreign]], prefix: str = "") -> None:
    for name, value in (logs or {}).items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        api.metric(prefix + str(name), number)


def _make(base: Foreign, *, batches: bool) -> type:
    class Stepscope(base):  # type: ignore[misc]
        """Records epochs and logs."""

        every = 0

        def __init__(self) -> None:
            super().__init__()
            self._epoch = api.timer("epoch")

        def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Foreign]] = None) -> None:
            del epoch, logs
            self._epoch.start()

        def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Foreign]] = None) -> None:
            del epoch
            self._epoch.stop()
            _metrics(logs)

    if not batches:
        return Stepscope

    class StepscopeBatches(Stepscope):
        """Also reads the logs of every so many batches."""

        def on_train_batch_end(self, batch: int, logs: Optional[dict[str, Foreign]] = None) -> None:
            if self.every and batch % self.every == 0:
                _metrics(logs, "batch ")

    return StepscopeBatches
