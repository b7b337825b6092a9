"""One recording: moves data from the run directory to the session; coordinates drain, samplers and manifest."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

from stepscope.collector.always_on.session_quota import SessionLimits, SessionQuota
from stepscope.collector.captures.call_captures import CallCaptures
from stepscope.collector.captures.memory_captures import MemoryCaptures
from stepscope.collector.captures.native_captures import NativeCaptures
from stepscope.collector.captures.op_captures import OpCaptures
from stepscope.collector.captures.python_captures import PythonCaptures
from stepscope.collector.recording import signals, sources, waking
from stepscope.collector.recording.drain import Drainer
from stepscope.collector.recording.host_info import host_info
from stepscope.collector.recording.job_origin import job_origin
from stepscope.collector.recording.look_schedule import LookSchedule
from stepscope.collector.recording.sampling import Sampling
from stepscope.launcher import apply, give_way, rundir, sidecar_death
from stepscope.launcher.mask import mask_text
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import CELL, CaptureInfo, JobOrigin, WorkerInfo
from stepscope.native import process_stat
from stepscope.native.cgroups import memory_kills
from stepscope.native.cgroups.kill_watch import KillWatch
from stepscope.native.memory import allocator
from stepscope.store import newest
from stepscope.store.manifests import read_manifest
from stepscope.store.segments import MAX_MERGED_BYTES
from stepscope.store.writer import SessionWriter
from stepscope.tables.findings import Diagnostic
from stepscope.tables.hang import Hang
from stepscope.wire import off, trouble

_SAMPLE_NS = 1_000_000_000
_DRAIN_NS = 2_000_000_000
"""Interval of reading rings and logs: they hold minutes of data, and outlive all processes."""
_FLUSH_NS = 5_000_000_000
_FLUSH_LATER_NS = 30_000_000_000
"""Interval of later writes: data that are not durable are still in the ring and the log, which outlive the sidecar; a
flush takes 10 to 20 ms of CPU time."""
_SOON_NS = 6_000_000_000
_FLUSH_RECORDS = 200_000
_TRIM_NS = 60_000_000_000
_RECOVERED = "recovered"

Captures = OpCaptures | NativeCaptures | CallCaptures | PythonCaptures
"""Those of one kind."""


class Recording:
    """Moves a run's data into its session."""

    def __init__(self, run: Path, session: Path, *, starts: int = 1, limits: SessionLimits | None = None) -> None:
        """Continue the session that the launcher has begun, within ``limits`` if there are any.

        Raises:
            SessionError: there is no manifest to continue from.
        """
        self.run = run
        self.session = session
        self.manifest = read_manifest(session)
        self.writer = SessionWriter(session, max_merged_bytes=limits.merged_bytes if limits else MAX_MERGED_BYTES)
        self.quota = SessionQuota(self.writer, limits) if limits else None
        self.job = rundir.read_job(run)
        self._origin_ns = self.manifest.origin_monotonic_ns
        self._earlier = {info.key: info for info in self.manifest.workers}
        self._diagnostics = {(d.code, d.text): d for d in self.manifest.diagnostics}
        self.drainer = Drainer(run, self.writer, self._origin_ns)
        self.sampling = Sampling(self.writer, self._origin_ns)
        self.captures = OpCaptures(self)
        self.native = NativeCaptures(self)
        self.system_calls = CallCaptures(self)
        self.memory = MemoryCaptures(self)
        self.python = PythonCaptures(self)
        self._look_schedule = LookSchedule(self, time.monotonic_ns())
        self._waking = waking.Waking(run)
        self._sources = sources.SourceCopies(self.writer, self.job.replaced if self.job is not None else {})
        self._next_drain_ns = 0
        self._next_sample_ns = 0
        self._next_flush_ns = time.monotonic_ns() + _FLUSH_NS
        self._next_trim_ns = time.monotonic_ns() + _TRIM_NS
        self._stopped_looks = 0
        self._known: dict[str, MemberInfo | None] = {}
        self.disk_problem = ""
        """Reason why nothing can currently be stored."""
        self._note_starts(starts)
        host = msgspec.structs.replace(host_info(), gpus=self.sampling.gpu.count, gpu_problem=self.sampling.gpu.problem)
        known = self.manifest.memory_kill_counters if self.manifest.host.boot_id in ("", host.boot_id) else {}
        kills = known or memory_kills.counters()
        known_origin = self.manifest.origin != JobOrigin()
        origin = self.manifest.origin if known_origin else job_origin(self.manifest.cwd, self.manifest.job_pid)
        self.manifest = msgspec.structs.replace(
            self.manifest, sidecar_starts=starts, host=host, origin=origin, memory_kill_counters=kills
        )
        self._kills = KillWatch(kills, self._origin_ns)
        try:
            self._write_manifest()
        except OSError as error:  # a full disk: there may be room later
            self.disk_problem = error.strerror or str(error)

    def _note_starts(self, starts: int) -> None:
        gave_way = give_way.read(self.run)
        if gave_way is not None:
            self.note(give_way.CODE, gave_way.text(self._origin_ns))
        restarts = starts - 1 - (gave_way is not None)
        if restarts > 0:
            how = sidecar_death.read(self.run)
            self.note(
                "DX101",
                f"the sidecar died{f' ({how})' if how else ''} and was restarted (restarts: {restarts}); nothing that "
                "it had read from the rings was lost, but the host samples have gaps",
            )

    def note(self, code: str, text: str) -> None:
        """Add a diagnostic to the manifest, once."""
        self._diagnostics[code, text] = Diagnostic(code=code, text=text)

    def tick(self, now_ns: int) -> None:
        """Do what is due now; called about once a second, and in between while a burst of samples runs."""
        self.sampling.connections(now_ns, finely=self.captures.busy or self.native.recording)
        if self.sampling.burst(now_ns) and now_ns < self._next_sample_ns:
            return
        if self.job is None:
            self.job = rundir.read_job(self.run)
        if now_ns >= self._next_drain_ns:
            self.drain(now_ns)
        if now_ns >= self._next_sample_ns:
            self._next_sample_ns = max(self._next_sample_ns + _SAMPLE_NS, now_ns + _SAMPLE_NS // 2)
            self.sampling.sample(now_ns, self.job, self.drainer.alive_pids())
            self._kills.look(now_ns, self._pids())
            self._look_schedule.tick(now_ns)
            if self.job is not None and self.job.mode == "run":
                self._waking.look({self.job.pid, *self.sampling.children()[0]})
            self._rescue_launcher()
        if now_ns >= self._next_flush_ns or (self.drainer.pending() >= _FLUSH_RECORDS and not self.disk_problem):
            early = now_ns - self._origin_ns < _SOON_NS
            self._next_flush_ns = now_ns + (_FLUSH_NS if early else _FLUSH_LATER_NS)
            self.flush(now_ns)

    def drain(self, now_ns: int) -> None:
        """Take the processes' data so far."""
        self._next_drain_ns = now_ns + _DRAIN_NS - _SAMPLE_NS // 2
        self.drainer.poll(now_ns)
        known = {worker.key: worker.info.member for worker in self.drainer.workers.values()}
        if known != self._known:  # so that a host that dies in the next second leaves who its processes were
            self._known = known
            self.write_notes()

    def flush(self, now_ns: int, *, final: bool = False) -> None:
        """Make what there is durable; ``final``: also what is not due yet."""
        try:
            self.drainer.flush()
            self.drainer.retire_dead(now_ns)
            self._look_at_allocators()
            self._copy_sources()
            self.sampling.flush(final=final)
            if self.quota is not None and now_ns >= self._next_trim_ns:
                self._next_trim_ns = now_ns + _TRIM_NS
                self.trim(now_ns)
            self._write_manifest()
            self.drainer.remove_retired()
        except OSError as error:
            self.disk_problem = error.strerror or str(error)
        else:
            self.disk_problem = ""

    def add_capture(self, capture: CaptureInfo) -> None:
        """Enter a capture into the manifest, which is written with the next flush."""
        self.manifest = msgspec.structs.replace(self.manifest, captures=(*self.manifest.captures, capture))

    def keep_hang(self, hang: Hang, most: int) -> None:
        """Enter a hang into the manifest, or what has become of it, unless there are ``most`` already."""
        others = tuple(known for known in self.manifest.hangs if known.told_ns != hang.told_ns)
        if len(others) < most:
            self.manifest = msgspec.structs.replace(self.manifest, hangs=(*others, hang))

    def _look_at_allocators(self) -> None:
        """Examine each process once: its dynamic linker decided when it started."""
        for worker in self.drainer.workers.values():
            if worker.info.allocator is None and not worker.closed and worker.alive():
                worker.info = msgspec.structs.replace(worker.info, allocator=allocator.look(worker.pid))
                self._look_at_remedies(worker.pid)

    def _look_at_remedies(self, pid: int) -> None:
        try:
            undone = apply.undone(self.manifest.applied, allocator.environment_of(pid))
        except OSError:
            return
        if undone:
            self.note(
                "DX146",
                f"--apply {' '.join(self.manifest.applied)} has no effect: the job itself sets "
                f"{', '.join(undone)}; change it there",
            )

    def trim(self, now_ns: int) -> None:
        """Keep the session within its limits, and record what was dropped.

        Raises:
            OSError: no space, or no rights.
        """
        if self.quota is None or not self.quota.trim(now_ns - self._origin_ns):
            return
        self._diagnostics = {key: value for key, value in self._diagnostics.items() if key[0] != "DX116"}
        self.note(
            "DX116",
            "the session keeps only the newest part of a long run: to stay within the disk quota, the oldest "
            f"{self.quota.dropped_segments} segments were dropped; statements about steps cover only the rest",
        )

    def _rescue_launcher(self) -> None:
        """Continue the launcher, which stops with the job, if only the job was continued."""
        if self.job is None or process_stat.state(self.job.launcher_pid) not in ("T", "t"):
            self._stopped_looks = 0
            return
        if process_stat.state(self.job.pid) in ("T", "t"):
            self._stopped_looks = 0
            return
        self._stopped_looks += 1
        if self._stopped_looks > 1:
            os.kill(self.job.launcher_pid, signal.SIGCONT)

    def job_ended(self, *, launcher: bool) -> bool:
        """Whether the job has ended; ``launcher``: the launcher is alive and will report it."""
        if launcher:
            return False
        if rundir.read_ended(self.run) is not None:
            return True
        if self.job is not None and process_stat.alive(self.job.pid, self.job.start_ticks):
            return False
        if self.job is not None and self.job.mode == "run":
            return True
        return not any(worker.alive() for worker in self.drainer.workers.values())

    def finish(self, state: str = "finished") -> list[str]:
        """Take the rest, store sources and the manifest; return lines for the user about losses."""
        now_ns = time.monotonic_ns()
        ended = rundir.read_ended(self.run)
        for code, text in self.sampling.close():
            self.note(code, text)
        unseen = self.sampling.packets_problem
        if unseen and any(w.info.member is not None and w.info.member.tasks > 1 for w in self.drainer.workers.values()):
            self.note("DX197", f"which packets were sent again is not visible, only how many: {unseen}")
        if state == "finished":
            self.sampling.sample(now_ns, self.job, self.drainer.alive_pids())
        self.drainer.poll(now_ns, final=True)
        self.drainer.ends.close()
        self.captures.close(now_ns)
        self.native.close(now_ns)
        self.system_calls.close(now_ns)
        self.memory.close(now_ns)
        self.python.close(now_ns)
        outliving = [w.pid for w in self.drainer.workers.values() if not w.closed and w.alive()]
        if self.job is not None and self.job.mode == CELL and self.job.pid in outliving:
            outliving.remove(self.job.pid)  # a kernel outlives its cells
        if outliving:
            self.note("DX113", f"some processes outlived the job and were measured only until its end: {outliving}")
        problems = self._store_rest()
        self._note_losses()
        ended_ns = self._ended_ns(ended, now_ns, state)
        self._kills.look(now_ns, ())
        basis = self._kills.basis(ended_ns + self._origin_ns, self._pids(), counted=state == "finished")
        self.manifest = msgspec.structs.replace(
            self.manifest,
            state=state if not problems else "running",
            ended_ns=ended_ns,
            exit_code=ended.exit_code if ended else None,
            memory_killed=bool(basis),
            memory_killed_by=basis,
            signals=self._signals(),
        )
        try:
            self._write_manifest()
        except OSError as error:
            problems.append(f"{self.session}/manifest.json could not be completed: {error.strerror}")
        for worker in self.drainer.workers.values():
            if not worker.closed:
                worker.close()
        return problems

    def _ended_ns(self, ended: rundir.JobEnd | None, now_ns: int, state: str) -> int:
        """When the job ended; a dead one that is completed later ended when its newest record did, not now."""
        if ended is not None:
            return ended.at_ns - self._origin_ns
        return newest.newest_ns(self.session) if state == _RECOVERED else now_ns - self._origin_ns

    def _copy_sources(self) -> None:
        if self.job is None or self.job.sources:
            self._sources.store(self.drainer.files(), self.manifest.cwd)

    def _store_rest(self) -> list[str]:
        try:
            self.drainer.flush()
            self.sampling.flush(final=True)
            self._copy_sources()
            for text in self._sources.problems():
                self.note("DX111", text)
        except OSError as error:
            waiting = f"{self.drainer.pending()} records are waiting in {self.run}; the newest samples are lost"
            text = f"{self.session}: {error.strerror}: {waiting}"
            self.note("DX105", text)
            return [f"{text}; free some space, then run: stepscope report {self.session}"]
        return []

    def _note_losses(self) -> None:
        for pid, where, text in trouble.read(str(self.run)):
            why = mask_text(text) if where == off.WHERE else f"{where} failed: {mask_text(text)}"
            self.note("DX115", f"process {pid} was not measured: {why}")
        for worker in self.drainer.workers.values():
            if worker.problem:
                self.note("DX114", worker.problem)
        if not self._workers() and self.manifest.mode != "attach":
            self.note(
                "DX108",
                "no Python process of the job imported a framework, or computed for more than some seconds, with "
                "stepscope active, so only processes and the host were measured",
            )

    def recovered(self) -> list[str]:
        """Do the same as ``finish`` for a session whose job and sidecar are long dead."""
        self.note(
            "DX109",
            "the run did not finish: the session was completed from the rings and logs left in the "
            "run directory; samples of processes and host ended when the sidecar died",
        )
        return self.finish(_RECOVERED)

    def write_notes(self) -> None:
        """Store diagnostics that were added after ``finish``; they are lost if there is no space."""
        with contextlib.suppress(OSError):
            self._write_manifest()

    def _signals(self) -> tuple[str, ...]:
        workers = self.drainer.workers.values()
        kinds = {kind for worker in workers for kind in worker.kinds}
        types = {type_ for worker in workers for type_ in worker.types}
        return tuple(sorted({*self.manifest.signals, *signals.present(self.session, kinds, types)}))

    def _pids(self) -> frozenset[int]:
        """All processes of the job that were followed."""
        mine = {worker.pid for worker in self.drainer.workers.values()}
        return frozenset(mine | {self.job.pid} if self.job else mine)

    def _workers(self) -> tuple[WorkerInfo, ...]:
        merged, signals_of = dict(self._earlier), ended_by(self)
        for key, worker in self.drainer.workers.items():
            now = msgspec.structs.replace(worker.summary(), signal=signals_of.get(key))
            merged[key] = _joined(self._earlier.get(key), now)
        return tuple(sorted(merged.values(), key=lambda info: (info.started_ns, info.key)))

    def _write_manifest(self) -> None:
        self.manifest = msgspec.structs.replace(
            self.manifest,
            workers=self._workers(),
            diagnostics=tuple(self._diagnostics.values()),
            job_pid=self.job.pid if self.job else 0,
        )
        self.writer.write_manifest(self.manifest)


def ended_by(recording: Recording) -> dict[str, int]:
    """Signals that ended measured processes, by worker; 0: it ended by itself. The launcher knows that of the job where
    the kernel does not say.
    """
    ended, known = rundir.read_ended(recording.run), dict(recording.drainer.ends.signals)
    if recording.job is not None and ended is not None:
        mine = (worker.key for worker in recording.drainer.workers.values() if worker.pid == recording.job.pid)
        known.update({key: max(0, -ended.exit_code) for key in mine if key not in known})
    return known


def _joined(earlier: WorkerInfo | None, now: WorkerInfo) -> WorkerInfo:
    """The facts that an earlier sidecar and this one have about a process; the log's first lines may no longer be
    read.
    """
    if earlier is None:
        return now
    return msgspec.structs.replace(
        now,
        ppid=now.ppid or earlier.ppid,
        command=now.command or earlier.command,
        frameworks={**earlier.frameworks, **now.frameworks},
        started_ns=now.started_ns or earlier.started_ns,
        ended_ns=now.ended_ns or earlier.ended_ns,
        lost_records=max(now.lost_records, earlier.lost_records),
        damaged_records=max(now.damaged_records, earlier.damaged_records),
        lost_lines=max(now.lost_lines, earlier.lost_lines),
        clean_exit=now.clean_exit or earlier.clean_exit,
        signal=earlier.signal if now.signal is None else now.signal,
        allocator=now.allocator or earlier.allocator,
        member=now.member or earlier.member,
    )
