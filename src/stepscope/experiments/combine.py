"""Which changes can be in effect together, and which takes the place of which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.experiments.interventions import NUMBERED
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.wire import trials

if TYPE_CHECKING:
    from collections.abc import Iterable

_PRELOADED = ("preload-jemalloc", "preload-tcmalloc")
ALTERNATIVES: tuple[frozenset[str], ...] = (
    frozenset(("threads", "threads-default")),
    frozenset(("xla-on", "xla-off")),
    frozenset(("jemalloc-keep", "glibc-keep", *_PRELOADED)),
    frozenset(("glibc-hugepages", *_PRELOADED)),
)
"""Names of which one at most can be in effect: one job has one allocator, and huge pages are those of glibc's."""


def conflict(one: str, other: str) -> bool:
    """Whether two trials exclude each other: alternatives, or the same, perhaps with another number."""
    names = {trials.split(one)[0], trials.split(other)[0]}
    return one == other or (len(names) == 1 and names <= NUMBERED) or any(names <= group for group in ALTERNATIVES)


def merged(kept: Iterable[str], trial: str) -> tuple[str, ...]:
    """What is in effect if a trial ("": none) is added: it replaces what it excludes."""
    if not trial:
        return tuple(kept)
    return (*(one for one in kept if not conflict(one, trial)), trial)


def settings(changes: Iterable[str]) -> tuple[str, ...]:
    """Those that are settings of the environment."""
    return tuple(one for one in changes if one in ENVIRONMENT_REMEDIES)


def interventions(changes: Iterable[str]) -> tuple[str, ...]:
    """Those that take hold in the process."""
    return tuple(one for one in changes if one not in ENVIRONMENT_REMEDIES)
