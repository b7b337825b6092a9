"""Shared by the detectors of the loop's own Python: user code that no probe names, found by stack samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.general import waits
from stepscope.causes.host import user_spans
from stepscope.causes.system import caches, oversubscribed_threads
from stepscope.derive import unmeasured
from stepscope.derive.numeric import proportion
from stepscope.derive.python import costly, doing, hot_spots, known_python, stack_samples
from stepscope.derive.view import with_ready_time
from stepscope.detectors.base import cost_of
from stepscope.tables.findings import Evidence
from stepscope.tables.units import Ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.findings import Cost
    from stepscope.tables.place import Place


NUMPY, MOST = "/numpy/", 0.5
"""Where NumPy's Python lies, and the part of a spot's time from which the spot is one of whole arrays."""
MAX_WAITING = 0.5
"""Code that waits for a known thing for more than this part of its time is no slow Python (GEN014)."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time: a loop's bookkeeping takes a few percent of short steps; for input see INP001."""
    min_samples: int = 8
    """Fewer are too few to name lines."""
    max_tensorflow_ratio: Ratio = Ratio(0.5)
    """Code that spends more than this inside TensorFlow is an eager step (HST002), not slow Python."""


class LoopPython(Struct, frozen=True, kw_only=True):
    """Part of the loop's own Python, by its samples."""

    share: float
    """Share of the steady wall time in all of the loop's Python, without its waits for CPUs that ONNX Runtime's threads
    hold between two runs (CFG007): it would be as long on free ones."""
    part: float
    """Part of ``share`` that falls on ``spots``."""
    interval: tuple[float, float]
    """Of ``part``: what both weights of the samples allow, those of ``ready_time`` and those with which they were
    taken. Which of them is right for the time that the thread was ready depends on whether it waited before."""
    spots: tuple[HotSpot, ...]
    """Most sampled first."""
    count: int
    """Number of samples on them."""
    samples: int
    """Number of samples of all of the loop's Python."""

    @property
    def ratio(self) -> float:
        """Share of the steady wall time."""
        return self.share * self.part

    @property
    def top(self) -> HotSpot:
        """The most sampled spot."""
        return self.spots[0]

    def who(self, view: StepsView) -> str:
        """Where most of the time goes: a function, or lines of the loop itself, with what is called there."""
        what = self.doing(view)
        return who(view, self.top.culprit, self.top.lines[:3]) + (f" ({what})" if what else "")

    def doing(self, view: StepsView) -> str:
        """What is called there; "" if unknown."""
        return doing.of_spot(self.top, view.source_of)

    def places(self, view: StepsView) -> tuple[Place, ...]:
        """The lines with most of the function's time, the loop's statement that calls it, user spans around it."""
        culprit, statement = self.top.culprit, self.top.statement
        lines = (self.top.lines[:3] if is_loop(view, culprit) else self.top.most) or (culprit.line,)
        where = [view.place(culprit.file, min(lines), max(lines), culprit.function)]
        if statement is not None:
            where.append(view.place(statement.file, statement.line, function=statement.function))
        where += [
            view.place(name.call_file, name.call_line, function=f'span "{name.text}"')
            for name, _ in user_spans.explaining(view, self.ratio)
            if name.call_file
        ]
        return tuple(dict.fromkeys(where))

    def evidence(self, view: StepsView, metric: str, params: Params) -> tuple[Evidence, ...]:
        """The measured remainder, the samples that attribute it, and the user spans that hold most of it."""
        return (
            Evidence(
                metric="other_python_ratio",
                value=self.share,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:other-python",),
            ),
            Evidence(metric=metric, value=self.count, unit="samples"),
            Evidence(metric="samples", value=self.samples, unit="samples"),
            *(
                Evidence(metric=f"span {name.text}", value=inside, unit="ratio", refs=(f"name:{name.id}",))
                for name, inside in user_spans.explaining(view, self.ratio)
            ),
        )

    def cost(self, view: StepsView, *, least: float = 1.0, usual: float = 1.0) -> Cost:
        """With the interval of the samples, and at most what the step's calls get back of the caches. ``least`` and
        ``usual``: shares of the steps that remedies save, if they are less than all of this Python.
        """
        low, high = self.interval
        most = min(1.0, self.share * high + caches.freed(view.anatomy.ratio("call")))
        return cost_of(view, min(self.ratio, usual), low=min(self.share * low, least, usual), high=most)


def in_arrays(view: StepsView, found: LoopPython) -> bool:
    """Whether most of the time at the most sampled spot is in NumPy's own functions: it works on whole arrays."""
    spot = (found.top.culprit.file, found.top.culprit.function)
    mine = [s for s in _between(view) if (c := s.culprit) and (c.file, c.function) == spot]
    inside = [s for s in mine if any(NUMPY in frame.file for frame in s.below_user()[:1])]
    return stack_samples.weight_of(inside) >= MOST * max(1, stack_samples.weight_of(mine))


def calls_none(view: StepsView, spot: HotSpot) -> bool:
    """Whether most of a function's time is in Python that calls no framework, where calls are not measured."""
    key = (spot.culprit.file, spot.culprit.function)
    mine = [s for s in _between(view) if (c := s.culprit) is not None and (c.file, c.function) == key]
    arrays = unmeasured.framework(view) != unmeasured.NUMPY
    return known_python.share(mine, view.source_of, arrays=arrays) >= known_python.MIN_RATIO


def is_loop(view: StepsView, spot: Spot) -> bool:
    """Whether a function makes the steps, so that it cannot run less often than once a step."""
    return (spot.file, spot.function) in view.get(_making)


def _making(view: StepsView) -> frozenset[tuple[str, str]]:
    return stack_samples.making_steps(view.samples, view.loop)


def _around(view: StepsView) -> frozenset[tuple[str, str]]:
    """The functions that make the steps, and those that call them."""
    return view.get(_making) | stack_samples.outside(view.samples, view.loop)


def own_ratio(view: StepsView) -> float:
    """Share of the steady wall time in lines of the function that makes the steps, outside of what it calls."""
    every = view.hot_spots("other-python")
    own = sum(spot.ratio for spot in every if is_loop(view, spot.culprit))
    return view.anatomy.ratio("other-python") * own if view.anatomy is not None else 0.0


def who(view: StepsView, spot: Spot, lines: Sequence[int] = ()) -> str:
    """Name for the code at a spot: its function, or its lines if the function makes the steps."""
    if not is_loop(view, spot):
        return spot.function
    first, last = min(lines, default=spot.line), max(lines, default=spot.line)
    return f"the loop's own line {first}" if first == last else f"the loop's own lines {first}-{last}"


def by_function(view: StepsView, found: LoopPython, params: Params) -> tuple[LoopPython, ...]:
    """What was found, by the functions that take at least the least ratio of the steps, each with what it calls, the
    costliest first. The lines of the functions that make the steps do not count what they call.
    """
    between = _between(view)
    whole = stack_samples.weight_of(between)
    left = _on(view, between, found.spots)
    around, least = view.get(_around), params.min_ratio / found.share * whole
    stacks = [(s.weight_ns, _inner(s, around)) for s in left]
    parts = []
    while (chosen := costly.find(stacks, least)) is not None:
        mine = [hot_spots.up_to(left[number], chosen.key) for number in chosen.members]
        parts.append(
            replace(
                found,
                part=chosen.weight_ns / whole,
                interval=_interval(mine, between),
                spots=(hot_spots.hot_spot(mine, whole, view.loop, view.callers),),
                count=len(mine),
            )
        )
        rest = sorted(set(range(len(left))) - set(chosen.members))
        left, stacks = [left[number] for number in rest], [stacks[number] for number in rest]
    return tuple(sorted(parts, key=lambda part: -part.part))


def _between(view: StepsView) -> list[Sample]:
    """The samples of the user's code between the calls that are known."""
    return [s for s in view.get(with_ready_time) if s.component == "other-python" and s.culprit is not None]


def _on(view: StepsView, between: Sequence[Sample], spots: Sequence[HotSpot]) -> list[Sample]:
    """Those on some spots."""
    wanted = {_key(spot.culprit, spot.statement) for spot in spots}
    return [s for s in between if not s.in_agent and (c := s.culprit) and _key(c, view.statement_of(s)) in wanted]


def _interval(mine: Sequence[Sample], between: Sequence[Sample]) -> tuple[float, float]:
    """Of the share of some samples of those between the steps: from the lowest to the highest by either weight."""
    sides = []
    for weight in (stack_samples.weight_of, stack_samples.taken_of):
        of = proportion.effective(weight([sample]) for sample in between)
        sides.append(proportion.interval(weight(mine) / max(1, weight(between)), of))
    return min(low for low, _ in sides), max(high for _, high in sides)


def _key(culprit: Spot, statement: Spot | None) -> tuple[str, str, int]:
    return culprit.file, culprit.function, statement.line if statement is not None else 0


def _inner(sample: Sample, around: Collection[tuple[str, str]]) -> costly.Path:
    """The user's frames below those that make the steps; the innermost of these, where there are none."""
    frames = costly.path(sample.frames)
    last = max((n for n, f in enumerate(frames) if (f.file, stack_samples.plain(f.function)) in around), default=-1)
    return frames[last + 1 :] or frames[-1:]


def find(view: StepsView, params: Params, wanted: Callable[[HotSpot], bool]) -> LoopPython | None:
    """The loop's Python on the wanted spots; None if it takes too little time or has too few samples."""
    share = view.anatomy.ratio("other-python") * (1.0 - oversubscribed_threads.waits_for_spinning(view))
    if share < params.min_ratio:
        return None
    every = view.hot_spots("other-python")
    waiting = waits.functions(view, "other-python")
    mine = tuple(
        s
        for s in every
        if s.tensorflow_ratio <= params.max_tensorflow_ratio
        and wanted(s)
        and waiting.get((s.culprit.file, s.culprit.function), 0.0) < MAX_WAITING * s.ratio
    )
    between = _between(view)
    found = LoopPython(
        share=share,
        part=sum(s.ratio for s in mine),
        interval=_interval(_on(view, between, mine), between),
        spots=mine,
        count=sum(s.samples for s in mine),
        samples=sum(s.samples for s in every),
    )
    return found if found.count >= params.min_samples and found.ratio >= params.min_ratio else None
