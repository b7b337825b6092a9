"""The samplers of one recording, in step; what they saw becomes tables of the session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import Targets
from stepscope.collector.samplers.host import HostSampler
from stepscope.collector.samplers.process import ProcessSampler
from stepscope.collector.samplers.rivals import RivalSampler
from stepscope.collector.samplers.threads import ThreadSampler

if TYPE_CHECKING:
    from stepscope.collector.rundir import Job
    from stepscope.store.writer import SessionWriter


class Sampling:
    """All samplers of a recording."""

    def __init__(self, writer: SessionWriter, origin_ns: int) -> None:
        """Store through ``writer``; times count from ``origin_ns``."""
        self._writer = writer
        self._threads = ThreadSampler(origin_ns)
        self._process = ProcessSampler(origin_ns)
        self._host = HostSampler(origin_ns, writer.last_cpu_totals())
        self._rivals = RivalSampler(origin_ns, writer.rival_names())

    def sample(self, now_ns: int, job: Job | None, measured: frozenset[int]) -> None:
        """One look at everything."""
        pids = measured | {job.pid} if job else measured
        own = {os.getpid(), job.launcher_pid} if job else {os.getpid()}
        targets = Targets(job_pid=job.pid if job else 0, measured=pids, own=frozenset(own))
        totals = self._threads.sample(now_ns, pids)
        self._process.sample(now_ns, totals)
        self._host.sample(now_ns, targets)
        self._rivals.sample(now_ns, targets)

    def flush(self) -> None:
        """Make what was seen durable.

        Raises:
            OSError: no space, or no rights; the rows stay until the next try.
        """
        if self._rivals.names:
            self._writer.write_rival_names(self._rivals.first_name, self._rivals.names)
            self._rivals.names_stored()
        for name, rows in (
            ("process", self._process.rows),
            ("threads", self._threads.rows),
            ("host", self._host.rows),
            ("rivals", self._rivals.rows),
        ):
            if len(rows):
                self._writer.write_table(name, rows.table())
                rows.clear()
