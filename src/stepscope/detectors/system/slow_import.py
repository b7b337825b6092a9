"""Imports take a large part of the run, or seconds.

## What it detects
Statements of the user's code that import modules for a quarter of the run in all, or for two seconds without
frameworks: each with its line, what it imports, and how long that takes. What a module of the user's own does while it
is imported (a table that it computes, a file that it reads) is the time of the line that imports it.

## Why it matters
Every start of the job pays it again: each trial of a search, each restart on a spot machine, each debugging run, each
worker process that imports the same script.

## Evidence
`import_ratio`: of the job's wall time; `import_ns`; `framework_ns`: within imports of frameworks. `MODULE at
FILE:LINE`: time of one statement, without that of others within. `part of PHASE`: share of a phase of the ledger that
is imports. `blocked_ns`, `read_bytes`: of the time until stacks are sampled, without the CPU and not for want of one,
and what was read from disks and network file systems by then, if that is most of it.

## Known limits
Frameworks are counted, but a job needs them: alone they are information, and no saving is claimed. What other imports
need (a second use of NumPy, say) is counted where it is imported first. Up to the sampling of stacks (a framework's
import, or the sixth second of a process) the times are those between imports that the program's own lines ask for:
where other code runs between two of them, neither has the time. Under `enable`, nothing is known before the framework.

## Remedy
Move what a module does while it is imported into a function, or keep its result in a file; import what is not needed at
the start where it is used, and a part of a package rather than all of it. Keep the environment on a local disk.

## References
FSE'22 study, symptom "slow initialization time" ("including library importing").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import start_imports
from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.start_imports import StartImports
    from stepscope.derive.ledger.import_times import ImportTime, Waited
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the job's wall time, in all imports; of the time without frameworks' imports, in others, from which a saving
    is claimed."""
    min_ns: int = 2_000_000_000
    """In imports other than frameworks, however long the run; less is no saving that is claimed."""
    min_blocked_ratio: Ratio = Ratio(0.5)
    """Of the time until stacks are sampled, without the CPU and not for want of one, from which it waits for files."""
    min_listed_ratio: Ratio = Ratio(0.02)
    """Of all imports, from which a statement is listed."""


MIN_READ = 20_000_000
"""Bytes read from disks: less is not what imports wait for, such as a sleep or an answer of a server."""
_LOCAL = Remedy(
    id="packages-on-a-local-disk",
    text="keep the environment and the program on a local disk, in one archive or image that is unpacked there: an "
    "import opens thousands of small files, each of which waits for the disk or the network",
)
MOST = 8
"""Statements that are listed."""
MIN_OTHER = 0.1
"""Part of the imports that is no framework's from which there is a remedy."""
LONGEST = 90
"""Characters of a title."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(start_imports.build)
    if found is None or found.wall_ns <= 0:
        return
    ratio, other = found.ns / found.wall_ns, found.other_ns / found.wall_ns
    if ratio < params.min_ratio and found.other_ns < params.min_ns:
        return
    rest = max(1, found.wall_ns - found.framework_ns)
    clear = found.other_ns >= params.min_ns and found.other_ns / rest >= params.min_ratio
    files = _files(found, params)
    listed = [time for time in found.times if time.ns >= params.min_listed_ratio * found.ns][:MOST]
    places = [_place(view, time) for time in sorted(listed, key=lambda time: not time.own) if time.file]
    steps = view.steps
    each = found.other_ns // len(steps) if steps is not None and clear else 0
    yield Seen(
        title=_title(view, found, listed, ratio),
        severity=severity_of(other) if clear else "info",
        confidence=0.85,
        where=tuple(dict.fromkeys(places)),
        evidence=(
            Evidence(metric="import_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="import_ns", value=found.ns, unit="ns"),
            Evidence(metric="framework_ns", value=found.framework_ns, unit="ns"),
            *(Evidence(metric=_metric(view, time), value=time.ns, unit="ns") for time in listed),
            *(_of_files(files) if files is not None else ()),
            *(
                Evidence(metric=f"part of {phase}", value=part, unit="ratio", refs=(f"phase:{phase}",))
                for phase, part in found.phases
            ),
        ),
        cost=cost_of(view, other, low=0.0, basis="modelled", ns_per_step=each)
        if clear
        else cost_of(view, 0.0, high=other, basis="unknown", ns_per_step=0),
        remedies=((_LOCAL,) if files is not None else ()) + _remedies(found, listed),
        explanation="The time of a line is without that of imports which other lines of the program ask for meanwhile."
        f"{_files_text(files) if files is not None else ''}",
    )


def _files(found: StartImports, params: Params) -> Waited | None:
    """What the imports wait for, if it is files; None if they compute."""
    waited = found.waited
    long = waited is not None and waited.blocked_ns >= params.min_blocked_ratio * waited.ns
    return waited if long and waited is not None and (waited.read_bytes >= MIN_READ or waited.network) else None


def _of_files(files: Waited) -> tuple[Evidence, ...]:
    return (
        Evidence(metric="blocked_ns", value=files.blocked_ns, unit="ns"),
        Evidence(metric="read_bytes", value=max(0, files.read_bytes), unit="bytes"),
    )


def _files_text(files: Waited) -> str:
    """What is read, and from where."""
    over = "".join(f", some of it from {point} ({kind}, over a network)" for kind, point in files.network)
    read = f"{format_bytes(files.read_bytes)} were read" if files.read_bytes > 0 else "files were read"
    return (
        f" For {format_ns(files.blocked_ns)} of the {format_ns(files.ns)} from the first import to the end of the "
        f"framework's, the main thread neither computed nor was ready to: {read}{over}."
    )


def _title(view: SessionView, found: StartImports, listed: list[ImportTime], ratio: float) -> str:
    """With the costliest module of the user's, and the costliest of all."""
    own = next((i for i, time in enumerate(listed) if time.own), 0)
    said = [f"{listed[i].module} {format_ns(listed[i].ns)}" for i in sorted({0, own}, reverse=True)]
    lines = [f"{text} ({_at(view, listed[i])})" for text, i in zip(said, sorted({0, own}, reverse=True), strict=True)]
    head = f"imports take {format_ratio(ratio)} of the run ({format_ns(found.ns)})"
    endings = (lines, [lines[0], *said[1:]], lines[:1], said)
    titles = [f"{head}: {', '.join(ending)}" for ending in endings]
    return next((title for title in titles if len(title) <= LONGEST), titles[-1])


def _at(view: SessionView, time: ImportTime) -> str:
    place = _place(view, time)
    return f"{place.file}:{place.line}" if time.file else "no line of the program's"


def _metric(view: SessionView, time: ImportTime) -> str:
    if not time.file:
        return time.module
    return f"{time.module} at {_at(view, time)}"


def _place(view: SessionView, time: ImportTime) -> Place:
    return view.place(time.file, time.line, function=time.function)


def _remedies(found: StartImports, listed: list[ImportTime]) -> tuple[Remedy, ...]:
    """None for frameworks, without which there is no job."""
    own = [time.module for time in listed if time.own]
    work = Remedy(
        id="work-out-of-import",
        text=f"move the work of {' and '.join(own[:2])} out of the import: into a function that is called where its "
        "result is needed, or its result into a file",
    )
    less = Remedy(
        id="import-less",
        text="import at the start only what is needed there, and the rest where it is used (python -X importtime lists "
        "the modules in each)",
    )
    needed = found.other_ns < MIN_OTHER * found.ns
    return () if needed else (work, less) if own else (less,)


DETECTOR = Detector(
    code="INI002",
    name="slow-import",
    symptom="Time: slow initialization time",
    cause="Python: interpreter overhead",
    introduced_stage="environment setting",
    exposed_stage="initialization",
    needs=frozenset({Signal.STACKS}),
    params=Params(),
    detect=detect,
)
