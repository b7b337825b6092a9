"""The differences between two sides: each number of both, with the interval that the design of the comparison gives.

The times that decide, the mean step and the median step, share the error of one claim; all other differences of a
comparison share another. So of a hundred comparisons of equal sides about one shows a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from stepscope.experiments import statistics
from stepscope.model.report.compare import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stepscope.app.comparing.numbers import Line, LineNumber, Numbers
    from stepscope.experiments.statistics import Effect, Statistic
    from stepscope.model.records import F64
    from stepscope.model.report.compare import Basis, Design, Section, Unit, Word
    from stepscope.model.report.place import Place

MIN_ROUNDS = 8
"""Rounds from which runs made in rounds are compared in pairs. With fewer, the degrees of freedom that pairs lose cost
more than the host's drift on a quiet machine (tests/experiments; docs/compare.md has the figures)."""
MIN_P99_STEPS = 200
"""Steps from which there is a 99th percentile: two steps above it."""
MIN_RATIO = 0.01
"""Components, lines and shares below 1 % of the step on both sides are left out."""
MAX_LINES = 20
"""Most lines of a section."""
SAME_BATCH = 0.005
"""Largest relative difference of samples per step between equal batch sizes: last batches of epochs are shorter."""
DECIDING = 2
"""Times that decide: the mean step and the median step."""
_QUANTILES = {"p90": 0.9, "p99": 0.99}
_WORDS: dict[str, tuple[Word, Word]] = {"ns": ("faster", "slower"), "1/s": ("faster", "slower")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two sides and how they are compared."""

    before: tuple[Numbers, ...]
    """Sessions whose steps are compared; in pairs: in the order of their start."""
    after: tuple[Numbers, ...]
    design: Design
    basis: Basis

    @property
    def blocks(self) -> tuple[int, int] | None:
        """Blocks of the steps of each side, if it is one run each."""
        one, other = self.before[0].durations, self.after[0].durations
        if self.design != "within" or one is None or other is None:
            return None
        return statistics.blocks_of(one), statistics.blocks_of(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A number of each run of both sides, and the values within the runs if there is one a side."""

    section: Section
    name: str
    unit: Unit
    before: tuple[float, ...]
    """One value of each run of side A."""
    after: tuple[float, ...]
    steps: tuple[F64, F64] | None = None
    """Values of the steps of the first run of each side, if the number is made of them by ``statistic``."""
    statistic: Statistic = statistics.mean
    samples: tuple[int, int] | None = None
    """Stack samples of the first run of each side, if the number is a share of them."""
    where: Place | None = None

    @property
    def change(self) -> float:
        """How far apart the sides are."""
        return abs((_middle(self.after) or 0.0) - (_middle(self.before) or 0.0))


def sides(before: Sequence[Numbers], after: Sequence[Numbers]) -> Sides:
    """How two groups of sessions are compared. Sessions without steps are left out if others have some."""
    with_steps = [tuple(n for n in side if n.step_ns is not None) for side in (before, after)]
    stepped = all(with_steps)
    one, other = with_steps if stepped else (tuple(before), tuple(after))
    design: Design = "unpaired"
    if len(one) == len(other) == 1:
        design = "within"
    elif in_rounds(one, other):
        design = "paired"
    basis: Basis = "run" if not stepped else "sample" if batches_differ(one, other) else "step"
    ordered = [tuple(sorted(side, key=_started)) if design == "paired" else side for side in (one, other)]
    return Sides(before=ordered[0], after=ordered[1], design=design, basis=basis)


def in_rounds(before: Sequence[Numbers], after: Sequence[Numbers]) -> bool:
    """Whether the runs were made in rounds, one of each side a round, on one machine, and are enough for pairs."""
    if len(before) != len(after) or len(before) < MIN_ROUNDS:
        return False
    made = sorted([(_started(n), 0) for n in before] + [(_started(n), 1) for n in after])
    order = [side for _, side in made]
    hosts = {(n.manifest.host.name, n.manifest.host.boot_id) for n in (*before, *after)}
    return len(hosts) == 1 and all(a != b for a, b in zip(order[::2], order[1::2], strict=True))


def batches_differ(before: Sequence[Numbers], after: Sequence[Numbers]) -> bool:
    """Whether the steps of the two sides hold different numbers of samples."""
    held = [[n.samples_per_step for n in side] for side in (before, after)]
    known = [[value for value in side if value is not None] for side in held]
    if [len(side) for side in known] != [len(before), len(after)] or any(
        n.sample_ns is None for n in (*before, *after)
    ):
        return False
    return abs(fmean(known[1]) / fmean(known[0]) - 1.0) > SAME_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """All differences of a comparison."""

    main: Difference
    """The time that decides: the mean step, or the whole run."""
    typical: Difference | None
    """The median step, which decides where the mean is undecided; None without steps."""
    others: tuple[Difference, ...]


def build(compared: Sides, runs: tuple[Sequence[Numbers], Sequence[Numbers]]) -> Differences:
    """All differences. ``runs``: all sessions of each side, for wall time and memory."""
    asked_main = _main(compared)
    whole = [one for one in _whole_runs(runs) if one.name != asked_main.name]
    if compared.basis == "run":
        main = _difference(asked_main, _effect(asked_main, compared, looks=1))
        return Differences(main=main, typical=None, others=_shown([*_op_lines(compared), *whole], compared))
    effect = _effect(asked_main, compared, looks=DECIDING)
    middle = _steps(compared, "p50", statistics.median, _quantile_of(0.5))
    return Differences(
        main=_difference(asked_main, effect),
        typical=_difference(middle, _effect(middle, compared, looks=DECIDING)),
        others=(
            *(_throughput(row, compared, effect) for row in _rates(compared)),
            *_shown([*_others(compared), *whole], compared),
        ),
    )


def _shown(asked: Sequence[_Asked], compared: Sides) -> tuple[Difference, ...]:
    """Differences that share the error of one claim."""
    return tuple(_difference(one, _effect(one, compared, looks=max(1, len(asked)))) for one in asked)


def _started(numbers: Numbers) -> int:
    return numbers.manifest.started_unix_ns


def _main(compared: Sides) -> _Asked:
    if compared.basis == "run":
        walls = [tuple(float(n.report.session.wall_ns) for n in side) for side in (compared.before, compared.after)]
        return _Asked(section="run", name="wall", unit="ns", before=walls[0], after=walls[1])
    return _steps(compared, "mean", statistics.mean, _mean_ns)


def _mean_ns(numbers: Numbers, basis: Basis) -> float:
    found = numbers.sample_ns if basis == "sample" else numbers.step_ns
    return found or 0.0


def _per(numbers: Numbers, basis: Basis) -> float:
    """By what times of a step are divided."""
    return (numbers.samples_per_step or 1.0) if basis == "sample" else 1.0


def _steps(compared: Sides, name: str, statistic: Statistic, value: Callable[[Numbers, Basis], float]) -> _Asked:
    """A number of the steps of each run."""
    basis = compared.basis
    before, after = (tuple(value(n, basis) for n in side) for side in (compared.before, compared.after))
    inside = [_durations(side[0], basis) for side in (compared.before, compared.after)]
    return _Asked(
        section="steps", name=name, unit="ns", before=before, after=after,
        steps=(inside[0], inside[1]), statistic=statistic,
    )  # fmt: skip


def _durations(numbers: Numbers, basis: Basis) -> F64:
    return (numbers.durations if numbers.durations is not None else np.zeros(0)) / _per(numbers, basis)


def _rates(compared: Sides) -> list[_Asked]:
    """The throughput of each run, as it is shown."""
    found = []
    for name in ("samples_per_s", "steps_per_s"):
        rates = [
            tuple(rate for n in side if (rate := getattr(n.report.session.throughput, name)) is not None)
            for side in (compared.before, compared.after)
        ]
        if compared.basis != "run" and all(rates):
            found.append(_Asked(section="throughput", name=name, unit="1/s", before=rates[0], after=rates[1]))
    return found


def _throughput(asked: _Asked, compared: Sides, main: Effect | None) -> Difference:
    """Throughput has the interval of the time that decides, unless it counts steps and that is per sample."""
    before, after = _middle(asked.before), _middle(asked.after)
    other = asked.name == "steps_per_s" and compared.basis == "sample"
    if main is None or other or not before or not after:
        return _difference(asked, None)
    ratio = after / before
    return _with_effect(
        _difference(asked, None),
        replace(main, ratio=ratio, low=ratio * main.ratio / main.high, high=ratio * main.ratio / main.low),
        word=_word("ns", main),
    )


def _with_effect(shown: Difference, effect: Effect, *, word: Word) -> Difference:
    """``shown`` with an interval."""
    return Difference(
        section=shown.section, name=shown.name, unit=shown.unit, where=shown.where,
        before=shown.before, after=shown.after, ratio=effect.ratio, low=effect.low, high=effect.high,
        smallest=effect.smallest, runs=effect.runs, verdict=word,
    )  # fmt: skip


def _others(compared: Sides) -> list[_Asked]:
    return [*_quantiles(compared), *_anatomy(compared), *_op_lines(compared), *_python_lines(compared)]


def _quantiles(compared: Sides) -> list[_Asked]:
    fewest = min(len(_durations(n, compared.basis)) for n in (*compared.before, *compared.after))
    return [
        _steps(compared, name, statistics.quantile(share), _quantile_of(share))
        for name, share in _QUANTILES.items()
        if name != "p99" or fewest >= MIN_P99_STEPS
    ]


def _quantile_of(share: float) -> Callable[[Numbers, Basis], float]:
    return lambda numbers, basis: float(np.quantile(_durations(numbers, basis), share))


def _anatomy(compared: Sides) -> list[_Asked]:
    """Components of the step, the one that changed most first."""
    basis, found = compared.basis, []
    names = dict.fromkeys(name for n in (*compared.before, *compared.after) for name in n.parts)
    least = MIN_RATIO * (_middle(tuple(_mean_ns(n, basis) for n in compared.before)) or 0.0)
    for name in names:
        parts = [
            [n.parts.get(name, np.zeros(1)) / _per(n, basis) for n in side]
            for side in (compared.before, compared.after)
        ]
        before, after = (tuple(float(part.mean()) for part in side) for side in parts)
        asked = _Asked(
            section="anatomy", name=name, unit="ns", before=before, after=after, steps=(parts[0][0], parts[1][0])
        )
        if max(_middle(before) or 0.0, _middle(after) or 0.0) >= least:
            found.append(asked)
    return _sorted(found)


def _op_lines(compared: Sides) -> list[_Asked]:
    """Op time by line, if both sides have an op trace of steps."""
    basis = compared.basis
    tables = [
        [{key: replace(one, value=one.value / _per(n, basis)) for key, one in n.ops.items()} for n in side if n.ops]
        for side in (compared.before, compared.after)
    ]
    if not all(tables):
        return []
    whole = fmean(sum(one.value for one in table.values()) for table in tables[0])
    return _lines("ops", "ns", tables[0], tables[1], least=MIN_RATIO * whole)


def _python_lines(compared: Sides) -> list[_Asked]:
    """Shares of the stack samples by line."""
    tables = [[n.python for n in side if n.samples] for side in (compared.before, compared.after)]
    if not all(tables):
        return []
    found = _lines("python", "ratio", tables[0], tables[1], least=MIN_RATIO)
    counts = compared.before[0].samples, compared.after[0].samples
    return [replace(one, samples=counts) for one in found]


def _lines(
    section: Section,
    unit: Unit,
    before: Sequence[Mapping[Line, LineNumber]],
    after: Sequence[Mapping[Line, LineNumber]],
    *,
    least: float,
) -> list[_Asked]:
    """One number for each line, those that changed most first; a run without the line has 0."""
    known: dict[Line, LineNumber] = {}
    for table in (*before, *after):
        known.update(table)
    found = []
    for line, shown in known.items():
        values = [tuple(table[line].value if line in table else 0.0 for table in side) for side in (before, after)]
        if max(fmean(values[0]), fmean(values[1])) >= least:
            found.append(
                _Asked(
                    section=section, name=shown.name, unit=unit, before=values[0], after=values[1], where=shown.place
                )
            )
    return _sorted(found)[:MAX_LINES]


def _whole_runs(runs: tuple[Sequence[Numbers], Sequence[Numbers]]) -> list[_Asked]:
    """Wall time and memory of whole runs."""
    walls = [tuple(float(n.report.session.wall_ns) for n in side) for side in runs]
    found = [_Asked(section="run", name="wall", unit="ns", before=walls[0], after=walls[1])]
    for name in dict.fromkeys(name for side in runs for n in side for name in n.memory_bytes):
        values = [tuple(n.memory_bytes[name] for n in side if name in n.memory_bytes) for side in runs]
        if all(values):
            found.append(_Asked(section="run", name=name, unit="bytes", before=values[0], after=values[1]))
    return found


def _sorted(asked: Iterable[_Asked]) -> list[_Asked]:
    return sorted(asked, key=lambda one: -one.change)


def _effect(asked: _Asked, compared: Sides, *, looks: int) -> Effect | None:
    """The effect; None if these data give none."""
    try:
        if compared.design == "within":
            return _within(asked, compared, looks)
        complete = len(asked.before) == len(asked.after) == len(compared.before)  # else the pairs are not known
        in_pairs = compared.design == "paired" and complete and asked.section != "run"
        compare = statistics.paired if in_pairs else statistics.unpaired
        return compare(asked.before, asked.after, looks=looks)
    except ValueError:  # a part that a run lacks, too few runs or steps
        return None


def _within(asked: _Asked, compared: Sides, looks: int) -> Effect | None:
    if asked.steps is not None:
        return statistics.within(*asked.steps, blocks=compared.blocks, statistic=asked.statistic, looks=looks)
    if asked.samples is not None:
        return statistics.shares(asked.before[0], asked.after[0], samples=asked.samples, looks=looks)
    return None


def _difference(asked: _Asked, effect: Effect | None) -> Difference:
    before, after = _middle(asked.before), _middle(asked.after)
    if effect is not None and asked.steps is not None and effect.runs == 1 and not effect.covers_runs:
        before, after = (float(asked.statistic(side)) for side in asked.steps)
    word: Word = "undecided" if effect is None else _word(asked.unit, effect)
    if not before or not after:
        word = "new" if after else "gone" if before else "undecided"
    shown = Difference(
        section=asked.section,
        name=asked.name,
        unit=asked.unit,
        where=asked.where,
        before=before,
        after=after,
        ratio=after / before if before and after else None,
        runs=min(len(asked.before), len(asked.after)),
        verdict=word,
    )
    return shown if effect is None else _with_effect(shown, effect, word=word)


def _word(unit: Unit, effect: Effect) -> Word:
    found = statistics.verdict(effect)
    fewer, more = _WORDS.get(unit, ("less", "more"))
    return fewer if found == "faster" else more if found == "slower" else found


def _middle(values: Sequence[float]) -> float | None:
    """The geometric mean; the mean where a run has none of it, None without any."""
    if not values:
        return None
    return geometric_mean(values) if min(values) > 0.0 else fmean(values) or None
