"""What a job tells of the memory of GPUs; none is here, so the context of the program answers as if one was."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from stepscope.agent.probes.tensorflow.device_memory import DevicePeaks
from stepscope.model.log.events import AgentDiagnostic, Probe
from stepscope.model.log.program import DeviceMemory

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

    from stepscope.agent.state import AgentState

pytestmark = [pytest.mark.tf, pytest.mark.slow]


def test_the_peak_is_told(recorded: Callable[[str], Recorded]) -> None:
    """Some seconds after the context stands, with the devices that the job may see."""
    run = recorded("device_memory")
    assert (run.result.returncode, run.result.stdout) == (0, "done\n"), run.result.stderr
    told = [(e.device, e.peak, e.current, e.visible) for e in run.all(DeviceMemory)]
    assert told == [("GPU:0", 5_000_000, 1_000_000, "3")]
    assert [(e.attached, e.why) for e in run.all(Probe) if e.name == "device_memory"] == [(True, "")]
    assert run.all(AgentDiagnostic) == []


def test_it_is_told_again_when_it_has_risen() -> None:
    """Asked every ten seconds; nothing is asked of a context that the job has not initialised."""
    lines: list[dict[str, object]] = []
    peaks = [5, 5, 9]
    gpu = SimpleNamespace(name="/device:GPU:1", device_type="GPU")
    context = SimpleNamespace(_initialized=False, _logical_devices=[gpu])
    context.get_memory_info = lambda _device: {"current": 1, "peak": peaks.pop(0)}
    module = ModuleType("context")
    module.__dict__["_context"] = context
    reader = DevicePeaks(cast("AgentState", SimpleNamespace(now=lambda: 0, log=lines.append)), module)
    for second in range(60):
        context._initialized = second >= 20
        reader.tick(second * 1_000_000_000)
        if not peaks:
            break
    assert 43 <= second <= 46
    assert [(line["device"], line["peak"]) for line in lines] == [("GPU:1", 5), ("GPU:1", 9)]


def test_a_job_without_gpus_tells_nothing(recorded: Callable[[str], Recorded]) -> None:
    """The probe attaches and finds no device to ask about."""
    run = recorded("building")
    assert run.all(DeviceMemory) == []
