"""The samplers of one recording, run together; their rows become tables of the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stepscope.collector.recording.recent_tables import RecentNames, RecentTables
from stepscope.collector.samplers.base import ProcFile, Rows, Targets
from stepscope.collector.samplers.bursts import STEP_NS, BurstSampler
from stepscope.collector.samplers.clocks import ClockSampler
from stepscope.collector.samplers.cores import CoreSampler
from stepscope.collector.samplers.disks import DiskSampler
from stepscope.collector.samplers.gpu import GpuSampler
from stepscope.collector.samplers.host import HostSampler
from stepscope.collector.samplers.links import LinkSampler
from stepscope.collector.samplers.memory import MemorySampler
from stepscope.collector.samplers.names import NameNumbers
from stepscope.collector.samplers.packets import PacketSampler
from stepscope.collector.samplers.process import ProcessSampler
from stepscope.collector.samplers.rivals import RivalSampler
from stepscope.collector.samplers.sockets import MAX_NAMES, SocketSampler
from stepscope.collector.samplers.threads import ThreadSampler
from stepscope.tables.records import ProcessTable

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.other_hosts.desk import TaskDesk
    from stepscope.launcher.rundir import JobFacts
    from stepscope.store.writer import SessionWriter
    from stepscope.tables.records import Table

_RESOURCES_EVERY_NS = 60_000_000_000
"""Interval of storing tables of resources: a segment costs 3 ms of CPU time, and there are six of them."""

FINE_NS = 100_000_000
"""Interval of looks at connections while a capture records: 0.6 ms of CPU time each for 40 connections."""


class Sampling:
    """All samplers of a recording."""

    def __init__(self, writer: SessionWriter, origin_ns: int) -> None:
        """Store through ``writer``; times count from ``origin_ns``."""
        self._writer = writer
        self._recent = RecentTables()
        self._threads = ThreadSampler(origin_ns)
        self._process = ProcessSampler(origin_ns)
        self._host = HostSampler(origin_ns, writer.last_cpu_totals())
        self._rivals = RivalSampler(origin_ns, writer.rival_names())
        self._names = NameNumbers(writer.resource_names())
        self._sockets = SocketSampler(origin_ns, self._names)
        self._cores = CoreSampler(origin_ns)
        self._links = LinkSampler(origin_ns, self._names)
        self._disks = DiskSampler(origin_ns, self._names)
        self._memory = MemorySampler(origin_ns)
        self.gpu = GpuSampler(origin_ns, self._names)
        self._bursts = BurstSampler(origin_ns)
        self._clocks = ClockSampler(origin_ns, self._names)
        self._packets = PacketSampler(origin_ns, self._names)
        self._fast: dict[str, Rows[Any]] = {
            "process": self._process.rows,
            "threads": self._threads.rows,
            "host": self._host.rows,
            "rivals": self._rivals.rows,
        }
        self._slow: dict[str, Rows[Any]] = {
            "cores": self._cores.rows,
            "links": self._links.rows,
            "disks": self._disks.rows,
            "memory": self._memory.rows,
            "gpus": self.gpu.rows,
            "bursts": self._bursts.rows,
            "clock_probes": self._clocks.rows,
            "tcp": self._sockets.rows,
            "packets": self._packets.rows,
        }
        self._net = ProcFile("/proc/net/dev")
        self._measured: frozenset[int] = frozenset()
        self._now_ns = self._resources_due_ns = self._looked_ns = 0
        self._pids: frozenset[int] = frozenset()
        self._finely = False
        self.spare = False
        """Whether memory is so short in our control group that nothing is done which can be left out."""

    def pause_s(self, usual_s: float) -> float:
        """Time until the next look: ``usual_s``, or less while a burst or a capture runs."""
        if self._bursts.running:
            return STEP_NS / 1e9
        return min(usual_s, FINE_NS / 1e9) if self._finely else usual_s

    def connections(self, now_ns: int, *, finely: bool) -> None:
        """Look at the job's connections in between, ``finely`` while a capture records, if they carry data."""
        self._finely = finely and self._sockets.carrying
        if self._finely and now_ns - self._looked_ns >= FINE_NS - FINE_NS // 8:
            self._looked_ns = now_ns
            self._sockets.look(now_ns, self._pids)

    def burst(self, now_ns: int) -> bool:
        """Make one look of a burst; return whether a burst was in progress."""
        if not self._bursts.running:
            return False
        self._bursts.look(now_ns, self._links.totals(self._net.read_all()), self._measured)
        return True

    def sample(self, now_ns: int, job: JobFacts | None, measured: frozenset[int]) -> None:
        """Make one look with all samplers."""
        pids = measured | {job.pid} if job else measured
        own = {os.getpid(), job.launcher_pid} if job and job.launcher_pid else {os.getpid()}
        targets = Targets(job_pid=job.pid if job else 0, measured=pids, own=frozenset(own))
        totals = self._threads.sample(now_ns, pids)
        host = self._host
        host.sample(now_ns, targets)
        self._links.sample(now_ns, host.net_text, targets)
        received, _ = self._links.totals(host.net_text)
        foreign = job.pid if job and self._links.foreign else 0
        traffic = self._sockets.sample(now_ns, pids, self._links.all_bytes(host.net_text), foreign)
        if self._sockets.carrying:
            self._packets.start()
        self._packets.sample(self._sockets.number_of, foreign)
        self._process.sample(now_ns, totals, traffic)
        self._rivals.sample(now_ns, targets)
        self._cores.sample(now_ns, host.stat_text, host.affinity)
        self._disks.sample(now_ns, host.disk_text, targets)
        self._memory.sample(now_ns, host.memory_text, targets)
        self.gpu.sample(now_ns, pids)
        self._clocks.sample()
        self._measured, self._now_ns, self._looked_ns, self._pids = measured, now_ns, now_ns, pids
        self._bursts.consider(now_ns, received)

    def compare_clocks(self, run: Path) -> None:
        """Begin to compare this host's clock with others', if the run asks for it."""
        self._clocks.start(run)

    def lead(self, host: TaskDesk, reach: bytes) -> None:
        """Take requests of other hosts for captures of this one's tasks, if clocks are compared with these."""
        self._clocks.lead(host, reach)

    def close(self) -> list[tuple[str, str]]:
        """End what runs by itself; return diagnostics (code, text)."""
        found = [("DX190", text) for text in [self._clocks.close()] if text]
        if self._clocks.dropped:
            found.append(("DX196", self._clocks.dropped))
        if self._sockets.unnamed:
            found.append(("DX191", f"{MAX_NAMES} TCP connections of the job were followed, its later ones were not"))
        self._sockets.close()
        if self._packets.left_out:
            text = f"{self._packets.left_out} retransmissions and drops were not stored one by one"
            found.append(("DX191", text))
        self._packets.close()
        return found

    @property
    def packets_problem(self) -> str:
        """Why retransmissions are not visible one by one; "" if they are, or the job has no connections."""
        return self._packets.problem

    def tables(self) -> dict[str, list[Table]]:
        """Rows of the last minutes, by table, oldest first, including those that wait for the next flush."""
        return self._recent.all({**self._fast, **self._slow})

    def processes(self) -> list[ProcessTable]:
        """The rows of processes in ``tables``."""
        return [table for table in self.tables().get("process", []) if isinstance(table, ProcessTable)]

    def children(self) -> tuple[frozenset[int], list[tuple[int, int]]]:
        """The living descendants of the job, and (time of CLOCK_MONOTONIC, pid) of those that have gone lately."""
        return self._rivals.children, list(self._rivals.ended_children)

    def rival_names(self) -> RecentNames:
        """The names that the rows of rivals in ``tables`` index."""
        waiting = dict(enumerate(self._rivals.names, self._rivals.first_name))
        return RecentNames({**self._rivals.recent_names, **waiting})

    def resource_names(self) -> RecentNames:
        """The names that the rows of links, disks and GPUs in ``tables`` index."""
        return RecentNames(self._names.by_number())

    def flush(self, *, final: bool = False) -> None:
        """Make the rows durable; tables of resources once a minute, and if ``final``.

        Raises:
            OSError: no space, or no rights; the rows stay until the next try.
        """
        if self._rivals.names:
            self._writer.write_rival_names(self._rivals.first_name, self._rivals.names)
            self._rivals.names_stored()
        for name, rows in self._fast.items():
            if len(rows):
                table = rows.table()
                self._writer.write_table(name, table)
                self._recent.keep(name, table)
                rows.clear()
        if final or self._now_ns >= self._resources_due_ns:
            self._flush_resources()
            self._resources_due_ns = self._now_ns + _RESOURCES_EVERY_NS

    def _flush_resources(self) -> None:
        if self._names.waiting:
            self._writer.write_resource_names(self._names.first, self._names.waiting)
            self._names.stored()
        for name, rows in self._slow.items():
            if len(rows):
                table = rows.table()
                self._writer.write_table(name, table)
                self._recent.keep(name, table)
                rows.clear()
