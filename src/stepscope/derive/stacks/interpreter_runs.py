"""The Python functions of a native stack, given what each of its interpreter loops ran at the moment of the sample.

Up to CPython 3.10 these are all functions. Later loops run calls from Python to Python inside, and only the innermost
function of each is known: the functions between it and the loop's first are taken from the agent's samples of the
process, if a sample of the same thread close in time leads through all of them, or if no other functions were ever seen
between two.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from stepscope.tables.stacks import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Chain = tuple[Frame, ...]


class InterpreterRun(NamedTuple):
    """The functions run by one loop of the interpreter."""

    inner: Frame | None
    """The innermost function; None: unknown."""
    alone: bool
    """Whether the loop ran no function other than ``callers``."""
    callers: Chain = ()
    """Outer functions that it ran too, root to leaf; without lines if they are not from the moment of the sample."""


class InterpreterRuns(NamedTuple):
    """Python functions of each loop, root to leaf."""

    parts: tuple[Chain, ...]
    """Functions of each loop; None for a loop of which nothing is known."""
    whole: tuple[bool, ...]
    """Whether each part is complete."""
    sampled: bool
    """Whether some frames come from the agent's samples."""


def is_same(one: Frame, other: Frame) -> bool:
    """Whether two frames are of one function."""
    return one.function == other.function and one.file == other.file


class SampledChains:
    """The stacks that the agent has sampled in one process, indexed by function."""

    def __init__(self, stacks: Iterable[Chain]) -> None:
        """``stacks``: whole ones, root to leaf."""
        self._places: dict[tuple[str, str], list[tuple[Chain, int]]] = defaultdict(list)
        self._known: dict[tuple[Frame | None, Frame], Chain | None] = {}
        for stack in dict.fromkeys(stacks):
            for at, frame in enumerate(stack):
                self._places[frame.file, frame.function].append((stack, at))

    def between(self, before: Frame | None, inner: Frame) -> Chain | None:
        """The functions after ``before`` (None: from the root) up to ``inner``, if they were always the same."""
        key = before, inner
        if key not in self._known:
            self._known[key] = self._between(before, inner)
        return self._known[key]

    def _between(self, before: Frame | None, inner: Frame) -> Chain | None:
        found: dict[Chain, Chain] = {}
        for stack, at in self._places[inner.file, inner.function]:
            start = _behind(stack, before, at)
            if start >= 0:
                part = (*stack[start:at], inner)
                functions = tuple(frame._replace(line=0) for frame in part)
                known = found.setdefault(functions, part)
                if known != part:
                    pairs = zip(known, part, strict=True)
                    found[functions] = tuple(one if one == other else one._replace(line=0) for one, other in pairs)
        return next(iter(found.values())) if len(found) == 1 else None


def _behind(stack: Chain, before: Frame | None, at: int) -> int:
    """Where the part of a stack that ends at ``at`` begins; -1 if ``before`` is not in it."""
    if before is None:
        return 0
    return next((i for i in range(at, 0, -1) if is_same(stack[i - 1], before)), -1)


def filled(
    runs: Sequence[InterpreterRun], near: Iterable[Chain], chains: SampledChains, *, rooted: bool
) -> InterpreterRuns:
    """Python functions of each loop of a stack.

    Args:
        runs: root to leaf.
        near: samples of the same thread close enough in time for frames still to be there, the nearest first.
        chains: of the process.
        rooted: whether the stack begins where its thread does.
    """
    if all(run.alone and run.inner is not None and all(one.line for one in run.callers) for run in runs):
        exact = tuple((*run.callers, run.inner) for run in runs if run.inner is not None)
        return InterpreterRuns(exact, (True,) * len(runs), sampled=False)
    for sample in near if rooted else ():
        parts = _fitted(runs, sample)
        if parts is not None:
            return InterpreterRuns(tuple(parts), (True,) * len(runs), sampled=True)
    parts, whole = [], []
    for at, run in enumerate(runs):
        before = runs[at - 1].inner if at else None
        part: Chain | None = None
        if run.inner is not None and not run.alone and (before is not None if at else rooted):
            part = chains.between(before, run.inner)
        whole.append(part is not None or (run.alone and run.inner is not None))
        parts.append(part or (() if run.inner is None else (*run.callers, run.inner)))
    sampled = any(len(part) > 1 for part in parts)
    return InterpreterRuns(tuple(parts), tuple(whole), sampled=sampled)


def _fitted(runs: Sequence[InterpreterRun], sample: Chain) -> list[Chain] | None:
    """The parts of a sample that the loops ran; None if the sample does not lead through all of their functions."""
    parts: list[Chain] = []
    at = 0
    for i, run in enumerate(runs):
        if run.inner is None:
            end = at + 1 if run.alone or i + 1 < len(runs) else len(sample)
        else:
            first = at + len(run.callers)
            if not all(is_same(one, other) for one, other in zip(run.callers, sample[at:first], strict=False)):
                return None
            end = 1 + _place(sample, run.inner, first, last=first if run.alone else len(sample) - 1)
        if not at < end <= len(sample):
            return None
        part = sample[at:end]
        parts.append(part if run.inner is None else (*part[:-1], run.inner if run.inner.line else part[-1]))
        at = end
    return parts


def _place(sample: Chain, inner: Frame, first: int, last: int) -> int:
    """Where a function stands in a sample, preferably at the same line; -1 if absent."""
    places = [i for i in range(first, min(last, len(sample) - 1) + 1) if is_same(sample[i], inner)]
    return next((i for i in places if sample[i].line == inner.line), places[0] if places else -1)
