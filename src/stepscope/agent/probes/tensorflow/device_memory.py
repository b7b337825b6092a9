"""Asks TensorFlow's allocators how much memory is live on each GPU: the reserved amount does not show it.

``TFE_GetMemoryInfo`` reads two counters of the device's allocator under its lock, in microseconds. It is called once in
ten seconds, and only after the job itself has initialised the context, because an earlier call would do that. In a job
without GPUs the calls stop once that is known.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.support import report

if TYPE_CHECKING:
    from types import ModuleType

    from stepscope.agent.state import AgentState

EVERY_NS = 10_000_000_000
FIRST_NS = 3_000_000_000
"""Delay of the first call after the context exists: early enough to include short jobs."""


class DevicePeaks:
    """Logs the peak of each device when it has risen."""

    def __init__(self, state: AgentState, context: ModuleType) -> None:
        """``context`` is the module ``tensorflow.python.eager.context``."""
        self._state = state
        self._context = context
        self._due = 0
        self._done = False
        self._told: dict[str, int] = {}

    def tick(self, now_ns: int) -> None:
        """Read the counters, on the agent's thread."""
        if self._done or now_ns < self._due or sys.is_finalizing():
            return
        context = self._context._context
        if context is None or not context._initialized:
            self._due = now_ns + FIRST_NS // 3
            return
        devices = [str(device.name) for device in context._logical_devices or () if device.device_type == "GPU"]
        if not self._told and devices:
            self._told = dict.fromkeys(devices, -1)
            self._due = now_ns + FIRST_NS
            return
        self._done = not devices
        self._due = now_ns + EVERY_NS
        for device in devices:
            self._tell(device, context.get_memory_info(device.removeprefix("/device:")))

    def _tell(self, device: str, found: dict[str, int]) -> None:
        peak = int(found["peak"])
        if peak <= self._told.get(device, -1):
            return
        self._told[device] = peak
        line = {"t": "device-memory", "at": self._state.now(), "device": device.removeprefix("/device:"), "peak": peak}
        line.update(current=int(found["current"]), visible=os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        self._state.log(line)


def attach(state: AgentState, module: ModuleType) -> None:
    """Start reading on the agent's ticks, if TensorFlow has the function."""
    if not hasattr(module, "_context") or not hasattr(getattr(module, "Context", None), "get_memory_info"):
        report(state, "device_memory", "no-memory-info")
        return
    state.hooks.on_tick(DevicePeaks(state, module).tick)
    report(state, "device_memory")


TARGETS = (("tensorflow.python.eager.context", attach),)
