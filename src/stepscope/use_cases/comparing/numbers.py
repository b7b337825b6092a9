"""The numbers of one session that are compared with those of another."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct, field

from stepscope.causes.system.gpu import live_peaks
from stepscope.derive.python import stack_samples
from stepscope.derive.steps import call_sizes, totals
from stepscope.derive.steps.totals import Total
from stepscope.derive.view import SessionView
from stepscope.diagnosis import analyze
from stepscope.model.report.components import COMPONENTS
from stepscope.report.sections import step_summary
from stepscope.sessions import bundle
from stepscope.tables.place import Place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.model.report.op_table import MakerTime
    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Manifest, Session
    from stepscope.tables.records import F64


class Line(NamedTuple):
    """A line of code as both sides know it: an edit above it moves its number, so its text says which it is."""

    file: str
    """File as ``file_key`` names it."""
    function: str
    text: str
    """Text of the line; its number where the session holds no source."""


class LineNumber(Struct, frozen=True, kw_only=True):
    """A number of one line, and where the line stands in this session."""

    value: float
    place: Place | None
    name: str


class OpCalls(NamedTuple):
    """The calls of one op."""

    calls: int
    ns: int

    @property
    def each_ns(self) -> float:
        """Time of the mean call."""
        return self.ns / self.calls


class SessionNumbers(Struct, frozen=True, kw_only=True):
    """The numbers of one session."""

    path: Path
    manifest: Manifest
    report: Report
    durations: F64 | None = None
    """Durations of the steady steps that were timed, ns; None if it has none."""
    total: Total | None = None
    """All steps, of the one thread that makes them; None if several do, or if there are none."""
    parts: Mapping[str, F64] = field(default_factory=dict)
    """Components of the anatomy of each steady step, ns."""
    samples_per_step: float | None = None
    memory_bytes: Mapping[str, float] = field(default_factory=dict)
    """Peaks of memory by name."""
    ops: Mapping[Line, LineNumber] | None = None
    """Op time of each line, ns a step; None if the session holds no op trace of steps."""
    op_calls: Mapping[str, OpCalls] = field(default_factory=dict)
    """Ops of an imported trace by name."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Parts of the wall time, ns: the phases of the ledger."""
    calls: Mapping[Line, LineNumber] = field(default_factory=dict)
    """Calls of each task, all of them."""
    python: Mapping[Line, LineNumber] = field(default_factory=dict)
    """Share of the stack samples of the steady steps by line of user code."""
    samples: int = 0
    """Number of stack samples."""
    has_stacks: bool = False
    """Flag: it has stacks that ``flame diff`` compares."""

    @property
    def imported(self) -> bool:
        """Whether it is somebody's recording of a part of a job: its length is not the job's."""
        return self.manifest.mode == "import"

    @property
    def title(self) -> str:
        """Description of a step; "" without steps."""
        times, traced = self.report.session.step_times, self.report.traced
        if times is not None:
            return times.source
        return traced.name if traced is not None and self.imported and self.total is not None else ""

    @property
    def steps(self) -> int:
        """Number of steps: of the job, of an imported trace those that it shows."""
        traced = self.report.traced
        return traced.count if self.imported and traced is not None else self.report.session.steps

    @property
    def step_ns(self) -> float | None:
        """Mean time of a step: of all that were timed or counted, else of the steady steps of all makers together; None
        without steps.
        """
        if self.durations is None:
            return None
        if self.total is not None:
            return self.total.mean_ns
        rate = self.report.session.throughput.steps_per_s
        return 1e9 / rate if rate else None

    @property
    def sample_ns(self) -> float | None:
        """Mean time of a sample; None if samples are unknown."""
        if self.total is not None and self.samples_per_step and self.durations is not None:
            return self.total.mean_ns / self.samples_per_step
        rate = self.report.session.throughput.samples_per_s
        return 1e9 / rate if rate else None


def of_path(path: Path) -> SessionNumbers:
    """The numbers of a stored session. Its report is made again: both sides by the same detectors.

    Raises:
        SessionError: the session is missing or damaged.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    return of_view(path, SessionView(bundle.open_session(path)))


def of_view(path: Path, view: SessionView) -> SessionNumbers:
    """The numbers of a session in memory; ``path`` is its location."""
    report = analyze.report_of_view(view)
    session, anatomy = view.session, view.anatomy
    shares, samples = _python(view)
    durations, total = _traced(view, report) if session.manifest.mode == "import" else _steps(view)
    return SessionNumbers(
        path=path,
        manifest=session.manifest,
        report=report,
        durations=durations,
        total=total,
        parts={name: anatomy.per_step_of(name) for name in COMPONENTS} if anatomy is not None else {},
        samples_per_step=_samples_per_step(view),
        memory_bytes=_memory(session),
        ops=_ops(report, session),
        op_calls=_op_calls(report) if session.manifest.mode == "import" else {},
        phases=_phases(report),
        calls=_calls(report, session),
        python=shares,
        samples=samples,
        has_stacks=bool(session.stacks) or samples > 0,
    )


def _steps(view: SessionView) -> tuple[F64 | None, Total | None]:
    """Durations of the timed steady steps, and the total of all if one thread makes them."""
    steps = view.steps
    if steps is None:
        return None, None
    threads = [one for maker in view.get(step_summary.found) if maker.main for one in maker.threads]
    return steps.durations[steps.steady].astype(np.float64), totals.of(steps) if len(threads) == 1 else None


def _traced(view: SessionView, report: Report) -> tuple[F64 | None, Total | None]:
    """The same of the steps of an imported trace, the one that the report is about."""
    traced = report.traced
    about = [one for one in view.traces.views if traced is not None and traced.count and one.name == traced.trace]
    trace = about[0] if about else None
    if trace is None:
        return None, None
    found = trace.periods.dur_ns.astype(np.float64)
    return found, Total(count=len(found), ns=float(found.sum()), made=len(found), timed=len(found))


def _op_calls(report: Report) -> dict[str, OpCalls]:
    found: dict[str, OpCalls] = {}
    for op in report.ops.ops if report.ops is not None else ():
        calls, ns = found.get(op.name, OpCalls(0, 0))
        found[op.name] = OpCalls(calls + op.calls, ns + op.ns)
    return {name: op for name, op in found.items() if op.calls and op.ns}


def _phases(report: Report) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for entry in report.ledger:
        if entry.maker is None:
            found[entry.phase] += entry.ns
    return found


def _calls(report: Report, session: Session) -> dict[Line, LineNumber]:
    """Calls by kind, name and function of the task: its line moves with every edit."""
    found: dict[Line, LineNumber] = {}
    for task in report.tasks:
        place = task.where
        file = file_key(session.manifest, place.file) if place is not None else ""
        key = Line(file, place.function if place is not None else "", f"{task.kind} {task.name}")
        if not task.exact:
            return {}
        value = task.count + (found[key].value if key in found else 0.0)
        found[key] = LineNumber(value=value, place=place, name=task.name)
    return found


def _samples_per_step(view: SessionView) -> float | None:
    steps = view.steps
    held = steps.samples[steps.steady] if steps is not None else np.zeros(0)
    known = steps is not None and len(held) and (held > 0).all() and call_sizes.certain(steps.candidate)
    return float(held.mean()) if known else None


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
    number = f"line {line}" if line else "code without a line"  # such as a jump back to the head of a loop
    return Line(file_key(session.manifest, path), function, text or number)
