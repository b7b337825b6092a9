"""What the doctor says of GPUs, without a framework, by what NVML and the packages say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.machine import hosts

from stepscope.machine import gpu
from stepscope.machine.nvml import Gpu, Gpus

if TYPE_CHECKING:
    from stepscope.machine.python import PythonFacts
    from stepscope.model.report.doctor import Check

H100 = Gpu(
    index=0,
    name="NVIDIA H100 80GB HBM3",
    used_bytes=0,
    total_bytes=85_520_809_984,
    power_w=76.0,
    power_limit_w=700.0,
    reasons=1,
    mig=False,
    compute_mode=0,
    persistence=True,
)
"""As nvidia-smi showed one."""
NO_FRAMEWORK: dict[str, str] = {}
JAX = {"jax": "0.11.2", "jaxlib": "0.11.2", "jax-cuda13-plugin": "0.11.2", "jax-cuda13-pjrt": "0.11.2"}


def seen(
    tmp_path: Path, device: Gpu = H100, python: PythonFacts | None = None, driver: str = "580.159.04"
) -> dict[str, Check]:
    """The checks of one device, by name."""
    gpus = Gpus(count=1, driver=driver, cuda=(13, 0), devices=(device,))
    host = hosts.host(tmp_path, hosts.GOOD, gpus=gpus)
    return {one.name: one for one in gpu.checks(host, python or hosts.python(NO_FRAMEWORK))}


def test_a_good_card_is_described_and_nothing_is_to_be_done(tmp_path: Path) -> None:
    """Driver, CUDA, name, memory, power and modes are said, all ok."""
    found = seen(tmp_path)
    assert {one.outcome for one in found.values()} == {"ok"}
    said = " ".join(one.found for one in found.values())
    for part in ("580.159.04", "13.0", "H100 80GB", "79.6 GiB", "76 W of the 700 W", "default", "MIG is off"):
        assert part in said


@pytest.mark.parametrize(
    ("device", "name", "outcome", "part"),
    [
        (replace(H100, used_bytes=40 << 30), "gpu-memory", "note", "40 GiB"),
        (replace(H100, used_bytes=1 << 30), "gpu-memory", "ok", "1 GiB"),
        (replace(H100, reasons=0x04), "gpu-clock", "note", "power limit"),
        (replace(H100, reasons=0x44), "gpu-clock", "change", "temperature, by hardware"),
        (replace(H100, reasons=0x02), "gpu-clock", "ok", "not held down"),
        (replace(H100, reasons=None), "gpu-clock", "blind", "does not say"),
        (replace(H100, compute_mode=2), "gpu-mode", "change", "prohibited"),
        (replace(H100, compute_mode=3), "gpu-mode", "note", "one process"),
        (replace(H100, mig=True), "gpu-mig", "note", "MIG is on"),
        (replace(H100, persistence=False), "gpu-persistence", "note", "off"),
    ],
)
def test_each_state_of_a_card(tmp_path: Path, device: Gpu, name: str, outcome: str, part: str) -> None:
    """What a state costs decides between ok, worth knowing, and to be changed."""
    check = seen(tmp_path, device)[name]
    assert check.outcome == outcome
    assert part in check.found


@pytest.mark.parametrize(
    ("python", "driver", "name", "outcome", "part"),
    [
        (hosts.python({"torch": "2.11.0"}, torch_cuda="13.0"), "580.159.04", "torch-cuda", "ok", "CUDA 13.0"),
        (hosts.python({"torch": "2.11.0"}, torch_cuda="13.0"), "570.86.10", "torch-cuda", "change", "CUDA 13.0"),
        (hosts.python({"torch": "2.11.0"}, torch_cuda="12.8"), "570.86.10", "torch-cuda", "ok", "CUDA 12.8"),
        (hosts.python({"torch": "2.13.0+cpu"}), "580.159.04", "torch-cuda", "change", "2.13.0+cpu"),
        (hosts.python(JAX), "580.159.04", "jax-cuda", "ok", "CUDA 13"),
        (hosts.python(JAX), "570.86.10", "jax-cuda", "change", "CUDA 13"),
        (
            hosts.python({**JAX, "jax-cuda13-plugin": "0.11.0"}),
            "580.1",
            "jax-cuda",
            "change",
            "jax-cuda13-plugin 0.11.0",
        ),
        (hosts.python({"jax": "0.11.2", "jaxlib": "0.11.2"}), "580.159.04", "jax-cuda", "note", "jax 0.11.2"),
        (
            hosts.python(
                {"torch": "2.8.0", "nvidia-cudnn-cu12": "9.10.2", "nvidia-cudnn-cu11": "8"}, torch_cuda="12.8"
            ),
            "580.1",
            "torch-cuda",
            "ok",
            "cudnn-cu12 9.10.2;",
        ),
    ],
)
def test_the_cuda_of_each_framework_against_the_driver(
    tmp_path: Path, python: PythonFacts, driver: str, name: str, outcome: str, part: str
) -> None:
    """Without CUDA, with CUDA newer than the driver, or with a plugin of another version it is to be changed."""
    check = seen(tmp_path, python=python, driver=driver)[name]
    assert check.outcome == outcome
    assert part in check.found


def test_a_device_that_nvml_does_not_tell_of_is_blind_and_the_rest_is_said(tmp_path: Path) -> None:
    """Without NVML the driver's version is the kernel's."""
    version = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19"}
    gpus = Gpus(count=1, problem="nvidia-ml-py is not installed: pip install nvidia-ml-py")
    host = hosts.host(tmp_path, {**hosts.GOOD, **version}, gpus=gpus)
    found = {one.name: one for one in gpu.checks(host, hosts.python({"torch": "2.11.0"}, torch_cuda="13.0"))}
    assert (found["gpu-nvml"].outcome, found["torch-cuda"].outcome) == ("blind", "change")
    assert found["gpu-nvml"].remedy == "pip install nvidia-ml-py"


def test_without_a_device_nothing_is_said(tmp_path: Path) -> None:
    """No GPU, no rows, whatever is installed."""
    assert list(gpu.checks(hosts.host(tmp_path, hosts.GOOD), hosts.python(JAX))) == []
