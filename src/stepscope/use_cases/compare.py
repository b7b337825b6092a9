"""The use case ``compare``: two sessions, or two groups of sessions, number by number; it only reads them.

``--fail-over`` judges the time that decides (``differences.build``). docs/compare.md states the rules.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.experiments import statistics
from stepscope.experiments.statistics import MAX_RUNS, RUN_SPREAD
from stepscope.model.report.compare import ComparedSession, CompareReport, FindingChange, Gate
from stepscope.report import compare_text
from stepscope.tables.errors import UsageError
from stepscope.use_cases.comparing import design, differences, findings, notes, numbers, sides

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.experiments.statistics import Effect
    from stepscope.model.report.compare import Design, Difference, Outcome
    from stepscope.use_cases.comparing.differences import Differences
    from stepscope.use_cases.comparing.numbers import SessionNumbers

CODES: dict[Outcome, int] = {"pass": 0, "slower": 1, "cannot-tell": 3}
"""Exit codes of ``--fail-over`` (docs/exit-codes.md)."""
_LIMIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


class CompareOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    before: tuple[Path, ...]
    """Sessions, folders of sessions or patterns: side A."""
    after: tuple[Path, ...]
    limit_ratio: float | None = None
    """Allowed slow-down; None: nothing is judged."""


def parse_limit(text: str) -> float:
    """The limit in ``--fail-over``: "5%", "5 %", "0.05".

    Raises:
        UsageError: it is no share.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"--fail-over {text}: not a share of the time; expected one such as 5%")
    return float(match[1]) / (100.0 if match[2] else 1.0)


def compare(options: CompareOptions) -> CompareReport:
    """Compare the two sides.

    Raises:
        UsageError: a session is on both sides.
        SessionError: a session is missing or damaged, or a folder holds none.
        IncompatibleSessionError: a newer stepscope wrote a session.
    """
    paths = [sides.sessions(given, side) for given, side in ((options.before, "A"), (options.after, "B"))]
    sides.check_apart(*paths)
    before, after = (tuple(numbers.of_path(path) for path in side) for side in paths)
    return of_numbers(before, after, options.limit_ratio)


def of_numbers(
    before: Sequence[SessionNumbers], after: Sequence[SessionNumbers], limit_ratio: float | None = None
) -> CompareReport:
    """Compare the numbers of two groups of sessions."""
    compared = design.sides(before, after)
    found = differences.build(compared, (before, after))
    return CompareReport(
        version=__version__,
        before=tuple(map(_session, before)),
        after=tuple(map(_session, after)),
        design=compared.design,
        basis=compared.basis,
        level=statistics.LEVEL,
        main=found.main,
        typical=found.typical,
        differences=found.others,
        findings=_findings(before, after),
        notes=(*notes.of_times(found), *notes.build(before, after, compared)),
        stacks=_stacks(before[0], after[0]),
        gate=None if limit_ratio is None else gate_of(found, compared.design, limit_ratio),
    )


def to_json(report: CompareReport) -> str:
    """For programs: schema ``stepscope.compare/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"


def render(report: CompareReport, form: str, *, color: bool = False, width: int = 0) -> str:
    """``form``: text, json or md. ``width``: columns of the terminal; 0: none."""
    if form == "json":
        return to_json(report)
    return compare_text.render_markdown(report) if form == "md" else compare_text.text(report, color=color, width=width)


def exit_code(report: CompareReport) -> int:
    """0 without ``--fail-over``."""
    return report.gate.exit_code if report.gate is not None else 0


def gate_of(found: Differences, how: Design, limit_ratio: float) -> Gate:
    """Whether side B is slower than side A by more than the limit: by the mean step, and where that cannot tell, by the
    median step, which a few long steps do not move. The median step alone passes nothing.
    """
    gate = judge(found.main, how, limit_ratio)
    if gate.outcome == "cannot-tell" and found.typical is not None:
        typical = judge(found.typical, how, limit_ratio)
        if typical.outcome == "slower":
            return msgspec.structs.replace(typical, text=f"{typical.text} (median step; the mean varies too much)")
    return gate


def judge(time: Difference | None, how: Design, limit_ratio: float) -> Gate:
    """Whether one time is longer by more than the limit.

    slower: surely slower (the interval lies above 1), and by more than the limit as well as can be said (the ratio).
    pass: surely not slower by more than the limit (the interval lies below it). Else these runs cannot tell.
    """
    limit = f"{100 * limit_ratio:g} %"
    if time is None or time.ratio is None or time.low is None or time.high is None or time.smallest is None:
        expected = f"two or more runs a side, or runs with {statistics.MIN_STEPS} steps or more"
        text = f"cannot tell: these sessions give no interval; expected {expected}"
        return Gate(limit_ratio=limit_ratio, outcome="cannot-tell", exit_code=CODES["cannot-tell"], text=text)
    effect = statistics.Effect(
        ratio=time.ratio, low=time.low, high=time.high, smallest=time.smallest, runs=time.runs,
        covers_runs=how != "within",
    )  # fmt: skip
    outcome = outcome_of(effect, limit_ratio)
    said = f"{_percent(effect.ratio)} ({_percent(effect.low)} to {_percent(effect.high)}) time, limit {limit}"
    text = f"{outcome.replace('-', ' ')}: {said}"
    return Gate(
        limit_ratio=limit_ratio,
        outcome=outcome,
        exit_code=CODES[outcome],
        ratio=effect.ratio,
        low=effect.low,
        high=effect.high,
        text=f"{text}; {_advice(effect, limit_ratio)}" if outcome == "cannot-tell" else text,
    )


def outcome_of(effect: Effect, limit_ratio: float) -> Outcome:
    """The rule of ``judge``."""
    if effect.high <= 1.0 + limit_ratio:
        return "pass"
    if effect.low > 1.0 and effect.ratio > 1.0 + limit_ratio:
        return "slower"
    return "cannot-tell"


def _advice(effect: Effect, limit_ratio: float) -> str:
    """What would decide it."""
    if not effect.covers_runs:
        return f"one run a side, so runs are assumed to differ by {100 * RUN_SPREAD:g} %: compare groups of runs"
    away = min(abs(math.log(effect.ratio)), abs(math.log((1.0 + limit_ratio) / effect.ratio)))
    need = max(limit_ratio / 2.0, away)
    wanted = math.ceil(effect.runs * (math.log1p(effect.smallest) / need) ** 2) if need > 0.0 else MAX_RUNS + 1
    if wanted > MAX_RUNS:
        return "the runs vary too much for this limit: use a quieter machine, longer runs or a larger limit"
    return f"about {max(wanted, effect.runs + 1)} runs a side would tell"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _session(one: SessionNumbers) -> ComparedSession:
    summary, host = one.report.session, one.manifest.host
    return ComparedSession(
        path=str(one.path),
        id=one.manifest.id,
        command=one.manifest.command,
        host=host.name,
        cpus=host.cpus,
        framework="" if one.imported else summary.framework,
        steps=one.steps,
        steps_at_least=summary.steps_at_least,
        step=one.title,
        samples_per_step=one.samples_per_step,
        exit_code=one.manifest.exit_code,
    )


def _findings(before: Sequence[SessionNumbers], after: Sequence[SessionNumbers]) -> tuple[FindingChange, ...]:
    """Findings of every run of one side and of none of the other, whose detectors could look there."""
    both: dict[Literal["gone", "new"], tuple[Sequence[SessionNumbers], Sequence[SessionNumbers]]]
    both = {"gone": (before, after), "new": (after, before)}
    return tuple(
        FindingChange(
            change=change,
            code=one.code,
            title=one.title,
            severity=one.severity,
            where=one.where[0] if one.where else None,
        )
        for change, (here, there) in both.items()
        for one in findings.of_one_side(here, there)
        if findings.looked_for(one, there)
    )


def _stacks(before: SessionNumbers, after: SessionNumbers) -> str:
    if not before.has_stacks or not after.has_stacks:
        return ""
    return shlex.join(["stepscope", "flame", "diff", str(before.path), str(after.path)])
