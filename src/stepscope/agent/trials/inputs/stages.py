"""without-stage:METHOD, without-stage:FILE:LINE: transformations of tf.data datasets are left out."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.trials.support import DATASETS, called_by_program, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

METHODS = ("map", "filter", "shuffle", "cache", "interleave", "enumerate", "ignore_errors", "prefetch", "with_options")
"""Transformations that can be left out: what they give may be what they are given."""


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    file, _, line = effect.argument.rpartition(":")
    if not (file and line.isdigit()) and effect.argument not in METHODS:
        raise ValueError("without-stage needs FILE:LINE or one of %s" % ", ".join(METHODS))
    effect.missed("no transformation %s is made" % effect.argument)
    return [(DATASETS, functools.partial(_attach, effect, file, int(line) if file else 0))]


def _attach(effect: Effect, file: str, line: int, state: AgentState, module: Foreign) -> None:
    def make(name: str, original: Foreign) -> Foreign:
        def stage(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
            wanted = False
            if called_by_program():
                with effect.wall:
                    wanted = name == effect.argument or (bool(file) and _is_at(sys._getframe(1), file, line))
            if not wanted:
                return original(self, *args, **kwargs)
            return _left_out(effect, name, self, functools.partial(original, self, *args, **kwargs))

        return stage

    for name in METHODS:
        if name in vars(module.DatasetV2):  # not in every version
            replace(state, module.DatasetV2, name, functools.partial(make, name))


def _left_out(effect: Effect, name: str, dataset: Foreign, real: Callable[[], Foreign]) -> Foreign:
    """The dataset without the transformation, if its elements are of the same kind."""
    made = real()
    with effect.wall:
        if made.element_spec == dataset.element_spec:
            effect.took()
            return dataset
        effect.missed("%s changes the type or shape of elements: it cannot be left out" % name)
    return made


def _is_at(frame: FrameType, file: str, line: int) -> bool:
    """Whether a call stands at FILE:LINE; before Python 3.11 all calls of a chain are at its first line."""
    path = frames.absolute(frame.f_code.co_filename)
    if not (path == file or path.endswith(os.sep + file.lstrip("./"))):
        return False
    return frame.f_lineno == line
