"""What explains each part of the ledger, after all detectors (docs/decisions/0042).

A part of at least 5 % of the wall time is settled by a specific finding that explains half of it or more, else by the
proof that it is as fast as it can be, else by a general finding, else it stands as unexplained. Costs of findings are
shares of steady time; a part of the steps is explained in the proportion in which its component is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.causes.general import phase_lines, spent_lines
from stepscope.causes.graph import op_limits
from stepscope.derive import job_framework, steps_view
from stepscope.detectors import base, registry
from stepscope.diagnosis import asks, exclusive, proven, reasons
from stepscope.model.report.components import COMPONENTS, REF
from stepscope.model.report.ledger import ONCE
from stepscope.report.sections import turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.causes.general.spent_lines import SpentLine
    from stepscope.derive.view import SessionView
    from stepscope.model.report.components import ComponentName
    from stepscope.model.report.ledger import LedgerEntry
    from stepscope.model.report.report import Component
    from stepscope.tables.findings import Checked, Diagnostic, Finding
    from stepscope.tables.place import Place

MIN_SHARE = 0.05
"""Share of the wall time from which a part must be explained. Source: issue "No time unexplained"."""
SAYS_MORE = 0.25
"""Part of a component explained by findings with a place, from which the general finding about it is information."""
ALWAYS = 0.20
"""Share of the steps from which a component other than compute keeps its general finding, however short the steps."""
SETTLES = 0.5
"""A finding that explains at least this share of a part settles it; the same as for stalls."""
PHASE = "phase:"
"""Evidence that refers to a phase of the job is about its time."""
SLOW_MACHINE = frozenset({"System: scheduling", "Hardware: improper configuration"})
"""Causes that do not explain why one line takes more than others. What the job itself makes the kernel do (page faults)
does."""
STEPS = "steps"
COMPUTE = "call"


class Limit(Struct, frozen=True, kw_only=True):
    """Compute that is proven to be as fast as it can be on this machine."""

    ratio: float
    """Share of the compute that is proven."""
    text: str


class ExplainedTime(Struct):
    """What specific findings explain of one component, or of one phase."""

    share: float = 0.0
    """Share of the component's time, or of the phase's."""
    codes: dict[str, float] = field(default_factory=dict)
    """Part of that share for each code."""
    everywhere: float = 0.0
    """Part of that share by findings about a slow machine, such as other processes on it."""
    nowhere: float = 0.0
    """Part of that share by others that name no line, such as page faults of memory that anything may return."""

    def add(self, code: str, share: float, *, everywhere: bool = False, nowhere: bool = False) -> None:
        """Counts a finding; all of them explain at most everything."""
        added = min(share, 1.0 - self.share)
        self.share += added
        self.everywhere += added if everywhere else 0.0
        self.nowhere += added if nowhere else 0.0
        self.codes[code] = self.codes.get(code, 0.0) + added

    @property
    def settles(self) -> bool:
        """Whether that is enough."""
        return self.share >= SETTLES

    @property
    def code(self) -> str:
        """The code of the finding that explains most."""
        return max(self.codes, key=lambda code: self.codes[code], default="")


class SettledReport(Struct, frozen=True, kw_only=True):
    """What a report says once everything has been looked at."""

    findings: tuple[Finding, ...]
    """Specific and general findings and at most one question, ranked."""
    ledger: tuple[LedgerEntry, ...]
    checked: tuple[Checked, ...]
    """The general detectors that found something or failed."""
    failures: tuple[Diagnostic, ...]


def build(
    view: SessionView,
    specific: Sequence[Finding],
    checked: Sequence[Checked],
    anatomy: Sequence[Component],
    ledger: Sequence[LedgerEntry],
) -> SettledReport:
    """Settles the ledger.

    Args:
        view: the session.
        specific: findings of specific detectors and of the source.
        checked: what became of the specific detectors.
        anatomy: the mean step.
        ledger: the parts of the wall time as they were measured; empty where nothing was.
    """
    steps = steps_view.of(view)
    names = {part.component for part in anatomy if part.ratio >= MIN_SHARE and part.component in COMPONENTS}
    lines: dict[str, Sequence[SpentLine]] = {}
    if steps is not None:
        lines = {name: spent_lines.of(steps, name) for name in COMPONENTS if name in names}
    explained = of_components(specific, anatomy, lines)
    found, outcomes, failures = base.run(registry.GENERAL, view)
    phases = _of_phases(view, ledger, specific)
    found = reasons.raised(found, view, specific)
    general = kept(found, {**phases, **explained}, anatomy, _steps_ratio(ledger))
    codes = {finding.code for finding in general}
    every = [*specific, *general, *asks.one(proven.open_questions(checked, specific), specific)]
    every = sorted((turns.weighed(view, finding) for finding in every), key=base.rank)
    return SettledReport(
        findings=tuple(every),
        ledger=settled(view, ledger, general, explained, phases),
        checked=tuple(c for c in outcomes if c.detector in codes or c.outcome == "failed"),
        failures=failures,
    )


def _steps_ratio(ledger: Sequence[LedgerEntry]) -> float:
    """Share of the job's wall time in its steps; 0: not known."""
    return sum(entry.ratio for entry in ledger if entry.maker is None and entry.phase == STEPS)


def limit_of(view: SessionView) -> Limit | None:
    """What the replay of ops alone proves of the compute; None: nothing was replayed."""
    limits = view.get(op_limits.build)
    return Limit(ratio=limits.explained_ratio, text=limits.text) if limits is not None else None


def of_components(
    specific: Iterable[Finding], anatomy: Sequence[Component], lines: Mapping[str, Sequence[SpentLine]]
) -> dict[str, ExplainedTime]:
    """What specific findings explain of each component of the steady steps.

    Args:
        specific: the findings.
        anatomy: the mean step.
        lines: the known lines of each component. A finding whose evidence and stage name no component is about the one
            on whose lines it points.
    """
    shares: dict[str, float] = {}
    for part in anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    found = {name: ExplainedTime() for name in shares}
    for finding in specific:
        if finding.exposed_stage == "initialization" or finding.severity == "ask":
            continue
        pointed = _pointed(finding, lines)
        for claim in exclusive.claims(finding, shares):
            wanted = claim.components or pointed or shares.keys()
            whole = sum(shares[name] for name in wanted if name in shares)
            for name in wanted:
                if whole and name in shares:
                    everywhere = not claim.components and finding.cause in SLOW_MACHINE
                    nowhere = not claim.components and not everywhere and not finding.where
                    found[name].add(finding.code, claim.ratio / whole, everywhere=everywhere, nowhere=nowhere)
    return found


def _pointed(finding: Finding, lines: Mapping[str, Sequence[SpentLine]]) -> set[str]:
    """Components other than compute that spend most of their time on a finding's lines; of compute, lines know less."""
    if finding.cause.startswith(exclusive.EVERYWHERE):
        return set()
    return {
        name
        for name, some in lines.items()
        if name != COMPUTE and sum(spent.ratio for spent in some if _meets(finding, spent.place)) >= SETTLES
    }


def kept(
    general: Iterable[Finding], explained: Mapping[str, ExplainedTime], anatomy: Sequence[Component], steps: float
) -> list[Finding]:
    """The general findings about time that no specific finding explains.

    Args:
        general: findings of the general detectors.
        explained: what specific findings explain of each component, and of each phase under "phase:NAME".
        anatomy: the mean step.
        steps: share of the steady steps in the job's wall time; 0: not known.
    """
    shares: dict[str, float] = {}
    for part in anatomy:
        shares[part.component] = shares.get(part.component, 0.0) + part.ratio
    found = []
    for finding in general:
        name = reasons.subject(finding, REF)
        if not name:
            if not explained.get(f"{PHASE}{reasons.subject(finding, PHASE)}", ExplainedTime()).settles:
                found.append(finding)
            continue
        done = explained.get(name, ExplainedTime())
        # What is claimed with a place is not explained by a slow machine, which has none; a line by nothing else
        # without a place.
        share = done.share - (done.everywhere if finding.severity != "info" else 0.0)
        share -= done.nowhere if finding.severity != "info" and finding.name in reasons.REST else 0.0
        rest = shares.get(name, 0.0) * (1.0 - share)
        matters = rest * (steps or 1.0) >= MIN_SHARE or (name != COMPUTE and rest >= ALWAYS)
        if share < SETTLES and matters:
            more = share >= SAYS_MORE and finding.cost.basis == "modelled"
            found.append(_as_information(finding) if more else finding)
    return found


def _as_information(finding: Finding) -> Finding:
    """A general finding, where a specific one about the same time says more."""
    cost = replace(finding.cost, ratio=0.0, low=0.0, ns_per_step=0, basis="unknown")
    return replace(finding, severity="info", cost=cost)


def settled(
    view: SessionView,
    ledger: Sequence[LedgerEntry],
    general: Sequence[Finding],
    explained: Mapping[str, ExplainedTime],
    phases: Mapping[str, ExplainedTime],
) -> tuple[LedgerEntry, ...]:
    """The ledger with what settles each part.

    Args:
        view: the session.
        ledger: the parts as they were measured.
        general: the general findings that are kept.
        explained: what specific findings explain of each component.
        phases: the same of the phases outside of the steps.
    """
    by_component = {name: f.code for f in reversed(general) if (name := reasons.subject(f, REF))}
    by_phase = {name: f.code for f in reversed(general) if (name := reasons.subject(f, PHASE))}
    limit = limit_of(view)
    found = []
    for entry in ledger:
        known = explained.get(entry.component) if entry.phase == STEPS else phases.get(f"{PHASE}{entry.phase}")
        code = (by_component if entry.phase == STEPS else by_phase).get(entry.component or entry.phase, "")
        proof = limit if entry.phase == STEPS and entry.component == COMPUTE else None
        found.append(_settled(view, entry, known or ExplainedTime(), proof, code))
    return tuple(found)


def _settled(
    view: SessionView, entry: LedgerEntry, known: ExplainedTime, limit: Limit | None, general: str
) -> LedgerEntry:
    explained = round(known.share, 6)
    if entry.ratio < MIN_SHARE:
        return replace(entry, settled_by="small", explained_ratio=explained)
    if known.settles:
        return replace(entry, settled_by="finding", code=known.code, explained_ratio=explained)
    if limit is not None and limit.ratio >= SETTLES:
        return replace(entry, settled_by="limit", text=limit.text, explained_ratio=explained)
    if entry.component in COMPONENTS:
        entry = _with_places(view, entry, entry.component)
    elif entry.phase != STEPS and not entry.where:
        entry = _with_lines(view, entry)
    how = "general" if general else "unexplained"
    return replace(entry, settled_by=how, code=general, explained_ratio=explained)


def _with_places(view: SessionView, entry: LedgerEntry, component: ComponentName) -> LedgerEntry:
    """With the deepest known lines, and what runs on the first of them."""
    steps = steps_view.of(view)
    spent = spent_lines.of(steps, component) if steps is not None else ()
    places = tuple(dict.fromkeys(line.place for line in spent)) or entry.where
    what = spent[0].what if spent else ""
    if not what and component == COMPUTE and view.traces.shown is None:
        what = f"ops not known: {job_framework.untraced(view) or 'no op trace'}"
    return replace(entry, where=places, text="; ".join(filter(None, (what, entry.text))))


def _with_lines(view: SessionView, entry: LedgerEntry) -> LedgerEntry:
    """With the lines that run in a phase of the job."""
    times = view.get(phase_lines.build) if entry.maker is None else ()
    lines = next((time.lines for time in times if time.phase == entry.phase), ())
    return replace(entry, where=tuple(dict.fromkeys(spent.place for spent in lines)))


def _of_phases(
    view: SessionView, ledger: Sequence[LedgerEntry], specific: Sequence[Finding]
) -> dict[str, ExplainedTime]:
    """What specific findings explain of the phases outside of steady steps.

    - A cost that is paid once lies in the phases before the steps, or in those that its evidence names.
    - A finding explains what runs on its own lines, also outside of the steps.
    - A finding about a component of the steps explains the phase of that name: what is saved or evaluated between
      steps is slow for the same reason.
    - Evidence that refers to a phase explains its value of that phase.
    """
    found: dict[str, ExplainedTime] = {}
    steps = view.steps
    early = {entry.phase: entry.ns for entry in ledger if entry.phase in ONCE and entry.maker is None}
    for finding in specific:
        if finding.severity == "ask":
            continue
        if finding.exposed_stage == "initialization" and not reasons.subject(finding, PHASE):
            ns = finding.cost.ns_per_step * (len(steps) if steps is not None else 0)
            whole = sum(early.values())
            for phase in early:
                share = min(1.0, ns / whole) if whole else 0.0
                found.setdefault(f"{PHASE}{phase}", ExplainedTime()).add(finding.code, share)
            continue
        for evidence in finding.evidence:
            for ref in (ref for ref in evidence.refs if ref.startswith(PHASE)):
                found.setdefault(ref, ExplainedTime()).add(finding.code, evidence.value)
        for time in view.get(phase_lines.build):
            part = sum(spent.ratio for spent in time.lines if _meets(finding, spent.place))
            if part and finding.severity != "info":
                found.setdefault(f"{PHASE}{time.phase}", ExplainedTime()).add(finding.code, part)
        if (name := reasons.subject(finding, REF)) and finding.severity != "info":
            found.setdefault(f"{PHASE}{name}", ExplainedTime()).add(finding.code, SETTLES)
    return found


def _meets(finding: Finding, place: Place) -> bool:
    """Whether a line lies in a finding's places, or in one of its functions."""
    return any(
        other.file == place.file
        and (
            other.line <= place.line <= (other.end_line or other.line)
            or (place.function == other.function and place.function not in {"", "<module>"})
        )
        for other in finding.where
    )


def unexplained(ledger: Iterable[LedgerEntry]) -> float:
    """Share of the job's wall time in parts that nothing settles, without what findings explain of them."""
    return sum(
        entry.ratio * (1.0 - entry.explained_ratio)
        for entry in ledger
        if entry.maker is None and entry.settled_by == "unexplained"
    )
