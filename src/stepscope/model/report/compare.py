"""The comparison of two sessions, or of two groups of sessions: public API, schema ``stepscope.compare/1`` (additions
only).

``docs/schemas/compare-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.compare/1"
TIMED_MEAN = "mean-timed"
"""Name of the mean of the timed steps, where others were only counted: the components are parts of these."""

Design = Literal["paired", "unpaired", "within"]
"""Design. paired: runs in rounds, one of each side a round. unpaired: groups of runs. within: one run a side."""
Basis = Literal["sample", "step", "run", "ops"]
"""Basis. sample: times are per sample, because batches differ. step: per step. run: of whole runs without steps. ops:
of imported traces without steps, each op as often as A ran it."""
Section = Literal["throughput", "steps", "run", "ledger", "tasks", "anatomy", "ops", "op-calls", "python"]
"""Section. run: wall time and memory. ledger: parts of the wall time. tasks: calls of each task. ops: op time by source
line. op-calls: time of one call of an op, of imported traces. python: share of stack samples by source line."""
RowBasis = Literal["total", "counted", "timed", "ops", "samples", "run"]
"""What a number was made of. total: the time of as much work on both sides, all of it. counted: all steps, of which
some were only counted; or all calls. timed: the steps or calls that were timed. ops: an op trace. samples: stack
samples. run: a measurement of the whole run, which may have done other work."""
Unit = Literal["ns", "1/s", "bytes", "ratio", "count"]
Word = Literal["faster", "slower", "less", "more", "same", "undecided", "new", "gone"]
"""Verdict. undecided: the interval contains 1, or there is none. new, gone: seen on one side only; of lines known from
samples, on one side by more than chance."""
Outcome = Literal["pass", "slower", "cannot-tell"]


class ComparedSession(Struct, frozen=True, kw_only=True):
    """One session of a side."""

    path: str
    id: str
    command: tuple[str, ...]
    host: str
    cpus: int
    framework: str
    steps: int
    """Number of steps; 0: none were seen, so it counts only for the whole run."""
    steps_at_least: bool = False
    """There were more: the run was killed, and the steps that were only counted last are lost."""
    step: str = ""
    """Description of a step: "Keras fit", "tf.function train_step" ..."""
    samples_per_step: float | None = None
    """Mean samples of a steady step; null if unknown."""
    exit_code: int | None = None


class Difference(Struct, frozen=True, kw_only=True):
    """One number of both sides. For groups: the geometric means of the runs' values."""

    section: Section
    name: str
    """Name: samples_per_s, steps_per_s, mean, mean-timed, p50, p90, p99, wall, memory_peak, a component, a phase, a
    task, an op, or the text of a line."""
    unit: Unit
    basis: RowBasis = "timed"
    """What it was made of."""
    where: Place | None = None
    """Place of a line, on the side after if it is there."""
    before: float | None = None
    """Value of side A; null if it has none."""
    after: float | None = None
    ratio: float | None = None
    """After / before; null if a side has no value above 0."""
    low: float | None = None
    """Lower end of the ratio's interval; null if these data give none. Times of one run a side: as if runs of one
    program differed by 10 %."""
    high: float | None = None
    """Upper end of the ratio's interval."""
    smallest: float | None = None
    """Smallest relative change that could have been seen here: half the interval's width."""
    runs: int = 0
    """Number of pairs, or of runs of the smaller side."""
    runs_needed: int | None = None
    """Runs a side that would decide a change of this size, if runs of one program differ by 10 %; null: one run a side
    is not all there is, or no number below 200 would."""
    verdict: Word


class FindingChange(Struct, frozen=True, kw_only=True):
    """A finding, from severity low, of every run of one side and of none of the other, which could have had it."""

    change: Literal["gone", "new"]
    code: str
    title: str
    severity: str
    where: Place | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """The answer to ``--fail-over``."""

    limit_ratio: float
    """Allowed slow-down: 0.05 for 5 %."""
    outcome: Outcome
    exit_code: int
    ratio: float | None = None
    """Ratio of times that was judged: after / before."""
    low: float | None = None
    """Lower end of its interval."""
    high: float | None = None
    """Upper end of its interval."""
    text: str
    """Reason in words."""


class CompareReport(Struct, frozen=True, kw_only=True):
    """Two sides, A (before) and B (after)."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    before: tuple[ComparedSession, ...]
    after: tuple[ComparedSession, ...]
    design: Design
    basis: Basis
    level: float
    """Level of the intervals: of ``main`` and ``typical`` together, and of all others together."""
    main: Difference | None
    """Time that decides: mean step, time of a sample, or the whole run; null if nothing can be compared."""
    typical: Difference | None = None
    """Median step: it decides where ``main`` is undecided, because few long steps move the mean; null without steps."""
    differences: tuple[Difference, ...]
    """All others by section; components and lines by how much they changed."""
    findings: tuple[FindingChange, ...] = ()
    notes: tuple[str, ...] = ()
    """Differences of the sides other than times, and what could not be compared."""
    stacks: str = ""
    """Command that compares the stacks of the two sides; "" if a side has none."""
    gate: Gate | None = None
    """Answer to ``--fail-over``; null without it."""
