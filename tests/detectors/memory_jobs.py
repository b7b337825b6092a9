"""Jobs that fault memory in. The usual step takes 100 ms and uses one CPU; a fault costs 1.6 us there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from tests.derive.sessions import MS, Job, S, filled
from tests.detectors.jobs import PERIOD, STEPS, train_loop

from stepscope.tables.records import MemoryTable

SECONDS = STEPS * PERIOD // S
PER_SECOND = S // PERIOD
FAULT_NS, RELEASE_NS = 1_600, 200
HUGE_FAULT_NS, HUGE_RELEASE_NS = 80_000, 10_000
PAGE_BYTES = 4096


def faulting(
    per_step: Callable[[int], float],
    *,
    kept: float = 0.0,
    got: float = 1.0,
    system: float = 1.0,
    rounds: int = 10,
    others: float = 0.0,
    waiting: float = 0.0,
    on_host: float | None = None,
) -> Job:
    """A loop of 10 s.

    Args:
        per_step: faults of each step of a second, by its number.
        kept: pages that stay, per fault.
        got: CPUs that it uses.
        system: time in the kernel per time that the faults are taken to cost, giving back included.
        rounds: measurements of a fault's cost.
        others: CPUs that other processes take.
        waiting: threads of the job that wait for a CPU.
        on_host: huge pages that faults are given on the whole host per fault of the job; None: the host has none.
    """
    job = train_loop(80 * MS)
    job.trace(0, MS, cause="first", updates=4)
    job.machine(SECONDS, got=got, others=others, waiting=waiting)
    faults = np.concatenate(([0], np.cumsum([round(per_step(s) * PER_SECOND) for s in range(SECONDS)]))).astype(
        np.int64
    )
    huge = np.rint(faults * (on_host or 0.0)).astype(np.int64)
    mine = np.minimum(huge, faults)
    each = (faults - mine) * (FAULT_NS + RELEASE_NS) + mine * (HUGE_FAULT_NS + HUGE_RELEASE_NS)
    spent = np.rint(each * system).astype(np.int64)
    cpu = job.processes.cpu_user_ns
    job.processes = msgspec.structs.replace(
        job.processes,
        minor_faults=faults,
        cpu_system_ns=np.minimum(spent, cpu),
        cpu_user_ns=cpu - np.minimum(spent, cpu),
        rss_bytes=400_000_000 + np.rint(kept * PAGE_BYTES * faults).astype(np.int64),
        vm_bytes=4_000_000_000 + np.rint(kept * PAGE_BYTES * faults).astype(np.int64),
    )
    at = job.hosts.at_ns
    measured = np.where(np.arange(len(at)) < rounds, 1, -1)
    job.resources["memory"] = filled(
        MemoryTable,
        len(at),
        at_ns=at,
        fault_ns=np.where(measured > 0, FAULT_NS, -1),
        release_ns=np.where(measured > 0, RELEASE_NS, -1),
        huge_faults=at * 0 - 1 if on_host is None else 1_000 + huge,
        huge_fault_ns=np.where((measured > 0) & (on_host is not None), HUGE_FAULT_NS, -1),
        huge_release_ns=np.where((measured > 0) & (on_host is not None), HUGE_RELEASE_NS, -1),
    )
    return job


def refaulting(
    share: float, *, kept: float = 0.0, system: float = 1.0, rounds: int = 10, others: float = 0.0, waiting: float = 0.0
) -> Job:
    """Faults in every step that take this share of the CPU time; the rest as for ``faulting``."""
    return faulting(
        lambda _: share * PERIOD / FAULT_NS, kept=kept, system=system, rounds=rounds, others=others, waiting=waiting
    )
