"""Series of network, disks, memory and GPUs with their limits, at the times of the host's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.system.gpu import live_peaks
from stepscope.derive.machine import counters

if TYPE_CHECKING:
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64, HostTable

MB = 1e6


def build(session: Session, host: HostTable) -> dict[str, F64]:
    """All resource series that the session has data for; ``res_t`` comes from ``host``."""
    at = host.at_ns
    if len(at) < counters.DIFFERENCE:
        return {}
    found = _limits(host) | _cores(session, at) | _network(session, at)
    found |= _disk(session, at) | _memory(session, at) | _gpu(session, at)
    return {key: values for key, values in found.items() if np.isfinite(values).all()}


def _limits(host: HostTable) -> dict[str, F64]:
    quota = host.quota_milli_cpus / 1000
    limit = np.where(quota > 0, np.minimum(quota, host.cpus), host.cpus)[1:].astype(float)
    return {"res:cpu_limit_cores": limit} if (limit > 0).all() else {}


def _cores(session: Session, at: I64) -> dict[str, F64]:
    """Load of the busiest CPU: 1 while the others idle indicates serial work."""
    cores = session.cores
    rates = [
        counters.rate_at(at, mine.at_ns, mine.busy_ns)
        for cpu in np.unique(cores.cpu)
        if len(mine := cores.take(cores.cpu == cpu)) > 1
    ]
    return {"res:busiest_core": np.clip(np.max(rates, axis=0), 0.0, 1.0)} if rates else {}


def _network(session: Session, at: I64) -> dict[str, F64]:
    wire = counters.wire(session)
    if wire is None:
        return {}
    found = {
        "res:net_in_mb_s": counters.rate_at(at, wire.at_ns, wire.rx_bytes) * 1e9 / MB,
        "res:net_out_mb_s": counters.rate_at(at, wire.at_ns, wire.tx_bytes) * 1e9 / MB,
    }
    if wire.speed_bytes_s > 0:
        found["res:net_limit_mb_s"] = np.full(len(at) - 1, wire.speed_bytes_s / MB)
    return found


def _disk(session: Session, at: I64) -> dict[str, F64]:
    """Load of the busiest disk, and the read limit of the cgroup."""
    devices = counters.disks(session)
    if not devices:
        return {}
    busiest = max(devices, key=lambda d: d.busy_ns[-1] - d.busy_ns[0])
    busy = counters.rate_at(at, busiest.at_ns, busiest.busy_ns)
    found = {"res:disk_busy_percent": 100 * np.clip(busy, 0.0, 1.0)}
    limits = [d.limit_bytes_s for d in devices if d.limit_bytes_s > 0]
    if limits:
        found["res:disk_limit_mb_s"] = np.full(len(at) - 1, min(limits) / MB)
    return found


def _memory(session: Session, at: I64) -> dict[str, F64]:
    memory = session.memory
    if len(memory) < counters.DIFFERENCE or memory.cgroup_limit_bytes[-1] <= 0:
        return {}
    own = memory.at_ns.astype(float)
    used = np.interp(at[1:], own, memory.cgroup_bytes.astype(float))
    limit = np.interp(at[1:], own, memory.cgroup_limit_bytes.astype(float))
    return {"res:cgroup_mb": used / MB, "res:memory_limit_mb": limit / MB}


def _gpu(session: Session, at: I64) -> dict[str, F64]:
    """Utilization averaged over the GPUs; memory and bus traffic summed."""
    gpus = [session.gpus.take(session.gpus.name == n) for n in np.unique(session.gpus.name)]
    gpus = [g for g in gpus if len(g) > 1]
    if not gpus:
        return {}

    def column(name: str) -> F64:
        return np.array([np.interp(at[1:], g.at_ns.astype(float), getattr(g, name).astype(float)) for g in gpus])

    found = {}
    for key, name, scale in (
        ("res:gpu_reserved_mb", "reserved_bytes", MB),
        ("res:gpu_limit_mb", "total_bytes", MB),
        ("res:pcie_in_mb_s", "pcie_rx_bytes_s", MB),
        ("res:pcie_out_mb_s", "pcie_tx_bytes_s", MB),
    ):
        values = column(name)
        if (values >= 0).all():
            found[key] = values.sum(axis=0) / scale
    busy = column("busy_percent")
    if (busy >= 0).all():
        found["res:gpu_busy_percent"] = busy.mean(axis=0)
    live = live_peaks(session).values()
    if live:
        found["res:gpu_live_mb"] = np.sum([_last_told(at[1:], *told) for told in live], axis=0) / MB
    return found


def _last_told(at: I64, times: list[int], values: list[int]) -> F64:
    """The last reported value at each moment; 0 before the first. float64[moment]."""
    index = np.searchsorted(np.asarray(times), at, side="right")
    return np.concatenate(([0.0], np.asarray(values, dtype=float)))[index]
