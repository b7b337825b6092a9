"""Where the thread of the steps spent the time for which it did not run: ready for a CPU, or blocked.

A sample of waiting is taken where the agent's thread gets the interpreter lock, and stands for all of its period in
which the thread did not run. If the thread is blocked, that is the place where it waits. If it is only ready for a CPU,
it is met where it lets the lock go, in ``np.argsort``, say: code that keeps the lock loses its CPU as often for its
time. How long it was ready is known from the kernel: that time belongs to what it runs, in proportion to the samples of
its CPU clock. The rest belongs to the lines where looks find it blocked, with the time until it runs again, and to the
lines at which there was no look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.derive.python.stack_samples import weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.python.stack_samples import Sample, Spot

_NOT_BLOCKED = frozenset({"running", "gil"})
"""Calls in which a look finds a thread that is not blocked, or only by the look itself."""


def spread(taken: Sequence[Sample], per_run: float | None) -> tuple[Sample, ...]:
    """The samples in their order, with the weights that this gives; in each component their sum is the same.

    Args:
        taken: with their components.
        per_run: time for which the thread was ready, per time that it ran; None: not known.
    """
    if per_run is None:
        return tuple(taken)
    found = dict[int, float]()
    for component in {sample.component for sample in taken}:
        found.update(_factors(taken, [i for i, s in enumerate(taken) if s.component == component], per_run))
    return tuple(
        replace(sample, weight_ns=round(sample.weight_ns * found[i]), taken_ns=sample.weight_ns)
        for i, sample in enumerate(taken)
    )


def _factors(taken: Sequence[Sample], mine: Sequence[int], per_run: float) -> Iterator[tuple[int, float]]:
    """Numbers of the samples of one component, and the factors of their weights."""
    looked = {taken[i].leaf for i in mine if taken[i].wait is not None}
    blocked = {taken[i].leaf for i in mine if _is_blocked(taken[i])}
    groups: dict[str, list[int]] = {"ran": [], "blocked": [], "free": [], "unknown": []}
    for i in mine:
        groups[_group(taken[i], looked, blocked)].append(i)
    ran, waits, free, unknown = (weight_of(taken[i] for i in group) for group in groups.values())
    ready = min(free + unknown, ran * per_run)
    of_free = min(free, ready)
    of_unknown = ready - of_free
    others = waits + unknown - of_unknown
    more = 1.0 + (free - of_free) / others if others else 1.0
    factors = {
        "ran": 1.0 + ready / ran if ran else 1.0,
        "blocked": more,
        "free": 0.0 if others else 1.0 - of_free / free if free else 1.0,
        "unknown": more * (1.0 - of_unknown / unknown) if unknown else 1.0,
    }
    yield from ((i, factors[name]) for name, group in groups.items() for i in group)


def _group(sample: Sample, looked: set[Spot], blocked: set[Spot]) -> str:
    """What the thread did at the place of a sample: it ``ran`` there, was ``blocked``, was never found blocked
    (``free``), or was not looked at.
    """
    if sample.on_cpu:
        return "ran"
    if sample.leaf in blocked:
        return "blocked"
    return "free" if sample.leaf in looked else "unknown"


def _is_blocked(sample: Sample) -> bool:
    return sample.wait is not None and sample.wait.call not in _NOT_BLOCKED
