"""NVIDIA GPUs as NVML tells of them, for the sampler each second and for the doctor once: no other module asks it.

Source: NVML API reference; ``nvidia-ml-py`` (extra ``gpu``) is imported only if the kernel shows a device. NVML's busy
share is the time with at least one kernel, not the use of a device's capacity. Cards differ in what they answer.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.tables.errors import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVER = "/proc/driver/nvidia/gpus"
_MISSING = f"nvidia-ml-py is not installed: {install_command('gpu')}"
_MILLI = 1000

SLOWED = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "temperature, by software",
    0x40: "temperature, by hardware",
    0x80: "power brake",
}
"""Reasons why a GPU's clock is lower than it would be, other than being idle and than settings. Source: nvml.h,
nvmlClocksEventReasons."""


class Gpu(Struct, frozen=True, kw_only=True):
    """One device, at one moment; None: not known."""

    index: int
    name: str
    used_bytes: int | None = None
    """Memory in use by all processes."""
    total_bytes: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    reasons: int | None = None
    """Bits of the reasons for the clock, see ``SLOWED``."""
    mig: bool | None = None
    """Whether it is divided into instances."""
    compute_mode: int | None = None
    """Mode: 0 default, 2 prohibited, 3 one process."""
    persistence: bool | None = None


class Gpus(Struct, frozen=True, kw_only=True):
    """All devices."""

    count: int = 0
    """Number of devices that the kernel's driver shows."""
    problem: str = ""
    """Reason why they cannot be asked."""
    driver: str = ""
    cuda: tuple[int, int] | None = None
    """The newest CUDA that the driver offers."""
    devices: tuple[Gpu, ...] = ()


class Nvml:
    """NVML, opened; without a device nothing is imported."""

    def __init__(self, driver: str = DRIVER) -> None:
        """Open it if the folder ``driver`` shows devices."""
        self.count = devices(driver)
        self.problem = ""
        """Reason why existing devices cannot be asked."""
        self.handles: list[tuple[int, str, object]] = []
        """(index, name, handle) of each."""
        self._library = ModuleType("pynvml")
        if self.count:
            self._open()

    def _open(self) -> None:
        try:
            self._library = importlib.import_module("pynvml")
        except ImportError:
            self.problem = _MISSING
            return
        library = self._library
        try:
            library.nvmlInit()
            for index in range(library.nvmlDeviceGetCount()):
                handle = library.nvmlDeviceGetHandleByIndex(index)
                self.handles.append((index, _text(library.nvmlDeviceGetName(handle)), handle))
        except library.NVMLError as error:
            self.problem = f"NVML: {error}"
            self.handles = []

    def ask(self, question: str, *arguments: object) -> object:
        """NVML's answer to ``nvml`` + question, None if it has none."""
        asked: Callable[..., object] | None = getattr(self._library, f"nvml{question}", None)
        if asked is None:
            return None
        try:
            return asked(*arguments)
        except self._library.NVMLError:
            return None

    def number(self, question: str, *arguments: object) -> int | None:
        """An answer that is a number."""
        found = self.ask(question, *arguments)
        return found if isinstance(found, int) else None

    def memory(self, handle: object) -> object:
        """Memory in use and in all, without what the driver keeps for itself, where NVML tells that apart."""
        version = getattr(self._library, "nvmlMemory_v2", None)
        found = None if version is None else self.ask("DeviceGetMemoryInfo", handle, version)
        return found if found is not None else self.ask("DeviceGetMemoryInfo", handle)

    def power_w(self, handle: object) -> float | None:
        """Power that the device takes now, averaged by it over about a second."""
        return _watts(self.number("DeviceGetPowerUsage", handle))

    def power_limit_w(self, handle: object) -> float | None:
        """Power that it may take."""
        return _watts(self.number("DeviceGetEnforcedPowerLimit", handle))

    def reasons(self, handle: object) -> int | None:
        """Bits of the reasons for its clock."""
        return self.number("DeviceGetCurrentClocksThrottleReasons", handle)


def look(driver: str = DRIVER) -> Gpus:
    """All that the doctor wants to know."""
    nvml = Nvml(driver)
    if not nvml.handles:
        return Gpus(count=nvml.count, problem=nvml.problem)
    version = nvml.number("SystemGetCudaDriverVersion_v2")
    return Gpus(
        count=nvml.count,
        driver=_text(nvml.ask("SystemGetDriverVersion") or ""),
        cuda=(version // 1000, version % 1000 // 10) if version else None,
        devices=tuple(_device(nvml, *one) for one in nvml.handles),
    )


def _device(nvml: Nvml, index: int, name: str, handle: object) -> Gpu:
    memory = nvml.memory(handle)
    mig = nvml.ask("DeviceGetMigMode", handle)
    persistence = nvml.number("DeviceGetPersistenceMode", handle)
    return Gpu(
        index=index,
        name=name,
        used_bytes=getattr(memory, "used", None),
        total_bytes=getattr(memory, "total", None),
        power_w=nvml.power_w(handle),
        power_limit_w=nvml.power_limit_w(handle),
        reasons=nvml.reasons(handle),
        mig=bool(mig[0]) if isinstance(mig, (list, tuple)) else None,
        compute_mode=nvml.number("DeviceGetComputeMode", handle),
        persistence=None if persistence is None else bool(persistence),
    )


def slowed(reasons: int | None) -> tuple[str, ...]:
    """The reasons of a slower clock in words."""
    return tuple(word for bit, word in SLOWED.items() if (reasons or 0) & bit)


def devices(driver: str) -> int:
    """The number of devices that the kernel's driver shows."""
    try:
        return len(os.listdir(driver))
    except OSError:
        return 0


def _watts(milli: int | None) -> float | None:
    return None if milli is None else milli / _MILLI


def _text(found: object) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
