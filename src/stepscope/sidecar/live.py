"""What a running job is doing: computed by its sidecar from the last minute, published for ``ps`` and ``top``.

Counts come from each second's records. Steps, anatomy and findings need the whole analysis; it runs on the recent past
in memory, first after some seconds and then as rarely as its own CPU time asks for, to cost a thousandth of one core.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope.causes.host import tasks
from stepscope.collector.captures import reason
from stepscope.derive.steps import call_sizes
from stepscope.derive.steps.steps import names_of
from stepscope.derive.view import SessionView
from stepscope.detectors import base, registry
from stepscope.diagnosis import analyze
from stepscope.model.api.status import LiveFinding, LiveShare, LiveTask, Status
from stepscope.model.log.events import FRAMEWORKS
from stepscope.model.session.session import Peers, Session
from stepscope.sidecar import job_phase, joining, live_makers
from stepscope.sidecar.first_figures import FirstFigures
from stepscope.sidecar.live_sources import Sources
from stepscope.sidecar.triggers.graphs import Graphs
from stepscope.sidecar.triggers.hidden_input import HiddenInput
from stepscope.sidecar.triggers.page_faults import PageFaults
from stepscope.sidecar.triggers.stacks import Stacks
from stepscope.sidecar.triggers.trigger import LastAnalysis, Wish
from stepscope.tables.layout import write_atomic
from stepscope.tables.network_tables import ClockProbeTable, PacketTable, TcpTable
from stepscope.wire.env import STATUS_NAME
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.api.status import LiveCapture, LiveMaker
    from stepscope.model.report.task import Task
    from stepscope.model.session.session import Worker
    from stepscope.sidecar.triggers.trigger import Trigger
    from stepscope.tables.findings import Finding
    from stepscope.tables.hang import Hang

PUBLISH_NS = 5_000_000_000
SOON_NS = 900_000_000
"""The same in the first time of a job, each second."""
YOUNG_NS = 120_000_000_000
FIRST_ANALYSIS_NS = {"enable": 5_000_000_000, "run": 30_000_000_000}
"""By mode. The first analysis takes 0.1 to 0.2 s of CPU: jobs under ``run`` may be short, so it waits until that is
within its share; jobs under ``enable`` run long, and ``ps`` should have figures early."""
MIN_BETWEEN_NS = 10_000_000_000
MAX_BETWEEN_NS = 600_000_000_000
CPU_RATIO = 0.001
"""Share of one core that the analysis may take. Source: decision 0004, level 1: the samplers take the rest of 0.5 %."""
_RATE_NS = 10_000_000_000
"""Rates are over at least this, where there is so much."""
_MIN_RATE_NS = 3_000_000_000
"""Below it, the rate is that of the steps that the last look saw."""
_SIZE_EVERY_NS = 60_000_000_000
_MIN_SIZES = 3
_MAX_TASKS = 20
_REQUEST_KINDS = [tasks.KINDS[kind] for kind in (Kind.LOOP, *kinds_with(Trait.TASK))]
_TASK_KINDS = frozenset(int(kind) for kind in tasks.KINDS)


class Live:
    """Publishes one recording's status."""

    def __init__(self, recording: Recording, now_ns: int) -> None:
        """Begin; nothing is published before the first ``tick``."""
        self._recording = recording
        self._status = Status()
        self._next_publish_ns = now_ns
        self._next_analysis_ns = now_ns + FIRST_ANALYSIS_NS.get(
            recording.manifest.mode, max(FIRST_ANALYSIS_NS.values())
        )
        self._next_size_ns = now_ns
        self._began_ns = now_ns
        self._began_cpu_ns = time.process_time_ns()
        self._listed: list[tuple[LiveTask, list[tuple[str, int, int]], Task]] = []
        self._sizes: deque[tuple[int, int]] = deque(maxlen=61)
        self._same: frozenset[tuple[str, int, int]] = frozenset()
        self._makers: list[tuple[LiveMaker, frozenset[tuple[str, int, int]]]] = []
        self._samples_per_step = 0.0
        self._history: deque[tuple[int, int]] = deque(maxlen=16)
        self._problem = ""
        self._first = FirstFigures(recording)
        self._progress = job_phase.Progress(recording)
        self._sources = Sources()
        self._graphs = Graphs(recording, now_ns)
        hidden = HiddenInput(recording, now_ns)
        self._triggers: tuple[Trigger, ...] = (self._graphs, hidden, PageFaults(recording), Stacks(recording, now_ns))
        self.analysed_ns = 0
        """CLOCK_MONOTONIC at the last analysis; 0: there was none."""
        self.steps: Steps | None = None
        """Of the last analysis."""
        self.found: tuple[Finding, ...] = ()
        """Findings of the last analysis."""
        self._undecided: tuple[Wish, ...] = ()

    @property
    def wanted(self) -> tuple[Wish, ...]:
        """Captures that the last analysis and the triggers ask for."""
        return (*self._undecided, *self._triggered)

    @property
    def _triggered(self) -> tuple[Wish, ...]:
        return tuple(wish for trigger in self._triggers for wish in trigger.wanted)

    @property
    def events_per_step(self) -> float | None:
        """That a trace of one step would have, as far as the graphs of steps have been looked at."""
        return self._graphs.events

    def tick(self, now_ns: int, state: str) -> None:
        """What is due at this moment."""
        fired = [self._fires(trigger, now_ns) for trigger in self._triggers]
        if self._recording.sampling.spare:  # analysed as soon as there is room again
            fired, self._next_analysis_ns = [], max(self._next_analysis_ns, now_ns + 1)
        young = now_ns - self._began_ns < YOUNG_NS
        if now_ns >= self._next_analysis_ns or any(fired):
            self.refresh(now_ns)
        elif young and not self.analysed_ns:
            self._recording.drain(now_ns)
            if self._first.due(now_ns):
                with self._wall("the first look at the steps"):
                    self._show(SessionView(self.session()))
        if now_ns >= self._next_publish_ns or state != "running":
            self._next_publish_ns = now_ns + (SOON_NS if young else PUBLISH_NS)
            self._publish(now_ns, state)

    def _fires(self, trigger: Trigger, now_ns: int) -> bool:
        """Whether a trigger wants an analysis now."""
        with self._wall(trigger.what):
            return trigger.tick(now_ns, LastAnalysis(at_ns=self.analysed_ns, steps=self.steps is not None))
        return False

    def refresh(self, now_ns: int, max_age_ns: int = 0) -> None:
        """Analyse now, unless the last analysis is not older than ``max_age_ns``."""
        if self.analysed_ns and now_ns - self.analysed_ns < max_age_ns:
            return
        used = time.process_time_ns()
        self._recording.drain(now_ns)
        with self._wall("the live analysis"):
            self._look(SessionView(self.session()))
        used = time.process_time_ns() - used + self._graphs.take_cpu_ns()
        pause = min(MAX_BETWEEN_NS, max(MIN_BETWEEN_NS, int(used / CPU_RATIO)))
        self.analysed_ns = now_ns
        self._next_analysis_ns, self._next_publish_ns = now_ns + pause, now_ns
        self._status = msgspec.structs.replace(self._status, analysis_every_s=pause / 1e9)

    def show_captures(self, captures: tuple[LiveCapture, ...], ratio: float) -> None:
        """Publish what becomes of captures, at the next tick."""
        if captures != self._status.captures:
            self._status = msgspec.structs.replace(self._status, captures=captures, captures_ratio=ratio)
            self._next_publish_ns = 0

    def show_hang(self, hang: Hang | None) -> None:
        """Publish at the next tick that the job hangs, or no longer does."""
        since_s = (self._recording.manifest.started_unix_ns + hang.since_ns) / 1e9 if hang else 0.0
        self._status = msgspec.structs.replace(self._status, hang=hang, hang_since_unix_s=since_s)
        self._next_publish_ns = 0

    def status_anatomy(self) -> tuple[LiveShare, ...]:
        """The split of the step, of the last analysis."""
        return self._status.anatomy

    def calls_of_steps(self) -> frozenset[tuple[str, int, int]]:
        """(worker, kind, name) of every call that counts as a step."""
        return self._same

    def calls_of_tasks(self) -> list[tuple[LiveTask, list[tuple[str, int, int]]]]:
        """The tasks of the last analysis, each with the (worker, kind, name) of its calls, where they are known."""
        return [(live, calls) for live, calls, _ in self._listed]

    def _publish(self, now_ns: int, state: str) -> None:
        recording = self._recording
        job = recording.job
        counts = self._count(self._same)
        self._history.append((now_ns, counts))
        rate = self._rate()
        workers = recording.drainer.workers
        if now_ns >= self._next_size_ns:
            self._next_size_ns = now_ns + _SIZE_EVERY_NS
            self._sizes.append((now_ns, _bytes_of(str(recording.session))))
        own_ns = time.process_time_ns()
        unended = recording.drainer.ends.unended.values()
        status = msgspec.structs.replace(
            self._status,
            pid=job.pid if job else 0,
            start_ticks=job.start_ticks if job else 0,
            uid=os.getuid(),
            mode=recording.manifest.mode,
            command=recording.manifest.command,
            cwd=recording.manifest.cwd,
            framework=_framework([w.info.frameworks for w in workers.values()]),
            session=str(recording.session),
            state=state,
            phase=job_phase.phase(recording, self._makers[0][0].kind if self._makers else ""),
            progress=self._progress.look(now_ns, self._same, self._samples_per_step, rate),
            started_unix_s=recording.manifest.started_unix_ns / 1e9,
            updated_unix_s=time.time(),
            processes=sum(not worker.closed for worker in workers.values()),
            steps=counts,
            steps_per_s=rate,
            samples_per_s=rate * self._samples_per_step if rate is not None and self._samples_per_step else None,
            records=sum(worker.recent.records for worker in workers.values()),
            sidecar_pid=os.getpid(),
            sidecar_core_ratio=(own_ns - self._began_cpu_ns) / max(1, now_ns - self._began_ns),
            tasks=self._tasks(),
            makers=live_makers.counted(self._makers, self._count),
            session_bytes=self._sizes[-1][1] if self._sizes else 0,
            bytes_per_hour=self._growth(),
            gpus=recording.sampling.gpu.now,
            problems=tuple(filter(None, (recording.disk_problem, self._problem, *unended))),
        )
        try:
            write_atomic(recording.run / STATUS_NAME, msgspec.json.encode(joining.shown(recording, status)))
        except OSError as error:
            self._problem = f"the status could not be written: {error.strerror}"

    def _growth(self) -> float | None:
        """Bytes an hour, over the last hour at most; None in the first minutes."""
        if len(self._sizes) < _MIN_SIZES:
            return None
        (first_ns, first), (last_ns, last) = self._sizes[0], self._sizes[-1]
        return max(0.0, (last - first) / (last_ns - first_ns) * 3.6e12)

    def _rate(self) -> float | None:
        if not self._makers:
            return None
        now_ns, count = self._history[-1]
        past = next((h for h in reversed(self._history) if now_ns - h[0] >= _RATE_NS), self._history[0])
        elapsed = now_ns - past[0]
        if elapsed < _MIN_RATE_NS:
            return self._makers[0][0].rate
        return max(0, count - past[1]) * 1e9 / elapsed

    @contextmanager
    def _wall(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the recording goes on; the status says what failed
            self._problem = f"{what} failed: {type(error).__name__}: {error}"

    def _show(self, view: SessionView) -> None:
        """The steps, their split and the tasks, without findings."""
        self._makers = live_makers.of(view)
        same = self._makers[0][1] if self._makers else frozenset()
        if same != self._same:  # another call counts as the step now: its count says nothing about the last one's
            self._same = same
            self._history.clear()
        self._list_tasks(view)
        if view.steps is None:  # what was said of earlier steps does not hold any more
            self._status = msgspec.structs.replace(self._status, step_title="", anatomy=())
            return
        steady = view.steps.steady
        known = steady.any() and call_sizes.certain(view.steps.candidate)
        self._samples_per_step = float(view.steps.samples[steady].mean()) if known else 0.0
        anatomy = sorted(analyze.components(view), key=lambda c: -c.ratio)
        shares = tuple(LiveShare(component=c.component, ratio=c.ratio) for c in anatomy)
        self._status = msgspec.structs.replace(self._status, step_title=view.steps.title, anatomy=shares)

    def _look(self, view: SessionView) -> None:
        self.steps = view.steps
        self._show(view)
        self._status = msgspec.structs.replace(self._status, analysed_unix_s=time.time())
        if view.steps is None:
            self._undecided, self.found = (), ()
            self._status = msgspec.structs.replace(self._status, top=None, findings=0)
            return
        self.found, checked, _ = base.run(registry.ALL, view)
        significant = [one for one in self.found if one.severity != "info"]
        self._undecided = tuple(Wish(by=reason.of(c.detector), kind=c.capture) for c in checked if c.capture)
        self._status = msgspec.structs.replace(
            self._status,
            top=_top(significant),
            findings=len(significant),
            undecided=(
                *(c.detector for c in checked if c.outcome in {"undecided", "failed"}),
                *(wish.by.word for wish in self._triggered if wish.by.detector),
            ),
        )

    def _list_tasks(self, view: SessionView) -> None:
        """The tasks of the last minute, each with the kinds and names that its calls go by."""
        calls: dict[tuple[int, str, str], list[tuple[str, int, int]]] = {}
        for worker in view.workers:
            names = names_of(worker)
            for kind, number in self._recording.drainer.workers[worker.info.key].recent.counts:
                if kind in _TASK_KINDS:
                    name = names.get(number)
                    key = (worker.info.pid, tasks.KINDS[Kind(kind)], (name.text or name.role) if name else "step")
                    calls.setdefault(key, []).append((worker.info.key, kind, number))
        found = tasks.build(view)[:_MAX_TASKS]
        alike = Counter((task.pid, task.kind, task.name) for task in found)
        self._listed = []
        for task in found:
            kinds = _REQUEST_KINDS if task.kind == "request" else (task.kind,)
            mine = [calls.get((task.pid, kind, task.name), []) for kind in kinds]
            alone = alike[task.pid, task.kind, task.name] == 1
            live = LiveTask(
                kind=task.kind,
                name=task.name,
                pid=task.pid,
                count=task.count,
                per_s=task.rate_per_s,
                mean_ns=task.mean_ns,
                p95_ns=task.p95_ns,
            )
            self._listed.append((live, max(mine, key=len) if alone else [], task))

    def _tasks(self) -> tuple[LiveTask, ...]:
        """The listed tasks with their counts of this moment."""
        return tuple(_grown(live, task, self._count(calls)) for live, calls, task in self._listed)

    def _count(self, calls: Iterable[tuple[str, int, int]]) -> int:
        workers = self._recording.drainer.workers
        return sum(workers[key].recent.counts.get((kind, name), 0) for key, kind, name in calls if key in workers)

    def session(self) -> Session:
        """The recent past as a session."""
        recording = self._recording
        workers: list[Worker] = [w.recent.worker(w.info) for w in recording.drainer.workers.values() if not w.closed]
        seen = {name: type(parts[-1]).concat(parts) for name, parts in recording.sampling.tables().items()}
        probes, tcp, packets = (seen.pop(name, None) for name in ("clock_probes", "tcp", "packets"))
        return Session(
            manifest=recording.manifest,
            workers=workers,
            rival_names=recording.sampling.rival_names(),
            resource_names=recording.sampling.resource_names(),
            sources=self._sources,
            peers=Peers(
                clock_probes=probes if isinstance(probes, ClockProbeTable) else ClockProbeTable.empty(),
                tcp=tcp if isinstance(tcp, TcpTable) else TcpTable.empty(),
                packets=packets if isinstance(packets, PacketTable) else PacketTable.empty(),
            ),
            **seen,  # type: ignore[arg-type]
        )


def _grown(live: LiveTask, task: Task, count: int) -> LiveTask:
    """A task with its count of this moment; calls that the analysis has not seen are as the usual ones that it saw."""
    more = max(0, count - task.count)
    known = task.count + more
    return msgspec.structs.replace(live, count=known, mean_ns=(task.total_ns + more * task.usual_ns) // max(1, known))


def _top(findings: Sequence[Finding]) -> LiveFinding | None:
    if not findings:
        return None
    first = findings[0]
    place = first.where[0] if first.where else None
    return LiveFinding(
        code=first.code,
        title=first.title,
        severity=first.severity,
        cost_ratio=first.cost.ratio,
        place=f"{place.file}:{place.line} {place.function}".strip() if place else "",
    )


def _framework(seen: list[dict[str, str]]) -> str:
    """The frameworks of a job's processes in one word each."""
    found: dict[str, str] = {}
    for frameworks in seen:
        for name in FRAMEWORKS:
            if name in frameworks:
                found.setdefault(name, frameworks[name])
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _bytes_of(folder: str) -> int:
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(where, name).lstat().st_size
            except OSError:
                continue
    return total
