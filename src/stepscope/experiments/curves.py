"""Curves: how fast a job is with several batch sizes or numbers of threads, and where more of them bring little.

Pure logic, the caller runs the job. The first round goes up the sizes and finds out where they end: at the memory
limit, by forecast from the peaks of smaller sizes, at a run that fails, or where two sizes in a row bring nothing. Two
more rounds repeat what was possible, and go further up if the largest size turns out to be the fastest after all. Each
round has the unchanged job first and last, and a size is compared with those of its round.
"""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from stepscope.experiments.plan import Candidate
from stepscope.experiments.schedule import MIN_ROUNDS, UNCHANGED, Arm, Experiment, MeasuredRun, NotMeasuredError
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.experiments.statistics import Effect

NAMES = ("batch", "threads")
"""Trials that are curves if they are given no argument."""
FEW_CORES = 4
"""Cores up to which each number of threads is tried."""
KNEE = 0.95
"""Share of the best rate that the knee reaches: more than the 3 % that make no difference, less than a trial of one
round shows."""
FLAT = 1.02
"""Rate over the best one so far below which a size brings nothing."""
ENOUGH = "larger ones bring nothing"
"""Why a curve ends at two such sizes."""
FLAT_SIZES = 2
"""Sizes in a row that bring nothing, after which there are no larger ones."""
MAX_FACTOR = 1024
"""Largest factor of a batch."""
FULL_RATIO = 0.9
"""Share of the memory limit that a forecast may reach: the kernel needs some of it, and lines are not straight."""


class CurveRun(Struct, frozen=True, kw_only=True):
    """One run."""

    measured: MeasuredRun
    peak_bytes: int = 0
    """Most memory that it held; 0: unknown."""


class SizedJob(Protocol):
    """The job, as the caller runs it."""

    def __call__(self, trial: str, number: int, /) -> CurveRun:
        """A run of a round with a trial ("": unchanged)."""


class Curve(Struct, kw_only=True):
    """All sizes that were tried."""

    name: str
    experiment: Experiment = field(default_factory=lambda: Experiment(arms=[]))
    peaks: dict[str, int] = field(default_factory=dict)
    """Most bytes held, by trial; "": unchanged."""
    limit_bytes: int = 0
    """Memory that the job may hold; 0: unknown."""
    stopped: str = ""
    """Why there is no larger size; "": the last one is the largest that there is."""

    def effect(self, arm: Arm) -> Effect | None:
        """Effect of a size against the unchanged job; None with fewer than three rounds."""
        return self.experiment.effect(arm)

    @property
    def measured(self) -> list[Arm]:
        """Sizes that were measured, the smallest first."""
        return sorted((arm for arm in self.experiment.arms if arm.pairs), key=lambda arm: size_of(arm.candidate.trial))

    @property
    def ratios(self) -> dict[str, float]:
        """Time over that of the unchanged job, by trial; that of a batch has the size 1, and is one of them."""
        found = {arm.candidate.trial: arm.ratio for arm in self.measured}
        return {UNCHANGED: 1.0, **found} if self.name == "batch" else found

    @property
    def knee(self) -> str | None:
        """The smallest trial within 5 % of the best; None: nothing was measured."""
        ratios = self.ratios
        if len(ratios) < 1 + (UNCHANGED in ratios):
            return None
        best = min(ratios.values())
        return min((trial for trial, ratio in ratios.items() if ratio <= best / KNEE), key=size_of)


def size_of(trial: str) -> Fraction:
    """The number after the colon; 1 for the unchanged job."""
    return Fraction(trial.partition(":")[2] or 1)


def threads(cores: int) -> list[int]:
    """Numbers of threads worth a run: 1, 2, 4 ... and all cores; with up to four cores, each."""
    if cores <= FEW_CORES:
        return list(range(1, cores + 1))
    doubled = [1 << power for power in range(cores.bit_length()) if 1 << power < cores]
    return [*doubled, cores]


def trace(name: str, job: SizedJob, *, cores: int, limit_bytes: int, rounds: int = MIN_ROUNDS) -> Curve:
    """Measure a curve.

    Args:
        name: one of ``NAMES``.
        job: runs the job and measures it.
        cores: cores that it may use.
        limit_bytes: memory that it may hold; 0: unknown.
        rounds: how often each size is measured.

    Raises:
        NotMeasuredError: the unchanged job has no time.
        KeyboardInterrupt: the user ended it before a round was complete.
    """
    return _Tracing(name, job, cores, limit_bytes, rounds).all()


def _trials(name: str, cores: int) -> Iterator[str]:
    """All sizes, the smallest first."""
    if name == "threads":
        yield from (f"threads:{count}" for count in threads(cores))
        return
    yield "batch:1/2"
    factor = 2
    while factor <= MAX_FACTOR:
        yield f"batch:{factor}"
        factor *= 2


class _Tracing:
    def __init__(self, name: str, job: SizedJob, cores: int, limit_bytes: int, rounds: int) -> None:
        self._job, self._rounds = job, rounds
        self._curve = Curve(name=name, limit_bytes=limit_bytes)
        self._next = _trials(name, cores)
        """Sizes above those that were tried."""
        self._before = 0.0
        """Time of the unchanged job in this round."""

    def all(self) -> Curve:
        """The first round, and the others."""
        experiment = self._curve.experiment
        try:
            self._round(self._up)
            while self._open() and experiment.rounds < 2 * self._rounds:
                self._round(self._again)
        except KeyboardInterrupt:
            if not experiment.rounds:
                raise
            experiment.interrupted = True
        return self._curve

    def _round(self, runs: Callable[[], Iterator[tuple[Arm, float]]]) -> None:
        """A round: nothing of it counts before it is complete."""
        experiment = self._curve.experiment
        before = self._before = self._unchanged()
        found = list(runs())
        after = self._unchanged()
        for arm, ns in found:
            if ns:
                arm.pairs.append((fmean((before, after)), ns))
            if arm not in experiment.arms:
                experiment.arms.append(arm)
        experiment.unchanged.append((before, after))
        experiment.rounds += 1

    def _again(self) -> Iterator[tuple[Arm, float]]:
        """All sizes that were not measured often enough, down and up in turn."""
        arms = self._open()
        for arm in arms if self._curve.experiment.rounds % 2 == 0 else reversed(arms):
            yield arm, self._measured(arm)
        if self._rises():
            yield from self._up(1 / (self._before * min(self._curve.ratios.values())))

    def _open(self) -> list[Arm]:
        return [arm for arm in self._curve.measured if not arm.ended and len(arm.pairs) < self._rounds]

    def _rises(self) -> bool:
        """Whether the largest size is the fastest, although the curve ended because it brought nothing."""
        largest = self._curve.measured[-1]
        best = min(ratio for trial, ratio in self._curve.ratios.items() if trial != largest.candidate.trial)
        return self._curve.stopped == ENOUGH and largest.ratio * FLAT < best

    def _up(self, fastest: float = 0.0) -> Iterator[tuple[Arm, float]]:
        """Sizes upwards, until they end; ``fastest``: the best rate so far."""
        flat = 0
        for trial in self._next:
            self._curve.stopped = self._too_large(trial)
            if self._curve.stopped:
                return
            arm = Arm(candidate=Candidate(trial=trial, kind="gain", expected_ratio=0.0, reason="asked for"))
            ns = self._measured(arm)
            yield arm, ns
            if size_of(trial) < 1 or self._curve.name != "batch":
                continue
            if not ns:
                self._curve.stopped = f"x{size_of(trial)} is not possible"
                return
            flat = 0 if 1 / ns > FLAT * fastest else flat + 1
            fastest = max(fastest, 1 / ns)
            if flat >= FLAT_SIZES:
                self._curve.stopped = ENOUGH
                return

    # -- memory ------------------------------------------------------------------------------------------------------

    def _too_large(self, trial: str) -> str:
        """Why a size would not fit into the memory; "" if it would, or nothing is known."""
        needed, limit_bytes = self._forecast(trial), self._curve.limit_bytes
        if not limit_bytes or needed <= FULL_RATIO * limit_bytes:
            return ""
        said = f"{format_bytes(round(needed))} of {format_bytes(limit_bytes)}"
        return f"x{size_of(trial)} would take about {said} of memory"

    def _forecast(self, trial: str) -> float:
        """Memory of a size by the line through the two largest ones below it; 0: unknown."""
        if self._curve.name != "batch":
            return 0.0
        known = sorted((float(size_of(one)), peak) for one, peak in self._curve.peaks.items() if peak)
        below = [point for point in known if point[0] < size_of(trial)][-2:]
        if below[:1] == below[-1:]:  # a line needs two points
            return 0.0
        (one, low), (other, high) = below
        return high + max(0.0, (high - low) / (other - one)) * (float(size_of(trial)) - other)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _unchanged(self) -> float:
        measured = self._one(UNCHANGED)
        if not measured.ns:
            raise NotMeasuredError(measured.why)
        return measured.ns

    def _measured(self, arm: Arm) -> float:
        measured = self._one(arm.candidate.trial)
        if not measured.ns:
            arm.failures.append((self._curve.experiment.rounds + 1, measured.why))
        return measured.ns

    def _one(self, trial: str) -> MeasuredRun:
        sampled = self._job(trial, self._curve.experiment.rounds + 1)
        peaks = self._curve.peaks
        peaks[trial] = max(sampled.peak_bytes, peaks.get(trial, 0))
        return sampled.measured
