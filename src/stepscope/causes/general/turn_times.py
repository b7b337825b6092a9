"""The turns of a job (folds, trials, prompts, epochs of the user's loop): how long each takes, what for, and where.

Serves the general detector of time outside of the steps, the report's head, and the order of findings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.causes.general.spent_lines import LEAST, MAX_LINES, MIN_SAMPLES, SpentLine
from stepscope.derive.ledger import own_steps, turn_split, turns
from stepscope.derive.numeric import intervals
from stepscope.derive.python import doing, stack_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.ledger.turn_split import TurnPart
    from stepscope.derive.ledger.turns import ThreadTurns
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.view import SessionView
    from stepscope.model.report.ledger import Phase

MOST_STEADY = 0.9
"""Share of the steady steps in the turns from which a share of the one is a share of the other."""
PLAIN: frozenset[Phase] = frozenset({"steps", "not-seen"})
"""Parts of a turn that are given no lines."""


class TurnTime(Struct, frozen=True, kw_only=True):
    """One part of the mean turn."""

    phase: Phase
    component: str = ""
    """"input-wait" for that part of the steps; else ""."""
    ns: float
    ratio: float
    """Share of the turn's time."""
    lines: tuple[SpentLine, ...] = ()
    """The costliest first; ratios are shares of the part."""
    samples: int = 0


class TurnTimes(Struct, frozen=True, kw_only=True):
    """The mean turn."""

    turns: ThreadTurns
    mean_ns: float
    job_ratio: float
    """Share of the turns in the job's wall time."""
    steady_ratio: float
    """Share of the turns' time in steady steps, of which costs are shares."""
    parts: tuple[TurnTime, ...]
    """The largest first."""

    def part(self, phase: Phase) -> TurnTime | None:
        """One part; None if a turn has none of it."""
        return next((part for part in self.parts if part.phase == phase), None)


def build(view: SessionView) -> TurnTimes | None:
    """The mean turn; None if nothing around the steps is known to repeat, or nothing says when the job began."""
    ledger = view.get(phase_lines.job) if view.steps is not None else None
    found = turns.find(view.steps, view.source_of) if ledger is not None and view.steps is not None else None
    if ledger is None or found is None or view.steps is None or view.steps.worker is not ledger.worker:
        return None
    own = own_steps.of(view.steps)
    mean = turn_split.mean_ns(found)
    samples = tuple(stack_samples.thread_samples(ledger.worker, ledger.threads, gaps=True))
    parts = tuple(_time(view, part, mean, samples, found) for part in turn_split.split(ledger, found, own))
    return TurnTimes(
        turns=found,
        mean_ns=mean,
        job_ratio=min(1.0, intervals.total(found.window) / found.whole * found.count / ledger.wall_ns),
        steady_ratio=turn_split.steady_ratio(ledger, found, own),
        parts=parts,
    )


def _time(view: SessionView, part: TurnPart, mean: float, samples: Sequence[Sample], found: ThreadTurns) -> TurnTime:
    taken: list[Sample] = []
    if part.phase not in PLAIN and len(samples):
        at = np.array([sample.at for sample in samples], np.int64)
        inside = intervals.overlapping(part.spans, at - 1, at)
        taken = [s for s, hit in zip(samples, inside.tolist(), strict=True) if hit and s.weight_ns and not s.in_agent]
    lines = _by_statement(view, taken, found) if len(taken) >= MIN_SAMPLES else []
    return TurnTime(
        phase=part.phase,
        component=part.component,
        ns=part.ns,
        ratio=part.ns / mean,
        lines=tuple(spent for spent in lines if spent.ratio >= LEAST)[:MAX_LINES],
        samples=len(taken),
    )


def _by_statement(view: SessionView, samples: Sequence[Sample], found: ThreadTurns) -> list[SpentLine]:
    """By the function that one which makes the steps calls, with all that it does, and by the calling line."""
    total = stack_samples.weight_of(samples)
    groups: dict[tuple[Spot, str, str], list[tuple[Sample, Spot]]] = defaultdict(list)
    for sample in samples:
        frames = [frame for frame in sample.frames if frame.own and not _unnamed(frame)]
        makers = [i for i, frame in enumerate(frames) if (frame.file, frame.function) in found.makers]
        if makers:
            reached = frames[min(makers[-1] + 1, len(frames) - 1)]
            groups[frames[makers[-1]], reached.file, reached.function].append((sample, reached))
    spent = []
    for (statement, file, function), group in groups.items():
        line = Counter(spot.line for _, spot in group).most_common(1)[0][0]
        called = Counter(name for sample, _ in group if (name := stack_samples.called(sample)))
        itself = (file, function) == (statement.file, statement.function)
        spent.append(
            SpentLine(
                place=view.place(file, line, function=function),
                ratio=stack_samples.weight_of(sample for sample, _ in group) / total if total else 0.0,
                what=doing.public(called.most_common(1)[0][0]) if called and itself else "",
                framework=_framework(group),
                caller=None if itself else view.place(statement.file, statement.line, function=statement.function),
            )
        )
    return sorted(spent, key=lambda one: -one.ratio)


def _framework(group: Sequence[tuple[Sample, Spot]]) -> float:
    """Share of the samples' time within TensorFlow or Keras."""
    inside = stack_samples.weight_of(sample for sample, _ in group if sample.in_tensorflow)
    return inside / max(1, stack_samples.weight_of(sample for sample, _ in group))


def _unnamed(frame: Spot) -> bool:
    """Whether a frame is that of a comprehension or a lambda, which belong to the function around them."""
    return frame.function.rpartition(".")[2].startswith("<") and frame.function != "<module>"
