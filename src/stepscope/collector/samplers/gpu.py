"""Samples NVIDIA GPUs through NVML: load, memory, bus traffic.

Source: NVML API reference; ``nvidia-ml-py`` (extra ``gpu``) is imported only if the kernel shows a device. Device
memory is what all processes have reserved: TensorFlow reserves nearly all of it at its start whatever it needs, so live
bytes are unknown here (-1). NVML's busy share is the time with at least one kernel, not the use of a device's capacity.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from stepscope.collector.samplers.base import Rows
from stepscope.model.records import GpuTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.collector.samplers.names import Names

T = TypeVar("T")

_KIB = 1024
_PCIE_EVERY = 5
"""Interval in samples of bus measurements: NVML measures for 20 ms within the call, for which the sidecar is
blocked."""
_PCIE_TX, _PCIE_RX = 0, 1
DRIVER = "/proc/driver/nvidia/gpus"


class GpuSampler:
    """Follows the GPUs of the host, if there are any and NVML is available."""

    def __init__(self, origin_ns: int, names: Names, *, driver: str = DRIVER) -> None:
        """Times in rows count from ``origin_ns``; devices are named in ``names``."""
        self.rows = Rows(GpuTable)
        self.count = devices(driver)
        self.problem = ""
        """Reason why existing devices are not sampled."""
        self._origin_ns = origin_ns
        self._nvml = ModuleType("pynvml")
        self._handles: list[tuple[int, object]] = []
        self._pcie: dict[int, tuple[int, int]] = {}
        self._looks = 0
        if self.count:
            self._open(names)

    def _open(self, names: Names) -> None:
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError:
            self.problem = "nvidia-ml-py is not installed: pip install 'stepscope[gpu]'"
            return
        try:
            self._nvml.nvmlInit()
            for index in range(self._nvml.nvmlDeviceGetCount()):
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
                title = self._nvml.nvmlDeviceGetName(handle)
                title = title.decode("utf-8", "replace") if isinstance(title, bytes) else title
                self._handles.append((names.number(f"gpu:{index} {title}"), handle))
        except self._nvml.NVMLError as error:
            self.problem = f"NVML: {error}"
            self._handles = []

    def sample(self, now_ns: int, pids: frozenset[int]) -> None:
        """A row for each GPU; ``pids`` are the measured processes."""
        for number, handle in self._handles:
            busy = self._ask(self._nvml.nvmlDeviceGetUtilizationRates, handle)
            memory = self._ask(self._nvml.nvmlDeviceGetMemoryInfo, handle)
            if self._looks % _PCIE_EVERY == 0:
                self._pcie[number] = (self._throughput(handle, _PCIE_RX), self._throughput(handle, _PCIE_TX))
            rx, tx = self._pcie[number]
            self.rows.add(
                now_ns - self._origin_ns,
                number,
                int(busy.gpu) if busy is not None else -1,
                int(busy.memory) if busy is not None else -1,
                int(memory.used) if memory is not None else -1,
                self._used_by(handle, pids),
                int(memory.total) if memory is not None else -1,
                rx,
                tx,
            )
        self._looks += 1

    def _ask(self, question: Callable[..., T], *arguments: object) -> T | None:
        """NVML's answer, None if it has none: cards differ in what they report."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None

    def _throughput(self, handle: object, counter: int) -> int:
        kib = self._ask(self._nvml.nvmlDeviceGetPcieThroughput, handle, counter)
        return -1 if kib is None else int(kib) * _KIB

    def _used_by(self, handle: object, pids: frozenset[int]) -> int:
        """Memory of the measured processes; 0 in a container, where NVML sees other pids."""
        processes = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if processes is None:
            return -1
        return sum(int(p.usedGpuMemory or 0) for p in processes if p.pid in pids)


def devices(driver: str) -> int:
    """The number of devices that the kernel's driver shows."""
    try:
        return len(os.listdir(driver))
    except OSError:
        return 0
