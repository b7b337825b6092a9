"""no-callbacks, without-callback:NAME: fits run without their callbacks, or without those of a class.

Where it is switched on and off, callbacks stay in their list and miss the hooks of batches alone: those of epochs and
of the whole training keep their state valid.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.support import NamedArguments, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

MODULES = ("keras.src.callbacks.callback_list", "keras.src.callbacks", "tf_keras.src.callbacks")
BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end")
HISTORY = "History"
"""Class of the callback that holds the results of a fit: Keras itself adds it, and fits without callbacks have it."""
PROGRESS = "ProgbarLogger"
"""Class of the progress bar, which Keras itself adds to the callbacks."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    if effect.name == "without-callback" and not effect.argument:
        raise ValueError("without-callback needs the name of a callback's class")
    effect.missed("no fit of Keras with callbacks")
    return [(module, functools.partial(_attach, effect)) for module in MODULES]


def _attach(effect: Effect, state: AgentState, module: Foreign) -> None:
    cls = getattr(module, "CallbackList", None)
    if cls is None or cls.__module__ != module.__name__:
        return
    seen: set[str] = set()

    if effect.switched:
        for hook in BATCH_HOOKS:
            replace(state, cls, hook, functools.partial(_switched, effect))
        return

    def keeps(name: str) -> bool:
        """Whether callbacks of this class stay; notes one that goes."""
        seen.add(name)
        if effect.argument not in ("", name):
            effect.missed("no callback %s; there are %s" % (effect.argument, ", ".join(sorted(seen))))
            return True
        effect.took()
        return False

    def make(original: Foreign) -> Foreign:
        def init(*args: Foreign, **kwargs: Foreign) -> None:
            with effect.wall:
                given = NamedArguments(original, args, kwargs)
                kept = [callback for callback in _flat(given.get("callbacks")) if keeps(type(callback).__name__)]
                given.set("callbacks", kept)
                given.set("add_progbar", given.get("add_progbar") and keeps(PROGRESS))
                args, kwargs = given.call
            original(*args, **kwargs)

        return init

    replace(state, cls, "__init__", make)


def _flat(callbacks: Foreign) -> Iterator[Foreign]:
    """The callbacks of a nested list, of a single callback, or of none."""
    if isinstance(callbacks, (list, tuple)):
        for callback in callbacks:
            yield from _flat(callback)
    elif callbacks is not None:
        yield callbacks


def _switched(effect: Effect, original: Foreign) -> Foreign:
    """A hook of the list that leaves out callbacks while it is on."""

    def hook(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        with effect.wall:
            kept = [one for one in self.callbacks if _stays(effect, one)]
            if len(kept) == len(self.callbacks):
                names = ", ".join(sorted({type(one).__name__ for one in self.callbacks} - {HISTORY}))
                effect.missed("no callback %s; there are %s" % (effect.argument or "at all", names or "none"))
            elif not effect.passed():
                effect.took()
                if not effect.argument:
                    return None
                self = copy.copy(self)  # another thread may call what the list defers: the list itself stays whole
                self.callbacks = kept
        return original(self, *args, **kwargs)

    return hook


def _stays(effect: Effect, callback: Foreign) -> bool:
    name = type(callback).__name__
    return name != effect.argument if effect.argument else name == HISTORY
