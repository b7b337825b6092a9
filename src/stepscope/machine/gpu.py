"""Checks of NVIDIA GPUs and of the CUDA that each framework brings: by NVML and by packages, without a framework.

Nothing is imported into the job's Python. What TensorFlow is built for says its own file (``libraries``).

Source: CUDA Compatibility, "Minor version compatibility"; NVML API reference: compute modes, persistence mode, MIG.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.machine import nvml
from stepscope.model.report.doctor import Check, Outcome
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.machine.host import Host
    from stepscope.machine.nvml import Gpu, Gpus
    from stepscope.machine.python import PythonFacts

OLDEST_DRIVER = {11: (450, 80), 12: (525, 60), 13: (580, 0)}
"""Oldest driver on Linux for each major version of CUDA."""
_HELD_RATIO = 0.05
"""Share of the memory above which what others hold is said: a driver's own part is below it."""
_LIMITED = "power limit"
_PROHIBITED, _EXCLUSIVE = 2, 3
_PLUGIN = re.compile(r"jax-cuda(\d+)-(?:plugin|pjrt)")
_LIBRARIES = ("cudnn", "nccl", "cublas")


def _check(name: str, title: str, outcome: Outcome, found: str, why: str = "", remedy: str = "") -> Check:
    return Check(name=name, group="gpu", title=title, outcome=outcome, found=found, why=why, remedy=remedy)


def checks(host: Host, python: PythonFacts) -> Iterator[Check]:
    """All checks of GPUs; none without one."""
    gpus = host.gpus()
    if not gpus.count:
        return
    yield _nvml(gpus)
    for gpu in gpus.devices:
        yield from _device(gpu)
    driver = _driver(host, gpus)
    yield from _torch(python, driver)
    yield from _jax(python, driver)


def _nvml(gpus: Gpus) -> Check:
    title = "readings of the GPU"
    if gpus.problem:
        why = "load, memory, power and bus of the GPU are not measured while a job runs"
        remedy = gpus.problem.partition(": ")[2] if "pip install" in gpus.problem else "nvidia-smi says what is wrong"
        return _check("gpu-nvml", title, "blind", gpus.problem, why, remedy)
    cuda = f", for CUDA up to {gpus.cuda[0]}.{gpus.cuda[1]}" if gpus.cuda else ""
    return _check("gpu-nvml", title, "ok", f"NVML answers; driver {gpus.driver or '?'}{cuda}")


def _device(gpu: Gpu) -> Iterator[Check]:
    yield _memory(gpu)
    yield _clock(gpu)
    yield _mode(gpu)
    if gpu.mig is not None:
        yield _mig(gpu)
    if gpu.persistence is not None:
        yield _persistence(gpu)


def _memory(gpu: Gpu) -> Check:
    title = f"GPU {gpu.index}"
    used, total = gpu.used_bytes, gpu.total_bytes
    if used is None or not total:
        return _check("gpu-memory", title, "ok", f"{gpu.name}; its memory is not known")
    found = f"{gpu.name}; {format_bytes(used)} of {format_bytes(total)} in use"
    if used <= _HELD_RATIO * total:
        return _check("gpu-memory", title, "ok", found)
    why = "processes that run now hold it: a job that starts gets the rest, and shares the GPU's time with them"
    return _check("gpu-memory", title, "note", found, why, "nvidia-smi lists them")


def _clock(gpu: Gpu) -> Check:
    title = f"clock of GPU {gpu.index}"
    power = "" if gpu.power_w is None else f"takes {gpu.power_w:.0f} W"
    power += "" if gpu.power_limit_w is None or not power else f" of the {gpu.power_limit_w:.0f} W that it may"
    if gpu.reasons is None:
        return _check("gpu-clock", title, "blind", "; ".join(filter(None, ("the card does not say", power))))
    slowed = nvml.slowed(gpu.reasons)
    found = "; ".join(filter(None, (f"held down by: {', '.join(slowed)}" if slowed else "not held down", power)))
    if not slowed:
        return _check("gpu-clock", title, "ok", found)
    if set(slowed) == {_LIMITED}:
        why = "it computes as fast as its power limit lets it: usual under load, a sign of other jobs if yours is not"
        return _check("gpu-clock", title, "note", found, why)
    why = "kernels take longer than they would, and the same job takes another time on another machine"
    return _check("gpu-clock", title, "change", found, why, "see to cooling and power: nvidia-smi -q -d PERFORMANCE")


def _mode(gpu: Gpu) -> Check:
    title = f"processes on GPU {gpu.index}"
    if gpu.compute_mode == _PROHIBITED:
        why, remedy = "no process may compute on it", f"sudo nvidia-smi -i {gpu.index} -c DEFAULT"
        return _check("gpu-mode", title, "change", "compute mode: prohibited", why, remedy)
    if gpu.compute_mode == _EXCLUSIVE:
        why = "a second process that uses the GPU, such as an evaluation while the training runs, fails"
        remedy = f"if that is not intended: sudo nvidia-smi -i {gpu.index} -c DEFAULT"
        return _check("gpu-mode", title, "note", "compute mode: one process at a time", why, remedy)
    known = "any number (compute mode: default)" if gpu.compute_mode == 0 else "the compute mode is not known"
    return _check("gpu-mode", title, "ok", known)


def _mig(gpu: Gpu) -> Check:
    title = f"instances of GPU {gpu.index}"
    if not gpu.mig:
        return _check("gpu-mig", title, "ok", "not divided (MIG is off)")
    why = "a job has the part of one instance, and NVML has no load of it"
    return _check("gpu-mig", title, "note", "divided into instances (MIG is on)", why, "nvidia-smi -L lists them")


def _persistence(gpu: Gpu) -> Check:
    title = f"persistence of GPU {gpu.index}"
    if gpu.persistence:
        return _check("gpu-persistence", title, "ok", "on")
    why = "the driver lets go of the GPU when no process uses it: the next job's start takes some seconds longer"
    return _check("gpu-persistence", title, "note", "off", why, f"sudo nvidia-smi -i {gpu.index} -pm 1")


def _driver(host: Host, gpus: Gpus) -> tuple[int, int] | None:
    """The driver's version, by NVML or by the kernel."""
    text = host.text("/proc/driver/nvidia/version") or ""
    said = re.match(r"(\d+)\.(\d+)", gpus.driver) or re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+)\.(\d+)", text)
    return (int(said.group(1)), int(said.group(2))) if said else None


def _torch(python: PythonFacts, driver: tuple[int, int] | None) -> Iterator[Check]:
    if "torch" not in python.packages:
        return
    title = "PyTorch's CUDA"
    found = f"torch {python.packages['torch']}"
    if not python.torch_cuda:
        why = "there is an NVIDIA GPU, and this PyTorch is built without CUDA: everything runs on the CPU"
        remedy = f"{python.executable} -m pip install --force-reinstall torch (the default index has it with CUDA)"
        yield _check("torch-cuda", title, "change", found, why, remedy)
        return
    yield _fits(
        "torch-cuda", title, f"{found} is built for CUDA {python.torch_cuda}", python, python.torch_cuda, driver
    )


def _jax(python: PythonFacts, driver: tuple[int, int] | None) -> Iterator[Check]:
    if "jax" not in python.packages:
        return
    title = "JAX's CUDA"
    found = f"jax {python.packages['jax']}"
    plugins = sorted((int(said.group(1)), name) for name in python.packages if (said := _PLUGIN.fullmatch(name)))
    if not plugins:
        why = "there is an NVIDIA GPU, and JAX has no plugin for CUDA: everything runs on the CPU"
        remedy = f"{python.executable} -m pip install 'jax[cuda12]' (or cuda13, where the driver has it)"
        yield _check("jax-cuda", title, "note", found, why, remedy)
        return
    jaxlib = python.packages.get("jaxlib", "")
    other = [f"{name} {python.packages[name]}" for _, name in plugins if jaxlib and python.packages[name] != jaxlib]
    if other:
        why = "the plugin is of another version than jaxlib: JAX refuses it, or falls back to the CPU"
        remedy = f"{python.executable} -m pip install 'jax[cuda{plugins[-1][0]}]=={python.packages['jax']}'"
        yield _check("jax-cuda", title, "change", f"{found}, jaxlib {jaxlib}, {', '.join(other)}", why, remedy)
        return
    cuda = str(plugins[-1][0])
    yield _fits("jax-cuda", title, f"{found} with a plugin for CUDA {cuda}", python, cuda, driver)


def _fits(name: str, title: str, found: str, python: PythonFacts, cuda: str, driver: tuple[int, int] | None) -> Check:
    """Whether the driver runs programs that are built for this CUDA, with the libraries that are installed."""
    major = int(cuda.split(".", maxsplit=1)[0]) if cuda.split(".", maxsplit=1)[0].isdigit() else 0
    brought = sorted(
        f"{one.removeprefix('nvidia-')} {version}"
        for one, version in python.packages.items()
        if one.startswith("nvidia-") and any(word in one for word in _LIBRARIES) and one.endswith((f"-cu{major}", "s"))
    )
    found += f"; with {', '.join(brought)}" if brought else "; its libraries are not from packages"
    needed = OLDEST_DRIVER.get(major)
    if needed and driver and driver < needed:
        why = f"CUDA {major} needs a driver of {needed[0]}.{needed[1]} or newer, this is {driver[0]}.{driver[1]}"
        return _check(name, title, "change", found, why, "a newer driver, or a build for an older CUDA")
    if driver is None:
        return _check(name, title, "blind", found, "the driver's version is not known")
    return _check(name, title, "ok", f"{found}; driver {driver[0]}.{driver[1]} runs it")
