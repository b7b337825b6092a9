"""Flame graphs of sessions and of stack files: choose an event and a window, draw it, compare two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.ledger import pauses
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps, totals
from stepscope.store.bundle import is_packed
from stepscope.tables.errors import UsageError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ns
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.stacks.profile_difference import Basis
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.model.session.session import Session
    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.stacks import StackProfile

Window = Literal["steady", "all"]
PREFERRED = ("cpu", "cpu-clock", "task-clock", "cycles", "python")
"""Events drawn by default; the first available one is used."""
_OF_PERF = ("cpu-clock", "task-clock", "cycles")
"""The same in a file: perf's events, which have no order. Other formats say which of theirs comes first."""
_BY_TIME = frozenset({"python", "off-cpu"})
"""Events that the agent samples in windows, in time."""
_OTHERS = "DX127"
FEW_SAMPLES = 20
"""Fewer samples of the steps, and less than half of all, and the whole run is drawn unless steps are asked for."""
ENDINGS = (".html", ".svg", ".folded", ".speedscope.json", ".pb.gz")


class ChosenGraph(Struct, frozen=True, kw_only=True):
    """A graph and how much work it covers: steps for a session, 1 for a file."""

    graph: Graph
    work: float
    counts_steps: bool
    has_steps: bool = False
    """Whether some of its samples lie in steady steps, drawn or not."""


def choose(path: Path, *, event: str = "", window: Window | None = None) -> ChosenGraph:
    """The graph of one event of a session or stack file.

    Raises:
        UsageError: it has no such event, or no stacks at all.
        SessionError: the session is missing or damaged.
        FormatError: the file is missing, damaged, or holds no stacks.
    """
    if path.is_dir() or is_packed(path):
        from stepscope.sessions.bundle import open_session

        return of_session(open_session(path), path, event, window)
    from stepscope.readers.importers import stack_files
    from stepscope.report.flame.graph import graph

    if window is not None:
        raise UsageError(f"{path}: --window {window} needs a session; a file of stacks has no steps")
    profiles = stack_files.read(path)
    profile = _pick(profiles, event, path, preferred=_OF_PERF)
    others = [one.event or "an unnamed one" for one in profiles if one.event != profile.event]
    if others and not event:
        also = Diagnostic(code=_OTHERS, text=f"the file also holds {', '.join(others)} (--event)")
        profile = replace(profile, diagnostics=(*profile.diagnostics, also))
    return ChosenGraph(graph=graph(profile, source=str(path)), work=1.0, counts_steps=False)


def of_session(session: Session, path: Path, event: str = "", window: Window | None = None) -> ChosenGraph:
    """The graph of one event of an opened session; ``path`` is its location.

    Raises:
        UsageError: it has no such event, or no stacks at all.
    """
    from stepscope.derive.stacks import memory_stacks, session_stacks
    from stepscope.derive.view import SessionView
    from stepscope.report.flame.graph import graph

    view = SessionView(session)
    profile = _pick(session_stacks.profiles(session), event, path, _why_none(view))
    steps = view.steps
    if window == "steady" and (steps is None or not steps.steady_count):
        raise UsageError(f"{path}: no steady steps in it; use --window all")
    of_memory = profile.event in memory_stacks.EVENTS
    steady = steps is not None and bool(steps.steady_count) and window != "all" and not of_memory
    said, work = memory_stacks.SAID.get(profile.event, "the whole run"), 1.0
    part, in_steps = profile, False
    if steps is not None and steady:
        lows, highs = intervals.without(steps.whole_windows, _unsampled(steps))
        part = session_stacks.within(profile, list(zip(lows.tolist(), highs.tolist(), strict=True)))
        in_steps = len(part.samples) > 0
        count = _steps_sampled(session, profile.event, steps)
        work = _steps_stood_for(steps, (lows, highs), count) if profile.event in _BY_TIME else count
        share = 1 - part.total / profile.total if profile.total else 0.0
        said = f"{_count(count, 'steady step')} of {steps.title}; {100 * share:.0f} % of the samples are outside them"
        few = len(part.samples) < FEW_SAMPLES and share > 1 / 2
        if few and window is None and len(part.samples):
            said = f"the whole run: only {len(part.samples)} of its samples lie in the steady steps of {steps.title}"
            part, steady, work = profile, False, 1.0
        if not len(part.samples):
            none = f"no sample of {profile.event} lies in the {_count(steps.steady_count, 'steady step')}"
            if window == "steady":
                raise UsageError(f"{path}: {none} of {steps.title}; use --window all")
            part, steady, work, said = profile, False, 1.0, f"the whole run: {none} of {steps.title}"
    return ChosenGraph(
        graph=graph(
            part, source=str(path), window=said, hidden=profile.total - part.total, of_run=not steady and not of_memory
        ),
        work=max(work, 1.0),
        counts_steps=steady,
        has_steps=in_steps,
    )


def of_range(session: Session, path: Path, event: str, within: tuple[int, int]) -> ChosenGraph:
    """The graph of one event of an opened session in a range, (from, to) in ns since its start.

    Raises:
        UsageError: it has no such event, or no sample of it in the range.
    """
    from stepscope.derive.stacks import session_stacks
    from stepscope.derive.view import SessionView
    from stepscope.report.flame.graph import graph

    profile = _pick(session_stacks.profiles(session), event, path, _why_none(SessionView(session)))
    part = session_stacks.within(profile, [within])
    said = f"{format_ns(within[0])} to {format_ns(within[1])} after its start"
    if not len(part.samples):
        raise UsageError(f"{path}: no sample of {profile.event} lies in the range {said}")
    return ChosenGraph(
        graph=graph(part, source=str(path), window=said, hidden=profile.total - part.total),
        work=1.0,
        counts_steps=False,
    )


def _unsampled(steps: Steps) -> Intervals:
    """Steps that hold gaps in which hardly any stack was taken: there the agent samples only what is no step, such as a
    pause, or calls that are longer than its looks are apart.
    """
    worker, holes = steps.worker, gaps.periods(steps.worker.gaps)
    records = worker.with_gaps()
    mine = (records.kind == Kind.SAMPLE) & (records.thread == steps.thread)
    mine &= intervals.overlapping(holes, records.start_ns, records.start_ns + 1)
    if 2 * int(records.dur_ns[mine].sum()) >= intervals.total(holes):
        return intervals.empty()
    holding = intervals.overlapping(holes, steps.starts, steps.ends)
    return intervals.merge(steps.starts[holding], steps.ends[holding])


def _count(number: float, word: str) -> str:
    return f"{number:,.0f} {word}{'' if number == 1 else 's'}"


def _steps_stood_for(steps: Steps, spans: Intervals, count: float) -> float:
    """How many mean steps the samples of the steps' thread stand for, of ``count`` in ``spans``.

    A sample stands for the time before it, and none follows the last one of a window: in short windows they stand for
    less than its steps. Where steps that were only counted are sampled as well, the mean is that of ``spans``.
    """
    records = steps.worker.with_gaps()
    mine = (records.kind == Kind.SAMPLE) & (records.thread == steps.thread)
    mine &= intervals.overlapping(spans, records.start_ns, records.start_ns + 1)
    counted = intervals.total(intervals.clip((steps.starts[steps.unobserved], steps.ends[steps.unobserved]), spans))
    mean_ns = intervals.total(spans) / max(1.0, count) if counted else pauses.mean_ns(steps)
    return float(records.dur_ns[mine].sum()) / mean_ns


def _steps_sampled(session: Session, event: str, steps: Steps) -> float:
    """Steady steps while the event was sampled."""
    from stepscope.derive.stacks import session_stacks

    begins, ends = (np.array(side, np.int64) for side in zip(*session_stacks.windows(session, event), strict=True))
    sampled = intervals.without(intervals.merge(begins, ends), _unsampled(steps))
    lows, highs = steps.windows
    middles = (lows + highs) // 2
    inside = middles < 0
    for begin, end in zip(*(side.tolist() for side in sampled), strict=True):
        inside |= (middles >= begin) & (middles < end)
    return float(inside.sum()) + _counted_steps(steps, sampled)


def _counted_steps(steps: Steps, sampled: Intervals) -> float:
    """Steps that were only counted while the event was sampled, as if they were evenly spread over their gaps."""
    total = totals.of(steps)
    hidden = steps.starts[steps.unobserved], steps.ends[steps.unobserved]
    if total is None or not intervals.total(hidden):
        return 0.0
    within = intervals.total(intervals.clip(hidden, sampled))
    return (total.count - total.timed) * within / intervals.total(hidden)


def _why_none(view: SessionView) -> str:
    """Why a session without stacks has none."""
    from stepscope.derive import job_framework

    framework = view.get(job_framework.build)
    if framework is None or framework.sampled:
        return "expected a job that ran Python for a second or more"
    return "expected a job that ran Python for some seconds: one without a framework is not sampled from its start"


def _pick(
    profiles: Sequence[StackProfile], event: str, path: Path, why: str = "", preferred: Sequence[str] = PREFERRED
) -> StackProfile:
    """The profile of an event. For a file that names no event, ``event`` is its name; without ``event`` the first of
    ``preferred``, else the first. ``why``: there may be none.
    """
    by_event: dict[str, StackProfile] = {}
    for profile in profiles:
        by_event.setdefault(profile.event, profile)
    if not by_event:
        raise UsageError(
            f"{path}: it contains no sampled stacks; {why or 'expected a file of stacks'}"
            f"{', or a capture: stepscope trace JOB --kind native' if why else ''}"
        )
    if not event:
        return next((by_event[name] for name in preferred if name in by_event), profiles[0])
    if event in by_event:
        return by_event[event]
    if list(by_event) == [""]:
        only = by_event[""]
        return replace(only, event=event, unit=only.unit or event)
    there = ", ".join(name or "an unnamed one" for name in by_event)
    raise UsageError(f"{path}: no event {event!r}; it has: {there}")


def compare(
    before: Path, after: Path, *, event: str, window: Window | None, basis: Basis, work: tuple[float, float] | None
) -> ComparedProfiles:
    """Two sessions or files on one tree, and the differences beyond noise.

    ``work``: amounts of work that the two cover; by default steps if both are sessions, else equal.

    Raises:
        UsageError: no such event, or two events that cannot be compared.
        SessionError, FormatError: as ``choose``.
    """
    one = choose(before, event=event, window=window)
    other = choose(after, event=event or one.graph.profile.event, window=window)
    sessions = all(path.is_dir() or is_packed(path) for path in (before, after))
    if sessions and window is None and not (one.counts_steps and other.counts_steps):
        # Steps against a whole run would be no comparison, and runs hold other numbers of steps and their start.
        part: Window = "steady" if one.has_steps and other.has_steps else "all"
        one, other = (choose(path, event=one.graph.profile.event, window=part) for path in (before, after))
    return of_pair(one, other, basis=basis, work=work)


def of_pair(
    one: ChosenGraph, other: ChosenGraph, *, basis: Basis = "work", work: tuple[float, float] | None = None
) -> ComparedProfiles:
    """Two graphs on one tree, and the differences beyond noise; ``work`` as in ``compare``.

    Raises:
        UsageError: their events cannot be compared.
    """
    from stepscope.report.flame import graph

    units = one.graph.profile.unit, other.graph.profile.unit
    if units[0] != units[1] and all(units):
        sources = f"{one.graph.source} counts {units[0]} and {other.graph.source} counts {units[1]}"
        raise UsageError(f"{sources}; expected two profiles of the same event")
    unit = "unit of work" if work else ""
    if work is None and one.counts_steps and other.counts_steps:
        work, unit = (one.work, other.work), "step"
    return graph.compare(one.graph, other.graph, basis=basis, work=work or (1.0, 1.0), unit_of_work=unit)


# ---- output


def text_of(shown: Graph | ComparedProfiles) -> str:
    """For a terminal."""
    from stepscope.report.flame import text
    from stepscope.report.flame.graph import Graph

    return text.render(shown) if isinstance(shown, Graph) else text.render_compared(shown)


def write(shown: Graph | ComparedProfiles, path: Path) -> int:
    """Write a drawing or a file for other tools, in the format of its extension; return its size in bytes.

    Raises:
        UsageError: unknown extension, a difference that the format cannot represent, or the file cannot be written.
    """
    data = encode(shown, path)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return len(data)


def encode(shown: Graph | ComparedProfiles, path: Path) -> bytes:
    """The drawing or file in the format of the extension of ``path``; nothing is written.

    Raises:
        UsageError: unknown extension, or a difference that the format cannot represent.
    """
    return _writer(path)(shown)


def check_ending(path: Path, *, difference: bool) -> None:
    """Refuse a file name with an unknown extension, before anything is read.

    Raises:
        UsageError: the extension is unknown.
    """
    drawn = path.name.lower().endswith((".html", ".htm", ".svg"))
    if not drawn and (difference or not path.name.lower().endswith((".folded", ".json", ".pb.gz", ".pprof"))):
        expected = ".html or .svg for a difference" if difference else ", ".join(ENDINGS)
        raise UsageError(f"{path}: unknown extension; expected {expected}")


def _writer(path: Path) -> Callable[[Graph | ComparedProfiles], bytes]:
    from stepscope.readers.stacks import folded, pprof, speedscope
    from stepscope.report.flame import page, svg
    from stepscope.report.flame.graph import Graph

    def of(
        one: Callable[[Graph], str], two: Callable[[ComparedProfiles], str]
    ) -> Callable[[Graph | ComparedProfiles], bytes]:
        return lambda shown: (one(shown) if isinstance(shown, Graph) else two(shown)).encode("utf-8", "replace")

    def plain(encode: Callable[[StackProfile], bytes]) -> Callable[[Graph | ComparedProfiles], bytes]:
        def made(shown: Graph | ComparedProfiles) -> bytes:
            if isinstance(shown, Graph):
                return encode(shown.profile)
            raise UsageError(f"{path}: a difference can only be written as .html or .svg")

        return made

    name = path.name.lower()
    if name.endswith((".html", ".htm")):
        return of(page.render, page.render_compared)
    if name.endswith(".svg"):
        return of(svg.render, svg.render_compared)
    if name.endswith(".folded"):
        return plain(folded.write)
    if name.endswith(".json"):
        return plain(lambda profile: speedscope.write(profile, exporter="stepscope"))
    if name.endswith((".pb.gz", ".pprof")):
        return plain(pprof.write)
    raise UsageError(f"{path}: unknown extension; expected {', '.join(ENDINGS)}")
