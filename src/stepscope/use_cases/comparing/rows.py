"""The rows of a comparison: each number of all runs of both sides, before anything is said of it."""

from __future__ import annotations

from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.experiments import statistics
from stepscope.model.report.compare import TIMED_MEAN
from stepscope.model.report.ledger import ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stepscope.experiments.statistics import Statistic
    from stepscope.model.report.compare import RowBasis, Section, Unit
    from stepscope.tables.place import Place
    from stepscope.tables.records import F64
    from stepscope.use_cases.comparing.design import Sides
    from stepscope.use_cases.comparing.numbers import Line, LineNumber, SessionNumbers

MIN_P99_STEPS = 200
"""Steps from which there is a 99th percentile: two steps above it."""
MIN_RATIO = 0.01
"""Components, lines, phases and shares below 1 % of the whole on both sides are left out."""
MAX_LINES = 20
"""Most lines of a section."""
MIN_COMMON = 0.5
"""Share of the op time of each side in ops that both ran, from which their times say what the same work takes."""
_ONCE = frozenset({*ONCE, "end", "not-seen"})
"""Parts of the wall time that are no work of the steps: they vary with the machine and the disk's cache."""
_QUANTILES = {"p90": 0.9, "p99": 0.99}
_SAMPLED: dict[Section, RowBasis] = {"ops": "ops", "python": "samples"}


class ComparedNumber(Struct, frozen=True, kw_only=True):
    """A number of each run of both sides, and the values within the runs if there is one a side."""

    section: Section
    name: str
    unit: Unit
    before: tuple[float, ...]
    """One value of each run of side A."""
    after: tuple[float, ...]
    basis: RowBasis = "timed"
    steps: tuple[F64, F64] | None = None
    """Values of the steps of the first run of each side, if the number is made of them by ``statistic``."""
    statistic: Statistic = statistics.mean
    samples: tuple[int, int] | None = None
    """Stack samples of the first run of each side, if the number is a share of them."""
    exact: bool = False
    """Flag: one run a side, and nothing of the number is an estimate."""
    where: Place | None = None

    @property
    def change(self) -> float:
        """How far apart the sides are."""
        return abs((middle(self.after) or 0.0) - (middle(self.before) or 0.0))


def middle(values: Sequence[float]) -> float | None:
    """The geometric mean; the mean where a run has none of it, None without any."""
    if not values:
        return None
    if len(values) == 1:
        return values[0] or None
    return geometric_mean(values) if min(values) > 0.0 else fmean(values) or None


def main(compared: Sides) -> ComparedNumber | None:
    """The time that decides; None if there is none."""
    if compared.basis == "ops":
        return _same_ops(compared)
    if compared.basis == "run":
        found = _each(compared, lambda n: float(n.report.session.wall_ns))
        return ComparedNumber(
            section="run", name="wall", unit="ns", before=found[0], after=found[1], basis="run", exact=compared.exact
        )
    return replace(
        _steps(compared, "mean", statistics.mean, compared.mean_ns), basis=compared.made_of, exact=compared.exact
    )


def median(compared: Sides) -> ComparedNumber:
    """The median step."""
    return _steps(compared, "p50", statistics.median, _quantile_of(0.5, compared))


def rates(compared: Sides) -> list[ComparedNumber]:
    """The throughput of each run: of all steps where they were counted, else as the report has it."""
    found = []
    for name in ("samples_per_s", "steps_per_s"):
        values = [
            tuple(rate for n in side if (rate := _rate(n, name)) is not None)
            for side in (compared.before, compared.after)
        ]
        if all(values):
            found.append(
                ComparedNumber(
                    section="throughput", name=name, unit="1/s", before=values[0], after=values[1],
                    basis=compared.made_of, exact=compared.exact,
                )
            )  # fmt: skip
    return found


def _rate(numbers: SessionNumbers, name: str) -> float | None:
    ns = numbers.sample_ns if name == "samples_per_s" else numbers.step_ns
    return 1e9 / ns if ns else None


def inside(compared: Sides) -> list[ComparedNumber]:
    """Everything of the steps but the times that decide."""
    return [
        *_timed_mean(compared),
        *_quantiles(compared),
        *_anatomy(compared),
        *op_lines(compared),
        *_python_lines(compared),
    ]


def whole_runs(runs: tuple[Sequence[SessionNumbers], Sequence[SessionNumbers]]) -> list[ComparedNumber]:
    """Wall time and memory of whole runs; of an import, memory alone: its length says nothing of the job."""
    found = []
    if not any(n.imported for side in runs for n in side):
        walls = [tuple(float(n.report.session.wall_ns) for n in side) for side in runs]
        found.append(
            ComparedNumber(section="run", name="wall", unit="ns", before=walls[0], after=walls[1], basis="run")
        )
    for name in dict.fromkeys(name for side in runs for n in side for name in n.memory_bytes):
        values = [tuple(n.memory_bytes[name] for n in side if name in n.memory_bytes) for side in runs]
        if all(values):
            found.append(
                ComparedNumber(section="run", name=name, unit="bytes", before=values[0], after=values[1], basis="run")
            )
    return found


def phases(compared: Sides) -> list[ComparedNumber]:
    """Parts of the wall time, the one that changed most first."""
    same = compared.made_of == "total"
    names = dict.fromkeys(name for n in compared.all for name in n.phases)
    longest = max((sum(n.phases.values()) for n in compared.all), default=0.0)
    found = []
    for name in names:
        before, after = _each(compared, _phase(name))
        if max(*before, *after) >= MIN_RATIO * longest:
            basis: RowBasis = "total" if same and name not in _ONCE else "run"
            exact = compared.design == "within" and basis == "total"
            found.append(
                ComparedNumber(
                    section="ledger", name=name, unit="ns", before=before, after=after, basis=basis, exact=exact
                )
            )
    return _sorted(found)


def calls(compared: Sides) -> list[ComparedNumber]:
    """Calls of each task, where the sides differ in them, the one that changed most first."""
    names: dict[Line, LineNumber] = {}
    if not all(n.calls for n in compared.all):  # records were lost, or nothing repeats
        return []
    for n in compared.all:
        names.update(n.calls)
    found = []
    for key, shown in names.items():
        before, after = (
            tuple(n.calls[key].value if key in n.calls else 0.0 for n in side)
            for side in (compared.before, compared.after)
        )
        if set(before) != set(after):
            found.append(
                ComparedNumber(
                    section="tasks", name=shown.name, unit="count", before=before, after=after, basis="counted",
                    where=shown.place, exact=compared.design == "within",
                )
            )  # fmt: skip
    return _sorted(found)[:MAX_LINES]


def op_lines(compared: Sides) -> list[ComparedNumber]:
    """Op time by line, if both sides have an op trace of steps."""
    tables = [
        [{key: replace(one, value=one.value / compared.per(n)) for key, one in n.ops.items()} for n in side if n.ops]
        for side in (compared.before, compared.after)
    ]
    if not all(tables):
        return []
    whole = fmean(sum(one.value for one in table.values()) for table in tables[0])
    return _lines("ops", "ns", tables[0], tables[1], least=MIN_RATIO * whole)


def op_calls(compared: Sides) -> list[ComparedNumber]:
    """Time of one call of each op that all runs have, of imported traces, the one that takes most first."""
    if not all(n.op_calls for n in compared.all):
        return []
    whole = max(sum(op.ns for op in n.op_calls.values()) for n in compared.all)
    names = [name for name in compared.before[0].op_calls if all(name in n.op_calls for n in compared.all)]
    taken = {name: max(n.op_calls[name].ns for n in compared.all) for name in names}
    found = []
    for name in sorted(names, key=lambda name: -taken[name])[:MAX_LINES]:
        if taken[name] >= MIN_RATIO * whole:
            before, after = _each(compared, _call_of(name))
            found.append(
                ComparedNumber(
                    section="op-calls", name=name, unit="ns", before=before, after=after, basis="ops",
                    exact=compared.design == "within",
                )
            )  # fmt: skip
    return found


def _phase(name: str) -> Callable[[SessionNumbers], float]:
    return lambda n: n.phases.get(name, 0.0)


def _call_of(op: str) -> Callable[[SessionNumbers], float]:
    return lambda n: n.op_calls[op].each_ns


def _same_ops(compared: Sides) -> ComparedNumber | None:
    """The op time of as many calls of each op as A's first run made; None where the sides have too little in common."""
    first = compared.before[0].op_calls
    common = [name for name in first if all(name in n.op_calls for n in compared.all)]
    for n in compared.all:
        whole = sum(op.ns for op in n.op_calls.values())
        if not whole or sum(n.op_calls[name].ns for name in common) < MIN_COMMON * whole:
            return None
    before, after = _each(compared, lambda n: sum(first[name].calls * n.op_calls[name].each_ns for name in common))
    return ComparedNumber(
        section="op-calls", name="all", unit="ns", before=before, after=after, basis="ops", exact=compared.exact
    )


def _each(compared: Sides, value: Callable[[SessionNumbers], float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(map(value, compared.before)), tuple(map(value, compared.after))


def _steps(
    compared: Sides, name: str, statistic: Statistic, value: Callable[[SessionNumbers], float]
) -> ComparedNumber:
    """A number of the steps of each run."""
    before, after = _each(compared, value)
    within = compared.durations(compared.before[0]), compared.durations(compared.after[0])
    return ComparedNumber(
        section="steps", name=name, unit="ns", before=before, after=after, steps=within, statistic=statistic
    )  # fmt: skip


def _timed_mean(compared: Sides) -> list[ComparedNumber]:
    """The mean of the timed steps, whose components these are, where others were only counted."""
    if all(n.total is None or n.total.timed >= n.total.count for n in compared.all):
        return []
    return [_steps(compared, TIMED_MEAN, statistics.mean, lambda n: float(compared.durations(n).mean()))]


def _quantiles(compared: Sides) -> list[ComparedNumber]:
    fewest = min(len(compared.durations(n)) for n in compared.all)
    return [
        _steps(compared, name, statistics.quantile(share), _quantile_of(share, compared))
        for name, share in _QUANTILES.items()
        if name != "p99" or fewest >= MIN_P99_STEPS
    ]


def _quantile_of(share: float, compared: Sides) -> Callable[[SessionNumbers], float]:
    return lambda numbers: float(np.quantile(compared.durations(numbers), share))


def _anatomy(compared: Sides) -> list[ComparedNumber]:
    """Components of the step, the one that changed most first."""
    found = []
    names = dict.fromkeys(name for n in compared.all for name in n.parts)
    least = MIN_RATIO * (middle(_each(compared, compared.mean_ns)[0]) or 0.0)
    for name in names:
        parts = [
            [n.parts.get(name, np.zeros(1)) / compared.per(n) for n in side]
            for side in (compared.before, compared.after)
        ]
        before, after = (tuple(float(part.mean()) for part in side) for side in parts)
        asked = ComparedNumber(
            section="anatomy", name=name, unit="ns", before=before, after=after, steps=(parts[0][0], parts[1][0])
        )
        if max(middle(before) or 0.0, middle(after) or 0.0) >= least:
            found.append(asked)
    return _sorted(found)


def _python_lines(compared: Sides) -> list[ComparedNumber]:
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
) -> list[ComparedNumber]:
    """One number for each line, those that changed most first; a run without the line has 0."""
    known: dict[Line, LineNumber] = {}
    for table in (*before, *after):
        known.update(table)
    found = []
    for line, shown in known.items():
        values = [tuple(table[line].value if line in table else 0.0 for table in side) for side in (before, after)]
        if max(fmean(values[0]), fmean(values[1])) >= least:
            found.append(
                ComparedNumber(
                    section=section, name=shown.name, unit=unit, before=values[0], after=values[1], where=shown.place,
                    basis=_SAMPLED[section],
                )
            )  # fmt: skip
    return _sorted(found)[:MAX_LINES]


def _sorted(asked: Iterable[ComparedNumber]) -> list[ComparedNumber]:
    return sorted(asked, key=lambda one: -one.change)
