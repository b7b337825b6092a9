"""The numbers of one session that are compared with those of another."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stepscope.app import bundle
from stepscope.app.report import analyze
from stepscope.causes.system.gpu import live_peaks
from stepscope.derive.python import stack_samples
from stepscope.derive.view import SessionView
from stepscope.model.report.components import COMPONENTS
from stepscope.model.report.place import Place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.model.records import F64
    from stepscope.model.report.finding import Report
    from stepscope.model.report.op_table import MakerTime
    from stepscope.model.session.session import Manifest, Session


class Line(NamedTuple):
    """A line of code as both sides know it: an edit above it moves its number, so its text says which it is."""

    file: str
    """File as ``file_key`` names it."""
    function: str
    text: str
    """Text of the line; its number where the session holds no source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNumber:
    """A number of one line, and where the line stands in this session."""

    value: float
    place: Place | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of one session."""

    path: Path
    manifest: Manifest
    report: Report
    durations: F64 | None = None
    """Durations of the steady steps, ns; None if it has none."""
    parts: Mapping[str, F64] = field(default_factory=dict)
    """Components of the anatomy of each steady step, ns."""
    samples_per_step: float | None = None
    memory_bytes: Mapping[str, float] = field(default_factory=dict)
    """Peaks of memory by name."""
    ops: Mapping[Line, LineNumber] | None = None
    """Op time of each line, ns a step; None if the session holds no op trace of steps."""
    python: Mapping[Line, LineNumber] = field(default_factory=dict)
    """Share of the stack samples of the steady steps by line of user code."""
    samples: int = 0
    """Number of stack samples."""
    has_stacks: bool = False
    """Flag: it has stacks that ``flame diff`` compares."""

    @property
    def title(self) -> str:
        """Description of a step; "" without steps."""
        times = self.report.session.step_times
        return times.source if times is not None else ""

    @property
    def step_ns(self) -> float | None:
        """Mean time of a steady step of all makers of steps together; None without steps."""
        rate = self.report.session.throughput.steps_per_s
        return 1e9 / rate if rate and self.durations is not None else None

    @property
    def sample_ns(self) -> float | None:
        """Mean time of a sample; None if samples are unknown."""
        rate = self.report.session.throughput.samples_per_s
        return 1e9 / rate if rate else None


def of_path(path: Path) -> Numbers:
    """The numbers of a stored session. Its report is made again: both sides by the same detectors.

    Raises:
        SessionError: the session is missing or damaged.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    return of_view(path, SessionView(bundle.open_session(path)))


def of_view(path: Path, view: SessionView) -> Numbers:
    """The numbers of a session in memory; ``path`` is its location."""
    report = analyze.report_of_view(view)
    session, steps = view.session, view.steps
    anatomy = view.anatomy
    shares, samples = _python(view)
    return Numbers(
        path=path,
        manifest=session.manifest,
        report=report,
        durations=steps.durations[steps.steady].astype(np.float64) if steps is not None else None,
        parts={name: anatomy.per_step_of(name) for name in COMPONENTS} if anatomy is not None else {},
        samples_per_step=_samples_per_step(view),
        memory_bytes=_memory(session),
        ops=_ops(report, session),
        python=shares,
        samples=samples,
        has_stacks=bool(session.stacks) or samples > 0,
    )


def _samples_per_step(view: SessionView) -> float | None:
    steps = view.steps
    held = steps.samples[steps.steady] if steps is not None else np.zeros(0)
    return float(held.mean()) if len(held) and (held > 0).all() else None


def _memory(session: Session) -> dict[str, float]:
    """Peak of the memory of all processes together, and of each device."""
    found = {}
    times, at = np.unique(session.process.at_ns, return_inverse=True)
    if len(times):
        together = np.bincount(at.reshape(-1), weights=session.process.rss_bytes)
        found["memory_peak"] = float(together.max())
    live = [max(sizes) for _, sizes in live_peaks(session).values() if sizes]
    return {**found, "device_memory_peak": float(sum(live))} if live else found


def _ops(report: Report, session: Session) -> dict[Line, LineNumber] | None:
    table = report.ops
    if table is None or not table.steps:
        return None
    found: dict[Line, LineNumber] = {}
    for maker in table.makers:
        key, place = _maker(maker, session)
        value = maker.ns / table.steps + (found[key].value if key in found else 0.0)
        name = ", ".join(filter(None, (maker.layer, *maker.types)))
        found[key] = LineNumber(value=value, place=place, name=name)
    return found


def _maker(maker: MakerTime, session: Session) -> tuple[Line, Place | None]:
    if not maker.file:
        return Line("", maker.layer, ""), None
    place = Place(file=maker.file, line=maker.line, function=maker.function)
    path = os.path.join(session.manifest.cwd, maker.file)  # noqa: PTH118 - a name of another machine
    return _line(session, path, maker.line, maker.function), place


def _python(view: SessionView) -> tuple[dict[Line, LineNumber], int]:
    """Shares of the sampled time by line, and the number of samples."""
    samples = [sample for sample in view.samples if sample.culprit is not None and not sample.in_agent]
    whole = stack_samples.weight_of(view.samples)
    weights: dict[Line, int] = defaultdict(int)
    places: dict[Line, Place] = {}
    for sample in samples:
        spot = sample.culprit
        if spot is not None:
            key = _line(view.session, spot.file, spot.line, spot.function)
            weights[key] += sample.weight_ns
            places.setdefault(key, view.place(spot.file, spot.line, function=spot.function))
    found = {
        key: LineNumber(value=weight / whole, place=places[key], name=key.text)
        for key, weight in weights.items()
        if whole
    }
    return found, len(view.samples)


def file_key(manifest: Manifest, path: str) -> str:
    """Name by which both sides know a file: without its folder, which differs between checkouts; "" for the program
    itself, so that A.py and B.py can be compared.
    """
    name = path.rpartition("/")[2]
    program = next((word for word in manifest.command if word.endswith(".py")), "")
    return "" if program and name == program.rpartition("/")[2] else name


def _line(session: Session, path: str, line: int, function: str) -> Line:
    lines = session.sources.get(path, "").splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return Line(file_key(session.manifest, path), function, text or f"line {line}")
