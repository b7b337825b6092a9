"""Queries of single pages on opened sessions: stacks, code, memory, comparison. Like ``server.browse``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from stepscope.model.api.browsing import (
    CodeFile,
    CodeFileList,
    CodeLine,
    Comparison,
    InputFinding,
    InputShown,
    MemoryList,
    MemoryShown,
    StackChange,
    StackComparison,
    StackKind,
    StackTree,
)
from stepscope.server import browse
from stepscope.tables.errors import UsageError
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from stepscope.model.api.rest_api import SessionBrief
    from stepscope.report.flame.graph import ComparedProfiles
    from stepscope.server.open_sessions import OpenSession
    from stepscope.use_cases.flame import ChosenGraph, Window

MAX_CHANGES = 100
INPUT_WAIT = "input-wait"
_TELLING = 0.05
"""Of the step: less input wait is not worth a word above a flame graph."""
_GENERATED = "__autograph_generated_file"
"""In the names of files that TensorFlow writes while it traces functions."""


def stacks(opened: OpenSession, event: str, window: Window | None, *, threads: bool = False) -> StackTree:
    """The stacks of one event; ``threads``: below their threads, and ending in a frame that says so where they wait.

    Raises:
        UsageError: the session has no such event, or no stacks at all.
    """
    from stepscope.derive.stacks import by_thread
    from stepscope.report.flame import payload, words

    shown = browse.flame(opened, event, window)
    profile = shown.profile
    tree, own, merged = payload.summed(by_thread.by_thread(profile) if threads else profile)
    said = {
        "event": words.event_text(profile),
        "window": shown.window,
        "samples": shown.samples,
        "weight": profile.total,
        "unresolved_ratio": shown.health.unresolved_leaf_ratio,
        "health": words.health_items(shown),
        "doubtful": words.is_doubtful(shown),
        "merged": words.merged_text(merged, profile.unit) if merged is not None else "",
        "threads": len(set(by_thread.pools_of(profile.threads, set(profile.samples.thread.tolist())).values())),
        "waits": _waits(opened, by_thread.waiting_ratio(profile)) if threads else "",
        "kinds": [
            StackKind(kind=int(kind), name=kind.name.lower(), text=words.KIND_WORDS[kind], ratio=ratio)
            for kind, ratio in words.kind_items(profile)
        ],
        "own": own,
    }
    return msgspec.convert({**tree, **said}, StackTree)


def _waits(opened: OpenSession, ratio: float) -> str:
    if not ratio:
        return ""
    said = f"Boxes [waits]: the thread was on no CPU, {format_ratio(ratio)} of the time shown."
    wait = next((part.ratio for part in opened.report.anatomy if part.component == INPUT_WAIT), 0.0)
    return f"{said} {format_ratio(wait)} of the step is input wait (see Input)." if wait >= _TELLING else said


# ---- code


class _Known(Struct):
    ratio: float = 0.0
    op_ratio: float = 0.0
    findings: list[int] = field(default_factory=list)


def files(opened: OpenSession) -> CodeFileList:
    """The user's files: those with a copy in the session, and those with known costs or findings."""
    report = opened.report
    known: defaultdict[str, defaultdict[int, _Known]] = defaultdict(lambda: defaultdict(_Known))
    for heat in report.line_heat:
        known[heat.file][heat.line].ratio += heat.ratio
    for maker in report.ops.makers if report.ops is not None else ():
        if maker.file and maker.line:
            known[maker.file][maker.line].op_ratio += maker.ratio
    for number, finding in enumerate(report.findings, 1):
        for place in finding.where:
            if place.file and place.cell is None:
                for line in range(place.line, (place.end_line or place.line) + 1):
                    known[place.file][line].findings.append(number)
    cwd = opened.manifest.cwd.rstrip("/") + "/"
    held = {path.removeprefix(cwd): len(text.splitlines()) for path, text in opened.session.sources.items()}
    found = [
        _file(name, held.get(name, 0), known.get(name, {}))
        for name in {*held, *known}
        if name in known or _GENERATED not in name
    ]
    return CodeFileList(items=tuple(sorted(found, key=lambda f: (-f.ratio, -f.op_ratio, -len(f.known), f.file))))


def _file(name: str, lines: int, known: dict[int, _Known]) -> CodeFile:
    rows = sorted(known.items())
    return CodeFile(
        file=name,
        lines=lines,
        ratio=min(1.0, sum(k.ratio for _, k in rows)),
        op_ratio=min(1.0, sum(k.op_ratio for _, k in rows)),
        known=tuple(
            CodeLine(line=line, ratio=k.ratio, op_ratio=k.op_ratio, findings=tuple(sorted(set(k.findings))))
            for line, k in rows
        ),
    )


# ---- input

INPUT_STAGES = ("raw-input", "preprocessing")


def input_shown(opened: OpenSession) -> InputShown:
    """What the report says of the input."""
    report = opened.report
    return InputShown(
        tree=report.input_tree,
        bound=report.input_bound,
        shares=tuple(share for share in report.stages if share.stage in INPUT_STAGES),
        findings=tuple(
            InputFinding(number=number, finding=one)
            for number, one in enumerate(report.findings, 1)
            if one.code.startswith("INP") or one.pipeline_stage in INPUT_STAGES
        ),
    )


# ---- memory


def memory(opened: OpenSession) -> MemoryList:
    """Address spaces."""
    from stepscope.report.memory import memory_words as words

    return MemoryList(
        items=tuple(
            MemoryShown(
                map=one,
                huge_pages=tuple(words.huge_pages(one)),
                layout=tuple(words.layout(one)),
                faults=words.faults(one),
                growth=words.growth(one),
                kernel_work=words.kernel_work(one),
                sizes=tuple(words.size_range(size) for size in one.sizes),
                hardware=tuple(words.hardware(one)),
                translation=tuple(words.translation(one)),
                page_sizes=tuple(words.page_sizes(one)),
                free_memory=tuple(words.free_memory(one)),
            )
            for one in opened.report.memory
        )
    )


# ---- two sessions


def compared(before: OpenSession, after: OpenSession, event: str) -> ComparedProfiles:
    """The stacks of one event of two sessions on one tree, per step if both have steps.

    Raises:
        UsageError: one of them has no such event.
    """
    from stepscope.use_cases import flame

    def chosen(opened: OpenSession, wanted: str) -> ChosenGraph:
        return flame.of_session(opened.session, opened.path, wanted)

    first = chosen(before, event)
    return flame.of_pair(first, chosen(after, event or first.graph.profile.event))


def comparison(
    before: OpenSession, after: OpenSession, briefs: tuple[SessionBrief, SessionBrief], event: str
) -> Comparison:
    """Two sessions.

    Raises:
        UsageError: ``event`` is given, and one of them lacks it.
    """
    in_both = {flame.event for flame in browse.flames(after).items}
    events = tuple(dict.fromkeys(flame.event for flame in browse.flames(before).items if flame.event in in_both))
    if event and event not in events:
        raise UsageError(f"no event {event!r} in both sessions; common events: {', '.join(events) or 'none'}")
    said = _with_numbers(Comparison(before=briefs[0], after=briefs[1], events=events, stacks=None), before, after)
    if not events:
        return said
    try:
        found = compared(before, after, event or _preferred(events))
    except UsageError as error:  # of one name, and of two units
        return msgspec.structs.replace(said, problem=str(error))
    return msgspec.structs.replace(said, stacks=_stack_changes(found))


def _with_numbers(said: Comparison, before: OpenSession, after: OpenSession) -> Comparison:
    from stepscope.report import compare_text
    from stepscope.use_cases import compare
    from stepscope.use_cases.comparing import numbers

    try:
        one, other = (numbers.of_view(opened.path, opened.view) for opened in (before, after))
        found = compare.of_numbers((one,), (other,))
    except UsageError as error:
        return msgspec.structs.replace(said, no_numbers=str(error))
    return msgspec.structs.replace(said, numbers=found, verdict=compare_text.verdict(found))


def _preferred(events: tuple[str, ...]) -> str:
    from stepscope.use_cases import flame

    return next((name for name in flame.PREFERRED if name in events), events[0])


def _stack_changes(found: ComparedProfiles) -> StackComparison:
    from stepscope.report.flame import words

    unit = found.after.profile.unit
    changed = found.difference.functions
    return StackComparison(
        event=words.event_text(found.after.profile),
        unit=unit,
        verdict=words.verdict(found),
        about=tuple(words.difference_items(found)),
        changes=tuple(
            StackChange(
                function=change.function.function,
                file=change.function.file,
                module=change.function.module,
                own_before=float(change.own.expected),
                own_after=float(change.own.after),
                own_text=words.growth_text(change.own.expected, change.own.after),
                total_before=float(change.total.expected),
                total_after=float(change.total.after),
                total_text=words.growth_text(change.total.expected, change.total.after),
            )
            for change in changed[:MAX_CHANGES]
        ),
        more=max(0, len(changed) - MAX_CHANGES),
    )
