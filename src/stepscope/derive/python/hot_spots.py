"""User code sampled within a component of the step: how much of it falls on which function, and what that calls."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.numeric import proportion
from stepscope.derive.python import line_weights, stack_samples
from stepscope.derive.python.stack_samples import Spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.python.stack_samples import Sample
    from stepscope.model.report.components import ComponentName


class HotSpot(Struct, frozen=True, kw_only=True):
    """User code sampled within a component, grouped by function and by the statement of the loop."""

    culprit: Spot
    """The function, with its costliest line."""
    lines: tuple[int, ...]
    """All sampled lines of the function, the costliest first."""
    most: tuple[int, ...]
    """The fewest of them that have most of its time."""
    statement: Spot | None
    """The line of the loop from which it was reached."""
    samples: int
    effective: float
    """Number of samples of one weight whose shares are as uncertain as those of its samples."""
    ratio: float
    """Share of the component's sampled time."""
    tensorflow_ratio: float
    """Share of its sampled time inside TensorFlow or Keras."""
    entered: str
    """The function called by the statement of the loop, if it has a Python frame; "" for none."""
    called: str
    """What the line was calling most often. C functions such as "time.sleep" have no Python frame, so "" is common."""
    called_ratio: float
    """Share of its sampled time in ``called``."""


def hot_spots(
    taken: Iterable[Sample],
    components: frozenset[ComponentName],
    loop: tuple[str, str] | None,
    around: Sequence[Spot] = (),
) -> tuple[HotSpot, ...]:
    """Hot spots of some components, the most frequent first.

    Samples of measuring itself count towards the whole, but are nobody's hot spot. ``around``: the ``callers`` of the
    loop's function, whose statements pay for what runs outside of it.
    """
    chosen = [s for s in taken if s.component in components and s.culprit is not None]
    groups: dict[tuple[str, str, int], list[Sample]] = {}
    for sample in chosen:
        if sample.in_agent:
            continue
        culprit = sample.culprit
        statement = stack_samples.statement_of(sample, loop, around)
        if culprit is not None:
            key = (culprit.file, culprit.function, statement.line if statement else 0)
            groups.setdefault(key, []).append(sample)
    whole = stack_samples.weight_of(chosen)
    spots = [hot_spot(members, whole, loop, around) for members in groups.values()]
    return tuple(sorted(spots, key=lambda s: -s.ratio))


def up_to(sample: Sample, function: tuple[str, str]) -> Sample:
    """The sample as one of a function: what that calls counts as no code of the user's."""
    last = max(
        i for i, f in enumerate(sample.frames) if f.own and (f.file, stack_samples.plain(f.function)) == function
    )
    return replace(sample, frames=tuple(replace(f, own=f.own and i <= last) for i, f in enumerate(sample.frames)))


def hot_spot(members: Sequence[Sample], whole: int, loop: tuple[str, str] | None, around: Sequence[Spot]) -> HotSpot:
    """What samples of one function show, of the ``whole`` sampled time of their component, ns."""
    culprits = [(c, s.weight_ns) for s in members if (c := s.culprit) is not None]
    spent = line_weights.ranked((spot.line, weight) for spot, weight in culprits)
    lines = tuple(line for line, _ in spent.most_common())
    below: Counter[str] = Counter()
    for sample in members:
        below[stack_samples.called(sample)] += sample.weight_ns
    below.pop("", None)
    callee, inside = below.most_common(1)[0] if below else ("", 0)
    statement = stack_samples.statement_of(members[0], loop, around)
    at = (statement.file, statement.function) if statement is not None else None
    entered = Counter(f for s in members if (f := _entered(s, at)))
    first = culprits[0][0]
    weight = stack_samples.weight_of(members)
    return HotSpot(
        culprit=Spot(file=first.file, function=first.function, line=lines[0] if lines else first.line, own=True),
        lines=lines,
        most=line_weights.most(spent),
        statement=statement,
        samples=len(members),
        effective=proportion.effective(s.weight_ns for s in members),
        ratio=weight / whole if whole else 0.0,
        tensorflow_ratio=stack_samples.weight_of(s for s in members if s.in_tensorflow) / weight if weight else 0.0,
        entered=entered.most_common(1)[0][0] if entered else "",
        called=callee,
        called_ratio=inside / weight if weight else 0.0,
    )


def _entered(sample: Sample, loop: tuple[str, str] | None) -> str:
    """The function called by the loop's frame."""
    names = [(f.file, f.function) for f in sample.frames]
    last = len(names) - 1 - names[::-1].index(loop) if loop is not None and loop in names else len(names)
    return names[last + 1][1] if last + 1 < len(names) else ""
