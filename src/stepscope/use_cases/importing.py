"""The use case ``import``: turn other tools' files into a session."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope._version import __version__
from stepscope.tables.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.op_summary import OpTraceSummary, StackFile
    from stepscope.tables.findings import Diagnostic
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.stacks import StackProfile

_ENDINGS = (".gz", ".json", ".pb", ".xplane", ".trace", ".pt", ".folded", ".script", ".txt", ".pprof", ".speedscope")


class ImportedSession(Struct, frozen=True, kw_only=True):
    """The new session and its contents."""

    session: Path
    traces: tuple[OpTraceSummary, ...]
    stacks: tuple[StackFile, ...] = ()
    notes: tuple[str, ...] = ()
    """Repairs and omissions while reading the files."""


def import_files(paths: Sequence[Path], target: Path | None = None) -> ImportedSession:
    """Make a session from op traces and stack files. If one cannot be read, all fail and nothing is written.

    Traces with a wall clock are placed in the session by that clock; the earliest starts at zero.

    Args:
        paths: files, runs of TensorBoard's profiler, or log directories, of which the newest run is used.
        target: the session's directory; None: named after the first file, in the working directory.

    Raises:
        FormatError: a file is missing, damaged, or of no known format.
        SessionError: the session already exists.
        UsageError: it cannot be written.
    """
    from stepscope.readers.importers import places, registry, stack_files
    from stepscope.tables import layout

    files = [file for path in paths for file in places.files(path)]
    traces: list[OpTrace] = []
    profiles: list[StackProfile] = []
    for file in files:
        if stack_files.knows(file):
            profiles += stack_files.read(file)
        else:
            traces.append(registry.read(file))
    ranks = _of_ranks(traces)
    session = target or Path(_stem(files[0].name) + layout.SUFFIX)
    try:
        layout.claim(session, "--output")
        _write(session, traces, profiles, ranks)
    except OSError as error:
        raise UsageError(f"{session} cannot be written: {error.strerror or error}") from error
    notes = tuple(diagnostic.text for trace in traces for diagnostic in trace.diagnostics)
    notes += tuple(diagnostic.text for diagnostic in ranks)
    return ImportedSession(session=session, traces=tuple(_summaries(traces)), stacks=_stacks(profiles), notes=notes)


def _stem(name: str) -> str:
    while name.endswith(_ENDINGS):
        name = name[: name.rindex(".")]
    return name or "imported"


def _names(traces: Sequence[OpTrace]) -> list[str]:
    """Names of the traces in the session."""
    return [f"import-{number:03d}" for number, _ in enumerate(traces, 1)]


def _of_ranks(traces: Sequence[OpTrace]) -> list[Diagnostic]:
    """What is said of the ranks of one job among the files: those that are missing, and files that are not compared."""
    from stepscope.derive.cluster import rank_files
    from stepscope.tables.findings import Diagnostic

    found = rank_files.of((name, trace.source) for name, trace in zip(_names(traces), traces, strict=True))
    missing = [Diagnostic(code="DX191", text=found.missing_text)] if found.missing_text else []
    return [*missing, *(Diagnostic(code="DX198", text=text) for text in found.told)]


def _write(
    session: Path, traces: Sequence[OpTrace], profiles: Sequence[StackProfile], ranks: Sequence[Diagnostic]
) -> None:
    import msgspec

    from stepscope.model.session.session import HostInfo, Manifest
    from stepscope.store import optrace, stacks
    from stepscope.tables import layout

    clocks = [trace.source.started_unix_ns for trace in traces if trace.source.started_unix_ns]
    started = min(clocks, default=0)
    ended, whole = 0, False
    try:
        for name, trace in zip(_names(traces), traces, strict=True):
            offset = trace.source.started_unix_ns - started if trace.source.started_unix_ns else 0
            try:
                optrace.write(session, name, trace.shifted(offset))
            except FormatError as error:  # stats are first read here
                text = f"{trace.source.name}: damaged: {error}; expected a complete file from the profiler"
                raise FormatError(text) from error
            ended = max(ended, offset + trace.source.dur_ns)
        for number, profile in enumerate(profiles, 1):
            stacks.write(session, f"import-{number:03d}", profile)
            ended = max([ended, *profile.samples.at_ns[-1:].tolist()])
        hosts = dict.fromkeys(host for trace in traces for host in trace.source.hostnames)
        manifest = Manifest(
            stepscope_version=__version__,
            id=secrets.token_hex(8),
            name=session.name.removesuffix(layout.SUFFIX),
            started_unix_ns=started,
            ended_ns=ended,
            mode="import",
            state="finished",
            host=HostInfo(name=", ".join(hosts)),
            diagnostics=tuple(ranks),
        )
        layout.write_atomic(session / layout.MANIFEST, msgspec.json.encode(manifest))
        whole = True
    finally:
        if not whole:
            shutil.rmtree(session, ignore_errors=True)


def _stacks(profiles: Sequence[StackProfile]) -> tuple[StackFile, ...]:
    from stepscope.report.sections import op_trace_summaries

    return tuple(map(op_trace_summaries.stack_file, profiles))


def _summaries(traces: Sequence[OpTrace]) -> list[OpTraceSummary]:
    from stepscope.report.sections import op_trace_summaries

    return [op_trace_summaries.summary(name, trace) for name, trace in zip(_names(traces), traces, strict=True)]
