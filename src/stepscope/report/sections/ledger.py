"""The ledger of the report: its parts as entries, with words and places."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.general import phase_lines, start_imports
from stepscope.derive.input import pipeline
from stepscope.derive.ledger import build as ledgers
from stepscope.derive.ledger import loop_edges, outside, start_work
from stepscope.derive.ledger.spots import Spots
from stepscope.derive.numeric import intervals
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import FRAMEWORKS, Framework
from stepscope.model.report.components import COMPONENTS
from stepscope.model.report.ledger import NO_STEPS, LedgerEntry
from stepscope.model.session.session import records_lost
from stepscope.report.sections import step_summary
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.ledger.part import Ledger, LedgerPart
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.report.ledger import Phase
    from stepscope.tables.place import Place

OVERLAPS = "DX171"
MAX_OVERLAP_RATIO = 0.01
"""Share of the wall time above which an overlap of parts is reported: below it, all shares are right as printed."""
NAMED = (
    (Kind.GC, COMPONENTS["gc"].word),
    (Kind.CALLBACK, COMPONENTS["callbacks"].word),
    (Kind.NEXT, COMPONENTS["input-wait"].word),
)
"""Kinds of records that say what time outside of steps is, with the word of their component."""
SAME_PACE = 1.25
"""Factor between counted and timed steps from which the text says it."""
MOST = 0.5
"""Share of a program's samples that wait, or lie in one function of a library, from which that is said."""
MIN_NAMED_RATIO = 0.1
"""Smallest share of such a part that is named."""
NUMBERED: dict[Phase, str] = {
    "start": "",
    "imports": "",
    "building": "",
    "first-steps": "step",
    "steps": "step",
    "other-steps": "step",
    "tracing": "trace",
    "evaluation": "evaluation",
    "saving": "save",
    "between-steps": "",
    "end": "",
    "not-seen": "",
}
"""What the number of a phase counts; "" for phases that have none."""
IMPORTING = frozenset({"start", "imports", "building"})
"""Phases in which a program imports."""
MOST_IMPORTS = 4
"""Imports that the text of a part names."""
FIRST_RUN = "first runs of the graph, which is optimised and compiled then,"
"""What first steps do beyond tracing."""
STEPS = frozenset({"first-steps", "steps", "other-steps", "evaluation"})
"""Phases that a job has which makes steps."""


def build(view: SessionView) -> tuple[tuple[LedgerEntry, ...], tuple[Diagnostic, ...]]:
    """The entries of all ledgers, that of the job first, and what is wrong with them.

    None where records cannot be read: the time of what they tell would be that of another part.
    """
    if view.session.manifest.mode in {"attach", "import"} or records_lost(view.session):
        return (), ()
    found = ledgers.ledgers(view.session, view.workers, view.get(step_summary.found), _Waits(view).of)
    entries = tuple(entry for ledger in found for entry in _entries(view, ledger))
    return entries, tuple(problem for ledger in found for problem in _problems(ledger))


class _Waits:
    """Input wait inside compiled calls, by maker."""

    def __init__(self, view: SessionView) -> None:
        self._view = view

    def of(self, steps: Steps) -> float:
        """Of the mean step."""
        view = self._view
        known = view.pipeline if steps is view.steps else pipeline.build(steps, view.traces.views)
        return (known.wait_ns_per_execution if known is not None else None) or 0.0


def _entries(view: SessionView, ledger: Ledger) -> list[LedgerEntry]:
    spots = Spots(ledger)
    return [
        LedgerEntry(
            phase=part.phase,
            component=part.component,
            maker=ledger.maker,
            ns=part.ns,
            ratio=part.ns / max(1, ledger.wall_ns),
            unobserved_ratio=part.unobserved_ns / part.ns,
            settled_by="unexplained",
            text=_text(view, ledger, part),
            where=_places(view, spots, part),
        )
        for part in ledger.parts
    ]


def _places(view: SessionView, spots: Spots, part: LedgerPart) -> tuple[Place, ...]:
    found = (view.place(spot.file, spot.line, spot.end_line, spot.function) for spot in spots.of(part))
    return tuple(dict.fromkeys(found))


def _text(view: SessionView, ledger: Ledger, part: LedgerPart) -> str:
    """What a part is, beyond its name."""
    items = [_number(part), *_details(ledger, part), _imported(view, ledger, part), *_start_work(view, ledger, part)]
    by, until_ns = phase_lines.launched(view.session.manifest, ledger.worker)
    if part.phase == "start" and by:
        items.append(_share_text(f"{by}, before it starts this process,", min(until_ns, part.ns)))
    if part.unobserved_ns:
        share = 100 * part.unobserved_ns / part.ns
        what = "steps" if part.phase in {"steps", "between-steps"} else "calls"
        items.append(f"{share:.0f} % extrapolated to {what} that were only counted{_pace(ledger, part)}")
    without = _without_stacks(ledger, part)
    if without >= MIN_NAMED_RATIO * part.ns:
        items.append(f"{format_ns(without)} of it without stacks: calls were only counted meanwhile")
    return "; ".join(item for item in items if item)


def _pace(ledger: Ledger, part: LedgerPart) -> str:
    """How the counted steps differ from the timed ones, which give them their parts."""
    alike = part.phase != "steps" or 1 / SAME_PACE <= ledger.pace <= SAME_PACE
    return "" if alike else f", which took {ledger.pace:.2g} times as long as the timed ones"


def _without_stacks(ledger: Ledger, part: LedgerPart) -> int:
    """Time of a part outside of steps in which calls were counted and no stack was sampled."""
    if part.phase not in {"building", "between-steps", "end"}:
        return 0
    counted = outside.counted(ledger.worker, ledger.threads)
    alone = intervals.without(counted, outside.sampled(ledger.worker, ledger.threads))
    return intervals.total(intervals.clip(part.spans, alone))


def _number(part: LedgerPart) -> str:
    word = NUMBERED[part.phase]
    if not word or not part.count:
        return ""
    return f"{part.count:,} {word}{'s' if part.count > 1 else ''}"


def _details(ledger: Ledger, part: LedgerPart) -> list[str]:
    match part.phase:
        case "start":
            said = ["the interpreter, and the program before it imports a framework"]
        case "imports":
            events = ledger.worker.all(Framework)
            names = dict.fromkeys(event.name for event in events if event.name in FRAMEWORKS and event.dur)
            said = [", ".join(names)]
        case "first-steps":
            said = [_share_text("tracing", _records_within(ledger, part, Kind.TRACE))]
        case "building":
            made = _records_within(ledger, part, Kind.BUILD)
            said = [
                ", ".join([_before(ledger), *_doing(ledger, part)]),
                _share_text("loading or making models and graphs", made),
            ]
        case "between-steps":
            said = _within(ledger, part)
        case "end":
            said = [_share_text("finishing the interpreter", ledger.exit_ns), *_within(ledger, part)]
        case "not-seen":
            said = ["no record covers it"]
        case _:
            said = []
    return said


def _imported(view: SessionView, ledger: Ledger, part: LedgerPart) -> str:
    """What a part before the first step imports, with the lines that ask for it: ``pandas 1.2 s (train.py:3)``."""
    found = view.get(start_imports.build) if ledger.maker is None and part.phase in IMPORTING else None
    said = []
    for time in found.times if found is not None else ():
        ns = intervals.total(intervals.clip(time.spans, part.spans))
        if ns >= MIN_NAMED_RATIO * part.ns and time.file:
            place = view.place(time.file, time.line)
            said.append(f"{time.module} {format_ns(ns)} ({place.file}:{place.line})")
    return f"imports: {', '.join(said[:MOST_IMPORTS])}" if said else ""


def _start_work(view: SessionView, ledger: Ledger, part: LedgerPart) -> list[str]:
    """How much of a part before the steady steps is the start of a device, compilation, and first runs of graphs."""
    if part.phase not in {"building", "first-steps"}:
        return []
    times = start_work.of(ledger.worker, ledger.threads, part)
    traced = _records_within(ledger, part, Kind.TRACE)
    if part.phase == "first-steps" and view.steps is not None and ledger.maker is None and traced:
        times[FIRST_RUN] = start_work.first_runs(view.steps, part, traced) - sum(times.values())
    return [_share_text(what, ns) for what, ns in times.items() if ns >= MIN_NAMED_RATIO * part.ns]


def _before(ledger: Ledger) -> str:
    """What the time before the first step is; a job without steps has no such time."""
    if not any(part.phase in STEPS for part in ledger.parts):
        return NO_STEPS
    if outside.is_sampled(ledger.worker):
        return "Python up to the first step"
    return "all up to the first step: other imports, data, models; no stacks were sampled"


def _doing(ledger: Ledger, part: LedgerPart) -> list[str]:
    """What a program without steps does by its stacks: whether it waits, and the function of a library that has most.

    JAX computes on its threads, for which Python waits; it compiles in one function.
    """
    if any(other.phase in STEPS for other in ledger.parts):
        return []
    every = list(stack_samples.thread_samples(ledger.worker, ledger.threads, gaps=True))
    at = np.array([sample.at for sample in every], np.int64)
    taken = list(itertools.compress(every, intervals.overlapping(part.spans, at, at + 1).tolist()))
    whole = max(1, stack_samples.weight_of(taken))
    waits = stack_samples.weight_of(sample for sample in taken if not sample.on_cpu) / whole
    said = []
    if waits >= MOST and any(sample.on_cpu for sample in taken):
        said.append(f"{format_ratio(waits)} of it off the CPU: it waits, such as for threads of the framework")
    spent: Counter[str] = Counter()
    for sample in taken:
        if not sample.leaf.own:
            spent[sample.leaf.function] += sample.weight_ns
    for name, ns in spent.most_common(1):
        if ns >= MOST * whole:
            said.append(f"{format_ratio(ns / whole)} of it in {name}")
    return said


def _within(ledger: Ledger, part: LedgerPart) -> list[str]:
    """What records show of a large share of the time outside of steps."""
    times = [(word, _records_within(ledger, part, kind)) for kind, word in NAMED]
    edges = loop_edges.build(ledger.worker, ledger.threads)
    times += [(edge.what, intervals.total(intervals.clip(edge.spans, part.spans))) for edge in edges]
    return [_share_text(word, ns) for word, ns in times if ns >= MIN_NAMED_RATIO * part.ns]


def _share_text(what: str, ns: int) -> str:
    """A part of a part."""
    return f"{what} {format_ns(ns)} of it" if ns > 0 else ""


def _records_within(ledger: Ledger, part: LedgerPart, kind: Kind) -> int:
    """Time of the records of a kind within a part."""
    records = outside.on_threads(ledger.worker, ledger.threads)
    spans = outside.spans_of(records.take(records.kind == kind))
    return intervals.total(intervals.clip(spans, part.spans))


def _problems(ledger: Ledger) -> list[Diagnostic]:
    """Parts that claim the same time."""
    ratio = ledger.overlap_ns / max(1, ledger.wall_ns)
    if ratio <= MAX_OVERLAP_RATIO:
        return []
    whose = "the job" if ledger.maker is None else f"maker {ledger.maker + 1} of its steps"
    text = (
        f"the ledger of {whose} adds up to {100 * (1 + ratio):.0f} % of its wall time: steps that were only counted "
        "were faster than the observed ones; shares of the step's components are too large by as much"
    )
    return [Diagnostic(code=OVERLAPS, text=text)]
