"""Samples NVIDIA GPUs through NVML: load, memory, bus traffic, power.

Device memory is what all processes have reserved: TensorFlow reserves nearly all of it at its start whatever it needs,
so live bytes are unknown here (-1). Rows are stored; the last look of each device, with what is not stored, is that of
the live status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.samplers.base import Rows
from stepscope.machine.nvml import DRIVER, Nvml, slowed
from stepscope.model.api.status import LiveGpu
from stepscope.tables.records import GpuTable

if TYPE_CHECKING:
    from stepscope.collector.samplers.names import NameNumbers

_KIB = 1024
_PCIE_EVERY = 5
"""Interval in samples of bus measurements: NVML measures for 20 ms within the call, for which the sidecar is
blocked."""
_PCIE_TX, _PCIE_RX = 0, 1
_PERCENT = 100


class GpuSampler:
    """Follows the GPUs of the host, if there are any and NVML is available."""

    def __init__(self, origin_ns: int, names: NameNumbers, *, driver: str = DRIVER) -> None:
        """Times in rows count from ``origin_ns``; devices are named in ``names``."""
        self.rows = Rows(GpuTable)
        self._nvml = Nvml(driver)
        self.count = self._nvml.count
        self.problem = self._nvml.problem
        """Reason why existing devices are not sampled."""
        self.now: tuple[LiveGpu, ...] = ()
        """The last look at each."""
        self._origin_ns = origin_ns
        self._numbers = [names.number(f"gpu:{index} {title}") for index, title, _ in self._nvml.handles]
        self._pcie: dict[int, tuple[int | None, int | None]] = {}
        self._looks = 0

    def sample(self, now_ns: int, pids: frozenset[int]) -> None:
        """A row for each GPU; ``pids`` are the measured processes."""
        self.now = tuple(
            self._look(number, *device, now_ns, pids)
            for number, device in zip(self._numbers, self._nvml.handles, strict=True)
        )
        self._looks += 1

    def _look(self, number: int, index: int, title: str, handle: object, now_ns: int, pids: frozenset[int]) -> LiveGpu:
        nvml = self._nvml
        busy = nvml.ask("DeviceGetUtilizationRates", handle)
        memory = nvml.memory(handle)
        if self._looks % _PCIE_EVERY == 0:
            self._pcie[number] = (self._throughput(handle, _PCIE_RX), self._throughput(handle, _PCIE_TX))
        rx, tx = self._pcie[number]
        percent: int | None = getattr(busy, "gpu", None)
        found = LiveGpu(
            index=index,
            name=title,
            busy_ratio=None if percent is None else percent / _PERCENT,
            used_bytes=getattr(memory, "used", None),
            job_bytes=self._used_by(handle, pids),
            total_bytes=getattr(memory, "total", None),
            power_w=nvml.power_w(handle),
            slowed=None if (reasons := nvml.reasons(handle)) is None else slowed(reasons),
            rx_bytes_s=rx,
            tx_bytes_s=tx,
        )
        self.rows.add(
            now_ns - self._origin_ns,
            number,
            *map(
                _stored,
                (
                    percent,
                    getattr(busy, "memory", None),
                    found.used_bytes,
                    found.job_bytes,
                    found.total_bytes,
                    rx,
                    tx,
                ),
            ),
        )
        return found

    def _throughput(self, handle: object, counter: int) -> int | None:
        kib = self._nvml.number("DeviceGetPcieThroughput", handle, counter)
        return None if kib is None else kib * _KIB

    def _used_by(self, handle: object, pids: frozenset[int]) -> int | None:
        """Memory of the measured processes; 0 in a container, where NVML sees other pids."""
        processes = self._nvml.ask("DeviceGetComputeRunningProcesses", handle)
        if not isinstance(processes, list):
            return None
        return sum(int(p.usedGpuMemory or 0) for p in processes if p.pid in pids)


def _stored(value: int | None) -> int:
    return -1 if value is None else int(value)
