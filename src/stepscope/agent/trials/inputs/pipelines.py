"""parallel-map, prefetch, cache-input, private-threads: settings of the program's tf.data pipeline."""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import TYPE_CHECKING

from stepscope.agent.trials.inputs import feeds, held
from stepscope.agent.trials.inputs.chain import DatasetChains
from stepscope.agent.trials.support import DATASETS, NamedArguments, called_by_program, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

    Attach = Callable[[AgentState, Foreign], object]

AUTOTUNE = -1
FILL_S = 30.0
"""Time to fill a cache with an epoch of the input."""


def targets(effect: Effect) -> list[tuple[str, Attach]]:
    """Where it gets hold."""
    if effect.name == "parallel-map":
        effect.missed("the program maps no tf.data dataset")
        return [(DATASETS, functools.partial(_attach_maps, effect))]
    if effect.name == "prefetch":
        return feeds.targets(effect, functools.partial(_prefetched, effect))
    if effect.name == "private-threads":
        return feeds.targets(effect, functools.partial(_apart, effect))
    chains = DatasetChains()
    return [*chains.targets, *feeds.targets(effect, functools.partial(_cached, effect, chains))]


def _attach_maps(effect: Effect, state: AgentState, module: Foreign) -> None:
    def make(original: Foreign) -> Foreign:
        def map_(*args: Foreign, **kwargs: Foreign) -> Foreign:
            if called_by_program():
                with effect.wall:
                    given = NamedArguments(original, args, kwargs)
                    if given.get("num_parallel_calls") is None and not given.get("synchronous"):
                        given.set("num_parallel_calls", AUTOTUNE)
                        args, kwargs = given.call
                        effect.took()
                    else:
                        effect.missed("all maps run in parallel already")
            return original(*args, **kwargs)

        return map_

    replace(state, module.DatasetV2, "map", make)


def _prefetched(effect: Effect, dataset: Foreign) -> Foreign:
    last = dataset
    while type(last).__name__.lstrip("_") in ("OptionsDataset", "ModelDataset"):
        last = last._input_dataset
    if type(last).__name__.lstrip("_") == "PrefetchDataset":
        effect.missed("the dataset ends in prefetch already")
        return None
    return dataset.prefetch(AUTOTUNE)


def _apart(effect: Effect, dataset: Foreign) -> Foreign:
    if dataset.options().threading.private_threadpool_size:
        effect.missed("the dataset has private threads already")
        return None
    options = sys.modules["tensorflow"].data.Options()
    options.threading.private_threadpool_size = _cores()
    return dataset.with_options(options)


def _cores() -> int:
    """Cores that the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cached(effect: Effect, chains: DatasetChains, dataset: Foreign) -> Foreign:
    """``dataset`` with a full cache after its last map; None if that cannot be."""
    above: list[Callable[..., Foreign]] = []
    known = chains.last(dataset)
    while known is not None and known.remake is not None and known.method not in ("map", "cache"):
        above.append(known.remake)
        dataset = known.before
        known = chains.last(dataset)
    if known is None or known.remake is None:
        effect.missed("the dataset has no map")
    elif known.method == "cache":
        effect.missed("the dataset is cached after its last map already")
    elif int(dataset.cardinality()) == held.INFINITE:
        effect.missed("the dataset repeats before its last map: a cache would never be full")
    else:
        cached = dataset.cache()
        if filled(effect, cached):
            for again in reversed(above):
                cached = again(cached)
            return cached
    return None


def filled(effect: Effect, cached: Foreign) -> bool:
    """Fill a cache by a pass; whether one ended in time."""
    ends = time.monotonic() + FILL_S
    for _ in cached:
        if time.monotonic() > ends:
            effect.missed("an epoch of the input takes more than %.0f s: the cache could not be filled" % FILL_S)
            return False
    return True
