"""The differences between two sides: each number of both, with the interval that the design of the comparison gives.

The times that decide, the mean step and the median step, share the error of one claim; all other differences of a
comparison share another. So of a hundred comparisons of equal sides about one shows a verdict.

One run a side shows nothing of what runs of one program differ by. Intervals of its times assume it
(``statistics.assumed``); those of the time of all steps hold nothing else. Counts are decided by being other numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.experiments import statistics
from stepscope.model.report.compare import Difference
from stepscope.use_cases.comparing import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.experiments.statistics import Effect
    from stepscope.model.report.compare import Unit, Word
    from stepscope.use_cases.comparing.design import Sides
    from stepscope.use_cases.comparing.numbers import SessionNumbers
    from stepscope.use_cases.comparing.rows import ComparedNumber

DECIDING = 2
"""Times that decide: the mean step and the median step."""
_WORDS: dict[str, tuple[Word, Word]] = {"ns": ("faster", "slower"), "1/s": ("faster", "slower")}


class Differences(Struct, frozen=True, kw_only=True):
    """All differences of a comparison."""

    main: Difference | None
    """The time that decides: the mean step, the whole run, or the same ops; None if there is none."""
    typical: Difference | None
    """The median step, which decides where the mean is undecided; None without steps."""
    others: tuple[Difference, ...]


def build(compared: Sides, runs: tuple[Sequence[SessionNumbers], Sequence[SessionNumbers]]) -> Differences:
    """All differences. ``runs``: all sessions of each side, for wall time and memory."""
    asked = rows.main(compared)
    whole = [*rows.whole_runs(runs), *rows.phases(compared), *rows.calls(compared)]
    whole = [one for one in whole if asked is None or (one.section, one.name) != (asked.section, asked.name)]
    if compared.basis in {"run", "ops"}:
        shown = [*rows.op_lines(compared), *rows.op_calls(compared), *whole]
        found = _difference(asked, _effect(asked, compared, looks=1)) if asked is not None else None
        return Differences(main=found, typical=None, others=_shown(shown, compared))
    effect = _effect(asked, compared, looks=DECIDING) if asked is not None else None
    median = rows.median(compared)
    return Differences(
        main=_difference(asked, effect) if asked is not None else None,
        typical=_difference(median, _effect(median, compared, looks=DECIDING)),
        others=(
            *(_throughput(row, compared, effect) for row in rows.rates(compared)),
            *_shown([*rows.inside(compared), *rows.op_calls(compared), *whole], compared),
        ),
    )


def _shown(asked: Sequence[ComparedNumber], compared: Sides) -> tuple[Difference, ...]:
    """Differences that share the error of one claim."""
    return tuple(_difference(one, _effect(one, compared, looks=max(1, len(asked)))) for one in asked)


def _throughput(asked: ComparedNumber, compared: Sides, main: Effect | None) -> Difference:
    """Throughput has the interval of the time that decides, unless it counts steps and that is per sample."""
    before, after = rows.middle(asked.before), rows.middle(asked.after)
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
        section=shown.section, name=shown.name, unit=shown.unit, basis=shown.basis, where=shown.where,
        before=shown.before, after=shown.after, ratio=effect.ratio, low=effect.low, high=effect.high,
        smallest=effect.smallest, runs=effect.runs, verdict=word,
        runs_needed=None if effect.covers_runs else statistics.runs_needed(effect.ratio, looks=DECIDING),
    )  # fmt: skip


def _effect(asked: ComparedNumber, compared: Sides, *, looks: int) -> Effect | None:
    """The effect; None if these data give none."""
    try:
        if asked.exact:
            return statistics.assumed(asked.after[0] / asked.before[0]) if asked.unit != "count" else None
        if compared.design == "within":
            return _within(asked, compared, looks)
        complete = len(asked.before) == len(asked.after) == len(compared.before)  # else the pairs are not known
        in_pairs = compared.design == "paired" and complete and asked.section != "run"
        compare = statistics.paired if in_pairs else statistics.unpaired
        return compare(asked.before, asked.after, looks=looks)
    except (ValueError, ZeroDivisionError):  # a part that a run lacks, too few runs or steps
        return None


def _within(asked: ComparedNumber, compared: Sides, looks: int) -> Effect | None:
    if asked.steps is not None:
        found = statistics.within(*asked.steps, blocks=compared.blocks, statistic=asked.statistic, looks=looks)
        return statistics.assumed(found.ratio, math.log1p(found.smallest))
    if asked.samples is not None:
        return statistics.shares(asked.before[0], asked.after[0], samples=asked.samples, looks=looks)
    return None


def _difference(asked: ComparedNumber, effect: Effect | None) -> Difference:
    before, after = rows.middle(asked.before), rows.middle(asked.after)
    if effect is not None and asked.steps is not None and not asked.exact and not effect.covers_runs:
        before, after = (float(asked.statistic(side)) for side in asked.steps)
    word: Word = "undecided" if effect is None else _word(asked.unit, effect)
    if not before or not after:
        word = "new" if after else "gone" if before else "undecided"
        if asked.samples is not None and not statistics.on_one_side(before or 0.0, after or 0.0, asked.samples):
            word = "undecided"
    elif asked.exact and asked.unit == "count":
        word = "more" if after > before else "less"
    shown = Difference(
        section=asked.section,
        name=asked.name,
        unit=asked.unit,
        basis=asked.basis,
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
