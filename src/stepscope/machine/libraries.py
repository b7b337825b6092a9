"""Checks of a job's Python: whether its packages fit each other, the processor and the GPU; its malloc.

Compatibility is judged by the packages' own requirements, not by a table of ours. An allocator is never recommended
here: which one serves the tensors, and whether pages are faulted in repeatedly, only a job shows.

Source: CUDA's drivers: CUDA Compatibility, "Minor version compatibility"; build_info.py of TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.machine.gpu import OLDEST_DRIVER
from stepscope.machine.host import Host
from stepscope.machine.python import PythonFacts, TensorFlowImport
from stepscope.model.report.doctor import Check, Outcome
from stepscope.native.formats.elf import ElfFile
from stepscope.tables import advisories
from stepscope.tables.errors import FormatError

_OLDEST = (3, 9)
"""Oldest Python that the agent runs on."""
_WHEELS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos", "tensorflow-rocm")
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_HOLLOW = ("tensorflow-intel", "tensorflow-macos")
"""Packages that "tensorflow" requires on other systems, which do not count as a second installation."""
_SHOWN = (
    "keras",
    "tf-keras",
    "numpy",
    "protobuf",
    "ml-dtypes",
    "jax",
    "jaxlib",
    "torch",
    *_RUNTIMES,
)
_SWITCHED_OFF = ("0", "false")


def _check(name: str, title: str, outcome: Outcome, found: str, why: str = "", remedy: str = "") -> Check:
    return Check(name=name, group="libraries", title=title, outcome=outcome, found=found, why=why, remedy=remedy)


def checks(host: Host, python: PythonFacts) -> Iterator[Check]:
    """All checks of packages."""
    yield _python(python)
    wheels = [name for name in _WHEELS if name in python.packages]
    yield _tensorflow(python, wheels)
    if set(python.packages) & {*wheels, *_SHOWN}:
        yield _requirements(python)
    if wheels:
        yield from _twice(python, wheels)
        yield from _gpu(host, python)
        yield from _cpu_flags(python.loaded)
    yield from _runtime_twice(python)
    yield from _known(python)
    yield from _allocator(host, python)
    yield from _symbols(host, python)


def _python(python: PythonFacts) -> Check:
    version = ".".join(map(str, python.version))
    found = f"{version}, {python.executable}"
    if python.version[:2] >= _OLDEST:
        return _check("python", "Python", "ok", found)
    why = "stepscope measures jobs from Python 3.9 on; jobs on older versions are only seen from outside"
    return _check("python", "Python", "change", found, why, "a newer Python for the job")


def _tensorflow(python: PythonFacts, wheels: list[str]) -> Check:
    title = "TensorFlow"
    versions = [f"{name} {python.packages[name]}" for name in (*wheels, *_SHOWN) if name in python.packages]
    found = ", ".join(versions) or "no framework"
    if not wheels:
        return _check("tensorflow", title, "ok", f"not installed there; {found}")
    loaded = python.loaded
    if loaded is not None and loaded.error:
        why = f"it cannot be imported: {loaded.error}"
        remedy = f"{python.executable} -m pip check; then install it into a new environment"
        return _check("tensorflow", title, "change", found, why, remedy)
    return _check("tensorflow", title, "ok", found + ("" if loaded else "; not imported"))


def _requirements(python: PythonFacts) -> Check:
    title = "packages that fit"
    if python.unchecked:
        remedy = f"{python.executable} -m pip install packaging"
        return _check("requirements", title, "blind", python.unchecked, "requirements cannot be compared", remedy)
    if not python.unmet:
        return _check("requirements", title, "ok", "what frameworks require is what is installed")
    wrong = [one for one in python.unmet if one[2]]
    found = "; ".join(f"{owner} requires {wanted}, {have or 'not'} installed" for owner, wanted, have in python.unmet)
    wanted = " ".join(f"'{text.partition(';')[0].strip()}'" for _, text, _ in python.unmet)
    remedy = f"{python.executable} -m pip install {wanted}"
    if wrong:
        why = "the package was built and tested against other versions: imports fail, or calls do, later"
        return _check("requirements", title, "change", found, why, remedy)
    return _check(
        "requirements", title, "note", found, "parts of the package that need it fail when they are used", remedy
    )


def _twice(python: PythonFacts, wheels: list[str]) -> Iterator[Check]:
    full = [name for name in wheels if name not in _HOLLOW]
    if len(full) > 1:
        why = "each overwrote files of the other: the order of installation decides which one is imported"
        remedy = f"{python.executable} -m pip uninstall {' '.join(full)}; then install one of them"
        yield _check("tensorflow-twice", "TensorFlow twice", "change", ", ".join(full), why, remedy)


def _runtime_twice(python: PythonFacts) -> Iterator[Check]:
    both = [name for name in _RUNTIMES if name in python.packages]
    if len(both) > 1:
        known, way_out = _known_of(python, "onnxruntime-twice")
        why = f"each overwrote files of the other{known}"
        remedy = f"{python.executable} -m pip uninstall {' '.join(both)}{way_out}"
        yield _check("onnxruntime-twice", "ONNX Runtime twice", "change", ", ".join(both), why, remedy)


def _known(python: PythonFacts) -> Iterator[Check]:
    """Packages of which a public issue says that they do not fit each other."""
    for one in advisories.concerning(_versions(python)):
        if one.mismatch:
            found = ", ".join(f"{name} {_versions(python)[name]}" for name in one.packages)
            why = f"{one.package} of this version {one.what} ({one.source})"
            yield _check(f"known-{one.id}", "known mismatch", "change", found, why, one.remedy)


def _versions(python: PythonFacts) -> dict[str, str]:
    found = {**python.packages, "python": ".".join(map(str, python.version))}
    for name in _WHEELS:
        if name in python.packages:
            found.setdefault("tensorflow", python.packages[name])
    if "onnxruntime-gpu" in found:
        found.setdefault("onnxruntime", found["onnxruntime-gpu"])
    return found


def _known_of(python: PythonFacts, check: str) -> tuple[str, str]:
    """What is known of a check's symptom in these versions: its reason, and its remedy; "" each: nothing."""
    one = next((one for one in advisories.concerning(_versions(python)) if one.check == check), None)
    return (f"; {one.package} of this version {one.what} ({one.source})", f"; {one.remedy}") if one else ("", "")


def _gpu(host: Host, python: PythonFacts) -> Iterator[Check]:
    said = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+)\.(\d+)", host.text("/proc/driver/nvidia/version") or "")
    if not said:
        return
    driver = (int(said.group(1)), int(said.group(2)))
    found = f"driver {said.group(1)}.{said.group(2)}"
    if python.build.get("is_cuda_build") != "True":
        why = "there is an NVIDIA GPU, and this TensorFlow was built without CUDA: everything runs on the CPU"
        remedy = f"{python.executable} -m pip install 'tensorflow[and-cuda]' (after uninstalling the other)"
        yield _check("gpu-build", "GPU", "change", found, why, remedy)
        return
    cuda = python.build.get("cuda_version", "")
    cudnn = python.build.get("cudnn_version", "")
    found += f"; TensorFlow is built for CUDA {cuda or '?'}, cuDNN {cudnn or '?'}"
    major = int(cuda.split(".")[0]) if cuda.split(".")[0].isdigit() else 0
    needed = OLDEST_DRIVER.get(major)
    if needed and driver < needed:
        why = f"CUDA {major} needs a driver of {needed[0]}.{needed[1]} or newer: the GPU is not used"
        yield _check(
            "gpu-driver", "GPU", "change", found, why, "a newer driver, or a TensorFlow built for an older CUDA"
        )
        return
    own = next((v for name, v in python.packages.items() if name.startswith("nvidia-cudnn-")), "")
    if own and cudnn and own.split(".")[0] != cudnn.split(".")[0]:
        why = f"the installed cuDNN {own} is of another major version: convolutions fail, or the GPU is not used"
        remedy = f"{python.executable} -m pip install 'tensorflow[and-cuda]=={python.packages.get('tensorflow', '')}'"
        yield _check("gpu-cudnn", "GPU", "change", found, why, remedy)
        return
    if python.loaded is not None and python.loaded.no_gpu_libraries:
        known, way_out = _known_of(python, "gpu-libraries")
        why = f"TensorFlow did not find CUDA's libraries: everything runs on the CPU{known}"
        remedy = f"{python.executable} -m pip install 'tensorflow[and-cuda]'{way_out}"
        yield _check("gpu-libraries", "GPU", "change", found, why, remedy)
        return
    if python.loaded is not None:
        found += f"; it sees {python.loaded.gpus}"
    yield _check("gpu", "GPU", "ok", found)


def _cpu_flags(loaded: TensorFlowImport | None) -> Iterator[Check]:
    title = "instructions of the CPU"
    if loaded is None:
        why = "the wheel lists unused instructions when it is imported"
        yield _check(
            "cpu-flags", title, "blind", "TensorFlow was not imported", why, "stepscope doctor without --no-import"
        )
    elif loaded.unused:
        why = (
            "TensorFlow's own kernels (Eigen: elementwise ops, reductions, gathers) were built without them; matrix "
            "products and convolutions are oneDNN's, which takes what the CPU has"
        )
        remedy = "your own build pays off only if such ops dominate the step: stepscope trace JOB shows the ops"
        yield _check("cpu-flags", title, "note", f"not used: {' '.join(loaded.unused)}", why, remedy)
    elif not loaded.error:
        yield _check("cpu-flags", title, "ok", "the wheel was built for all that this CPU has, or does not say")


def _allocator(host: Host, python: PythonFacts) -> Iterator[Check]:
    found = python.allocator
    if found is None:
        return
    title = "allocator"
    how = {"default": "", "preloaded": ", preloaded", "linked": ", linked", "static": ", linked in"}.get(found.how, "")
    name = {"glibc": "the C library's malloc"}.get(found.name, found.name)
    said = f"{name}{how}"
    settings = [f"{key}={value}" for key, value in found.settings.items() if not key.startswith("TF_")]
    said += f" ({' '.join(settings)})" if settings else ""
    if found.pool == "oneDNN":
        said += "; TensorFlow's tensors are in oneDNN's pool"
        if found.how == "preloaded":
            why = "the preloaded library does not serve the tensors: it changes what Python and the runtime allocate"
            yield _check("allocator", title, "note", said, why, "keep it only if a measurement supports it")
            return
    elif found.pool == "none":
        said += "; TensorFlow's tensors are malloc's (oneDNN is off)"
        if host.environment.get("TF_ENABLE_ONEDNN_OPTS", "").lower() in _SWITCHED_OFF:
            why = (
                "TF_ENABLE_ONEDNN_OPTS=0 takes oneDNN's kernels and its pool away; a malloc that returns freed memory "
                "to the kernel then faults it in again in every step"
            )
            remedy = (
                "unset TF_ENABLE_ONEDNN_OPTS unless results must be equal to the last bit; MEM002 of stepscope run "
            )
            remedy += "says whether a job faults"
            yield _check("allocator", title, "note", said, why, remedy)
            return
    yield _check("allocator", title, "ok", said)


def _symbols(host: Host, python: PythonFacts) -> Iterator[Check]:
    """Check the names of the C library's functions: distributions strip it, and then only its exports have names."""
    if python.allocator is None or python.allocator.name != "glibc" or python.allocator.how != "default":
        return
    library = python.allocator.library
    try:
        elf = ElfFile.open(host.path(library))
    except (OSError, FormatError):
        return
    try:
        build_id = elf.build_id
        local = elf.defines("_int_malloc")
    finally:
        elf.close()
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    if local or (build_id and host.path(debug).exists()):
        yield _check("symbols", "names of the C library", "ok", "all of its functions have names")
        return
    why = "internal functions of malloc and memcpy appear as [unknown] in native stacks"
    yield _check("symbols", "names of the C library", "blind", f"{library} is stripped", why, "apt install libc6-dbg")
