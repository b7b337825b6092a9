"""Which trials a first run suggests, best expected gain first.

Two sources: the findings, each with the trials of its remedy (``experiments.proofs``) and its predicted cost, and the
components of the step, each with the interventions that shorten it (``Intervention.lifts``). Input against compute
comes first where both take time: it splits the job and prunes the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from stepscope.experiments import proofs
from stepscope.experiments.interventions import ALL, parse, reaches
from stepscope.model.frameworks import parts_of
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.wire import trials

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stepscope.model.report.components import ComponentName
    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Finding

Kind = Literal["gain", "ceiling"]
OTHER = "against"
"""The trial that runs another program instead."""
MIN_RATIO = 0.05
"""Share of the step below which what a trial may remove is not worth it: the smallest change that a few short runs
show is of this size (ratios of equal runs lie between 0.9 and 1.15)."""
BATCH = "batch"
CACHE = "cache"
"""Kind of an edit of the input."""
ARGUMENTS: Mapping[str, str] = {BATCH: "4", "steps-per-execution": "10"}
"""Arguments with which an intervention is tried if none is given."""
FIT_ONLY = frozenset(
    {
        *("no-callbacks", "without-callback", "no-validation", "no-metrics"),
        *("steps-per-execution", "mixed-bfloat16"),
    }
)
"""Interventions that reach nothing where no Keras model is trained by fit."""
GC_CALL = "gc.collect"
"""How the title of a finding says that the program calls the garbage collector: only then can its calls be left out."""
REMOVED: Mapping[str, float] = {
    "compute-only": 1.0,
    "no-callbacks": 1.0,
    "no-checkpoints": 1.0,
    "no-validation": 1.0,
    "no-summaries": 0.5,
    "gc-off": 1.0,
    "gc-calls-off": 0.9,
    "steps-per-execution": 1.0,
    "batch": 1.0,
    "reduce-retracing": 0.9,
    "parallel-map": 0.5,
    "cache-input": 0.5,
    "prefetch": 0.3,
    "xla-on": 0.2,
    "mixed-bfloat16": 0.1,
}
"""Share of the lifted components that an intervention is expected to remove, where no finding says it: it only orders
trials. Absent ones are tried if a finding names them, or by name. Source: ratios in
docs/decisions/0047-experiments.md."""


COMPUTE: ComponentName = "call"
GUESSES = frozenset({"xla-on", "mixed-bfloat16"})
"""What may make any compute faster, or slower: nothing that was seen speaks for it."""
BEHIND = 0.99
FIXED_NS = 650_000
"""What a step costs that a larger or a longer call does not cost again. Source: steps of 1.06 ms of a small Keras fit
(case 49) take 0.41 ms with steps_per_execution."""
OF_FIXED = frozenset({"steps-per-execution", "batch"})
"""Interventions that save the fixed cost of steps."""
SMALL_BATCH, SMALL_BATCH_REMOVED = 16, 0.5
"""Samples of a step up to which a larger batch is expected to save so much."""
UNKNOWN = 0.5
"""Part of what a finding may cost at most that is expected, where it says no more."""
SUSPECTED = 0.5
"""Part of that for what is only suspected: a trial decides it as a capture would."""
LINE_REMOVED = 0.25
"""Share of the compute that its costliest line is expected to have: more than what XLA is expected to remove, less than
what a finding names."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A trial worth its time."""

    trial: str
    """As ``--try`` takes it."""
    kind: Kind
    expected_ratio: float
    """Share of the step that it may remove."""
    reason: str
    """Why it is tried."""


def candidates(report: Report) -> tuple[Candidate, ...]:
    """The trials that a report suggests, each once, the best first."""
    found: dict[str, Candidate] = {}
    fits, parts = _fits(report), parts_of(report.session.framework)
    called = any(GC_CALL in finding.title for finding in report.findings)
    told = [*_of_findings(report.findings)]
    sized = any(trials.split(one.trial)[0] == BATCH for one in told)
    for candidate in (*told, *_of_bound(report), *_of_ledger(report), *_of_components(report)):
        name = trials.split(candidate.trial)[0]
        if sized and name == BATCH and candidate not in told:
            continue  # a finding says how many times the batch
        if not reaches(candidate.trial, parts):
            continue
        if (not fits and name in FIT_ONLY) or (name == "gc-calls-off" and not called):
            continue
        known = found.get(candidate.trial)
        if known is None or known.expected_ratio < candidate.expected_ratio:
            found[candidate.trial] = candidate
    return ordered(_guesses_last(found, {one.trial for one in told}))


def _guesses_last(found: Mapping[str, Candidate], told: Collection[str]) -> Iterable[Candidate]:
    """The candidates; what is only expected of all compute comes after what findings say of it."""
    of_compute = [one.expected_ratio for one in found.values() if one.trial in told and _is_of_compute(one.trial)]
    least = BEHIND * min(of_compute, default=1.0)
    for one in found.values():
        guessed = one.trial not in told and one.trial in GUESSES
        yield replace(one, expected_ratio=min(one.expected_ratio, least)) if guessed else one


def _is_of_compute(trial: str) -> bool:
    return trial not in ENVIRONMENT_REMEDIES and COMPUTE in parse(trial)[0].lifts


def ordered(found: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The best expected gain first."""
    return tuple(sorted(found, key=lambda one: -one.expected_ratio))


def named(wanted: Iterable[str]) -> tuple[Candidate, ...]:
    """Trials that the user asks for, each once.

    Raises:
        UsageError: one is not known.
    """
    return tuple(
        Candidate(trial=trial, kind=kind_of(trial), expected_ratio=0.0, reason="asked for")
        for trial in dict.fromkeys(wanted)
    )


def kind_of(trial: str) -> Kind:
    """Whether a trial shows a gain, or only a ceiling.

    Raises:
        UsageError: it is not known.
    """
    return "gain" if trial in {OTHER, *ENVIRONMENT_REMEDIES} or parse(trial)[0].kind == "gain" else "ceiling"


def keeps_results(trial: str) -> bool:
    """Whether the job computes the same with it.

    Raises:
        UsageError: it is not known.
    """
    return trial in {OTHER, *ENVIRONMENT_REMEDIES} or parse(trial)[0].keeps_results


def _fits(report: Report) -> bool:
    """Whether the steps are those of a Keras fit, or unknown."""
    times = report.session.step_times
    return times is None or "keras" in times.source.lower()


def _of_findings(findings: Iterable[Finding]) -> Iterable[Candidate]:
    for finding in findings:
        ratio = _expected(finding)
        if ratio < MIN_RATIO:
            continue
        settings = [remedy.id for remedy in finding.remedies if remedy.id in ENVIRONMENT_REMEDIES]
        for trial in (*proofs.trials_of(finding), *settings):
            yield Candidate(
                trial=trial,
                kind=kind_of(trial),
                expected_ratio=ratio,
                reason=f"{finding.code}: {finding.name}",
            )


def _expected(finding: Finding) -> float:
    ratio = finding.cost.ratio or UNKNOWN * finding.cost.high
    return ratio * (SUSPECTED if finding.severity == "ask" else 1.0)


def _of_bound(report: Report) -> Iterable[Candidate]:
    """The edits of the input, by what the model of its stages says of them."""
    bound = report.input_bound
    if bound is None or not bound.trial or not bound.best_per_s:
        return
    expected = 1 - bound.now_per_s / bound.best_per_s
    if any(edit.kind == CACHE and not edit.bytes for edit in bound.edits):
        expected *= UNKNOWN  # a pass may be too long, or too large, to fill it
    if expected >= MIN_RATIO:
        yield Candidate(
            trial=bound.trial,
            kind=kind_of(bound.trial),
            expected_ratio=expected,
            reason="the model of the input's stages",
        )


def _of_ledger(report: Report) -> Iterable[Candidate]:
    """The costliest line of compute that no finding explains, or names with a remedy that can be tried."""
    steps = sum(entry.ns for entry in report.ledger if entry.phase == "steps" and entry.maker is None)
    callers = {(maker.place.file, maker.place.line) for maker in report.session.step_makers if maker.place is not None}
    worth = [one for one in report.findings if _expected(one) >= MIN_RATIO and proofs.trials_of(one)]
    told = {(place.file, place.line) for one in worth for place in one.where}
    for entry in report.ledger:
        if entry.component != "call" or entry.maker is not None or entry.settled_by == "finding":
            continue
        if any((place.file, place.line) in callers | told for place in entry.where[:1]):
            continue  # no op trace: only the line is known that calls the step; or a finding knows what to try
        trial, expected = proofs.without(entry.where[:1]), LINE_REMOVED * entry.ns / max(1, steps)
        if trial and expected >= MIN_RATIO:
            yield Candidate(
                trial=trial,
                kind=kind_of(trial),
                expected_ratio=expected,
                reason="the line with most of the compute's time",
            )


def _of_components(report: Report) -> Iterable[Candidate]:
    shares = {part.component: part.ratio for part in report.anatomy}
    for intervention in ALL:
        lifted = {name: shares.get(name, 0.0) for name in intervention.lifts}
        expected = _removed(intervention.name, report) * sum(lifted.values())
        if expected < MIN_RATIO:
            continue
        argument = ARGUMENTS.get(intervention.name, "")
        largest = max(lifted, key=lambda name: lifted[name])
        trial = f"{intervention.name}:{argument}" if argument else intervention.name
        yield Candidate(
            trial=trial,
            kind=kind_of(trial),
            expected_ratio=expected,
            reason=f"{largest} takes {100 * shares[largest]:.0f} % of the step",
        )


def _removed(name: str, report: Report) -> float:
    """Share of what it lifts that an intervention is expected to remove."""
    usual = REMOVED.get(name, 0.0)
    times, rates = report.session.step_times, report.session.throughput
    if name not in OF_FIXED or times is None or not times.mean_ns:
        return usual
    fixed = min(usual, FIXED_NS / times.mean_ns)
    if name == "batch" and rates.samples_per_s and rates.steps_per_s:
        small = rates.samples_per_s / rates.steps_per_s <= SMALL_BATCH
        return max(fixed, SMALL_BATCH_REMOVED if small else 0.0)
    return fixed
