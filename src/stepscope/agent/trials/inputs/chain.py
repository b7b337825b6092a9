"""How the program made its tf.data datasets: the calls of each chain, so that it can be made again in another way."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.core import frames
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.trials.support import DATASETS, NamedArguments, called_by_program, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

STAGES = (
    *("map", "filter", "batch", "padded_batch", "ragged_batch", "unbatch", "shuffle", "repeat", "take", "skip"),
    *("prefetch", "cache", "with_options", "enumerate", "flat_map", "interleave", "ignore_errors", "shard"),
)
"""Transformations that can be put over a dataset again as the program put them over another."""
SOURCE = "from_generator"
"""Method that begins a chain, and is known by its place like a transformation."""


class ChainCall:
    """One call of a chain, as the program made it.

    ``before``: the dataset that it was made of; None: the call begins the chain.
    """

    __slots__ = ("before", "file", "line", "method", "remake")

    def __init__(self, method: str, remake: Optional[Callable[..., Foreign]], before: Foreign) -> None:
        place = frames.user_frame()
        self.method = method
        self.file, self.line = (place[0], place[2]) if place is not None else ("", 0)
        self.remake = remake
        self.before = before


class Remake:
    """The call again, of another dataset."""

    __slots__ = ("_args", "_kwargs", "_original")

    def __init__(self, original: Foreign, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> None:
        self._original = original
        self._args = args
        self._kwargs = kwargs

    def __call__(self, dataset: Foreign, **changed: Foreign) -> Foreign:
        """``changed``: arguments that are others. Raises what the transformation raises."""
        if not changed:
            return self._original(dataset, *self._args, **self._kwargs)
        given = NamedArguments(self._original, (dataset, *self._args), self._kwargs)
        for name, value in changed.items():
            given.set(name, value)
        args, kwargs = given.call
        return self._original(*args, **kwargs)


class DatasetChains:
    """What the program called to make each of its datasets."""

    def __init__(self) -> None:
        self._made = WeakIds()

    @property
    def targets(self) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
        """Where it gets hold."""
        return [(DATASETS, self._attach)]

    def last(self, dataset: Foreign) -> Optional[ChainCall]:
        """The call that made a dataset, if the program made it by one of ``STAGES`` or ``SOURCE``."""
        found: Optional[ChainCall] = self._made.get(dataset)
        return found

    def calls(self, dataset: Foreign) -> tuple[Foreign, list[ChainCall]]:
        """The dataset with which the known part of a chain begins, and the calls from there on, in their order."""
        found: list[ChainCall] = []
        known = self.last(dataset)
        while known is not None:
            found.append(known)
            if known.before is None:
                break
            dataset = known.before
            known = self.last(dataset)
        return dataset, found[::-1]

    def _attach(self, state: AgentState, module: Foreign) -> None:
        def make(name: str, original: Foreign) -> Foreign:
            def stage(dataset: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
                result = original(dataset, *args, **kwargs)
                if result is not dataset and called_by_program():  # in debug mode, prefetch gives the dataset itself
                    self._made.set(result, ChainCall(name, Remake(original, args, kwargs), dataset))
                return result

            return stage

        for name in STAGES:
            if name in vars(module.DatasetV2):  # not in every version
                replace(state, module.DatasetV2, name, functools.partial(make, name))
        source = vars(module.DatasetV2).get(SOURCE)
        if isinstance(source, staticmethod):
            state.patch(module.DatasetV2, SOURCE, staticmethod(self._source(source.__func__)))

    def _source(self, original: Foreign) -> Foreign:
        @functools.wraps(original)
        def from_generator(*args: Foreign, **kwargs: Foreign) -> Foreign:
            result = original(*args, **kwargs)
            if called_by_program():
                self._made.set(result, ChainCall(SOURCE, None, None))
            return result

        return from_generator
