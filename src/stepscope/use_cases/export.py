"""The use case ``export``: a session, or a range of it, as a file of another tool. Losses: docs/exporting.md."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from msgspec import Struct

from stepscope.tables.errors import UsageError, install_command
from stepscope.tables.layout import SUFFIX, ZIP_SUFFIX
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView

Form = Literal["perfetto", "speedscope", "pprof", "folded", "parquet", "otlp"]
ENDINGS: dict[Form, str] = {
    "perfetto": ".pftrace",
    "speedscope": ".speedscope.json",
    "pprof": ".pb.gz",
    "folded": ".folded",
    "parquet": "-parquet",
    "otlp": ".otlp.pb",
}
"""End of the file's name, if none is given; of a folder for Parquet."""
STACKS = frozenset({"speedscope", "pprof", "folded"})
"""Formats of sampled stacks."""
RANGE_WORDS = "all, steady, slowest, step:N, or FROM-TO in seconds as 2.5-4"
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s?-(\d{1,9}(?:\.\d{1,9})?)s?")
_NS = 1_000_000_000


class ExportOptions(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    session: Path
    form: Form
    output: Path | None = None
    """None: named after the session, in the current folder."""
    range: str = ""
    """``RANGE_WORDS``; "": all, and for stacks the steady steps if there are any."""
    event: str = ""
    """Event of sampled stacks."""


class ExportedFile(Struct, frozen=True, kw_only=True):
    """What was written."""

    path: Path
    said: str
    """Its size and contents."""
    left_out: tuple[str, ...] = ()


def export(options: ExportOptions) -> ExportedFile:
    """Write the file, whole or not at all; one that is there is replaced.

    Raises:
        UsageError: the range, the event or the file's place cannot be.
        SessionError: the session is missing or damaged.
    """
    check_range(options.range)
    if options.event and options.form not in STACKS:
        raise UsageError(f"--event chooses sampled stacks; expected --to {', '.join(sorted(STACKS))}")
    path = options.output or Path(_stem(options.session) + ENDINGS[options.form])
    if options.form == "parquet" and path.exists():
        raise UsageError(f"{path} already exists; expected a new folder: choose another with --output")
    if path.is_dir() or not path.parent.is_dir():
        got = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise UsageError(f"{path} cannot be written: {got}; expected the name of a file")
    write = {"perfetto": _perfetto, "parquet": _parquet, "otlp": _otlp}.get(options.form, _stacks)
    try:
        return write(options, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def check_range(text: str) -> None:
    """Refuse a range that cannot be, before anything is read.

    Raises:
        UsageError: it is none of ``RANGE_WORDS``.
    """
    seconds = _SECONDS.fullmatch(text)
    if seconds is None and text not in {"", "all", "steady", "slowest"} and not re.fullmatch(r"step:\d{1,12}", text):
        raise UsageError(f"--range {text}: expected {RANGE_WORDS}")
    if seconds is not None and float(seconds[1]) >= float(seconds[2]):
        raise UsageError(f"--range {text}: it ends before it begins; expected FROM-TO in seconds as 2.5-4")


def _stem(session: Path) -> str:
    name = session.resolve().name
    return name.removesuffix(ZIP_SUFFIX).removesuffix(SUFFIX) or "session"


def _range(view: SessionView, text: str) -> tuple[int, int] | None:
    """A range in nanoseconds since session start; None: all of it."""
    if text in {"", "all"}:
        return None
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        return round(float(seconds[1]) * _NS), round(float(seconds[2]) * _NS)
    if text == "steady":
        if view.steps is None or not view.steps.steady_count:
            raise UsageError("--range steady: the session has no steady steps; expected all, or FROM-TO in seconds")
        return view.steps.span
    from stepscope.report.sections import step_detail

    step = step_detail.of_session(view, text.removeprefix("step:"))[0]
    return step.start_ns, step.start_ns + step.dur_ns


def _perfetto(options: ExportOptions, path: Path) -> ExportedFile:
    from stepscope.derive.view import SessionView
    from stepscope.exporters import perfetto
    from stepscope.sessions.bundle import open_session

    view = SessionView(open_session(options.session))
    within = _range(view, options.range)
    with _replacing(path) as stream:
        made = perfetto.write(view, stream, within)
        if not made.spans:
            raise UsageError(f"{options.session}: no span lies in --range {options.range or 'all'}")
    counted = ((made.tracks, "tracks"), (made.spans, "spans"), (made.counters, "counters"), (made.flows, "flows"))
    held = ", ".join(f"{count:,} {word if count != 1 else word[:-1]}" for count, word in counted)
    return ExportedFile(path=path, said=f"{_size(path)} · {held}", left_out=tuple(made.left_out))


def _parquet(options: ExportOptions, path: Path) -> ExportedFile:
    from stepscope.derive.view import SessionView
    from stepscope.diagnosis.analyze import report_of
    from stepscope.exporters import parquet_tables
    from stepscope.sessions.bundle import open_session

    session = open_session(options.session)
    view = SessionView(session)
    within = _range(view, options.range)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir()
        rows = parquet_tables.write(view, temporary, within, report_of(session).findings)
        size = sum(file.stat().st_size for file in temporary.iterdir())
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    held = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    return ExportedFile(path=path, said=f"{format_bytes(size)} · {held}")


def _otlp(options: ExportOptions, path: Path) -> ExportedFile:
    from importlib.util import find_spec

    if options.range not in {"", "all"}:
        raise UsageError(f"--range {options.range}: the figures are those of the whole session; expected all")
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        raise UsageError(f"opentelemetry-proto is not installed; run: {install_command('otlp')}")
    import numpy as np

    from stepscope.derive.view import SessionView
    from stepscope.diagnosis.analyze import report_of
    from stepscope.exporters import otlp_metrics
    from stepscope.report import words
    from stepscope.sessions.bundle import open_session

    session = open_session(options.session)
    report, steps = report_of(session), SessionView(session).steps
    durations = steps.durations[steps.steady] if steps is not None else np.empty(0, np.int64)
    wholes = [words.whole_of(finding) for finding in report.findings]
    with _replacing(path) as stream:
        stream.write(otlp_metrics.encode(report, session.manifest, durations, wholes))
    left_out = ("spans, ops, stacks and resources over time: --to perfetto, parquet",)
    return ExportedFile(path=path, said=f"{_size(path)} · metrics of {report.session.id}", left_out=left_out)


def _stacks(options: ExportOptions, path: Path) -> ExportedFile:
    from stepscope.derive.view import SessionView
    from stepscope.sessions.bundle import open_session
    from stepscope.use_cases import flame

    session = open_session(options.session)
    word = options.range
    if word in {"", "all", "steady"}:
        window: flame.Window | None = "steady" if word == "steady" else "all" if word else None
        chosen = flame.of_session(session, options.session, options.event, window)
    else:
        within = _range(SessionView(session), word) or (0, 0)
        chosen = flame.of_range(session, options.session, options.event, within)
    profile = chosen.graph.profile
    if options.form == "pprof":
        from stepscope.exporters import pprof_labels
        from stepscope.readers.stacks import pprof

        phases = pprof_labels.phases(profile, SessionView(session))
        data = pprof.write(pprof_labels.qualified(profile), phases)
    else:
        data = flame.encode(chosen.graph, Path(ENDINGS[options.form]))
    with _replacing(path) as stream:
        stream.write(data)
    said = f"{_size(path)} · {len(profile.samples):,} samples of {profile.event}"
    return ExportedFile(path=path, said=f"{said} · {chosen.graph.window}" if chosen.graph.window else said)


def _size(path: Path) -> str:
    return format_bytes(path.stat().st_size)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose file takes the place of ``path`` once it is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
