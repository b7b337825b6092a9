"""What the doctor says of hosts and Pythons, and what it must never say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.machine import hosts

from stepscope.machine import cpu, libraries, memory, profiling
from stepscope.machine.host import Host, numbers
from stepscope.machine.python import PythonFacts
from stepscope.model.report.doctor import Check
from stepscope.tables.allocator_info import AllocatorInfo

NO_PERF = {"clock-user": "forbidden", "clock-kernel": "forbidden", "cycles": "the processor offers none"}


def all_of(host: Host, python: PythonFacts | None = None) -> dict[str, Check]:
    """Every check by its name."""
    found = [*profiling.checks(host), *cpu.checks(host), *memory.checks(host)]
    found += libraries.checks(host, python or hosts.python(loaded=hosts.loaded(), allocator=hosts.STOCK))
    assert len({check.name for check in found}) == len(found)
    return {check.name: check for check in found}


def test_nothing_is_said_of_a_good_machine(tmp_path: Path) -> None:
    """Every row is fine, and none asks for anything."""
    found = all_of(hosts.host(tmp_path, hosts.GOOD)).values()
    assert [check.name for check in found if check.outcome != "ok" or check.why or check.remedy] == []


@pytest.mark.parametrize("files", [hosts.GOOD, hosts.CONTAINER, hosts.V1, hosts.POOR])
def test_what_is_said_has_a_reason_and_a_remedy(tmp_path: Path, files: Mapping[str, str]) -> None:
    """Each row that is not fine says why it matters and what to do."""
    for check in all_of(hosts.host(tmp_path, files, denied=NO_PERF)).values():
        if check.outcome != "ok":
            assert check.why, check.name
            assert check.remedy or check.name == "huge-pages", check.name


@pytest.mark.parametrize(
    ("files", "name", "outcome", "found", "remedy"),
    [
        (hosts.CONTAINER, "cpu-quota", "change", "2 of 8 CPUs", "TF_NUM_INTRAOP_THREADS=2"),
        (hosts.CONTAINER, "cpu-throttled", "note", "400 of 1,000", "fewer threads"),
        (hosts.CONTAINER, "memory-limit", "change", "4 GiB", "shuffle"),
        (hosts.CONTAINER, "memory-kills", "note", "1 process", "dmesg"),
        (hosts.CONTAINER, "shared-memory", "note", "64 MiB", "--shm-size"),
        (hosts.CONTAINER, "container", "ok", "/.dockerenv", ""),
        (hosts.CONTAINER, "huge-pages", "note", "madvise", "--try glibc-hugepages"),
        (hosts.V1, "cpu-quota", "change", "1.5 of 8 CPUs", "TF_NUM_INTRAOP_THREADS=1"),
        (hosts.V1, "memory-limit", "ok", "1 GiB", ""),
        (hosts.POOR, "cpu-set", "note", "2 of 8", "sched_getaffinity"),
        (hosts.POOR, "cpu-pressure", "note", "70 %", "CFG001"),
        (hosts.POOR, "governor", "change", "powersave (acpi-cpufreq)", "cpupower"),
        (hosts.POOR, "clock", "note", "hpet", "dmesg"),
        (hosts.POOR, "swap", "note", "of 977 MiB", "fewer jobs"),
        (hosts.POOR, "numa", "note", "33 %", "numactl"),
        (hosts.POOR, "huge-pages", "note", "never", "shell"),
        (hosts.POOR, "kernel-names", "blind", "2", "kptr_restrict=0"),
        (hosts.POOR, "ptrace", "blind", "1", "stepscope attach"),
        (hosts.POOR, "perf-memory", "blind", "64", "perf_event_mlock_kb"),
        (hosts.POOR, "sample-rate", "note", "250", "perf_event_max_sample_rate"),
        (hosts.POOR, "system-calls", "blind", "no access", "root"),
    ],
)
def test_rows(tmp_path: Path, files: Mapping[str, str], name: str, outcome: str, found: str, remedy: str) -> None:
    """Each row says what was read, and what to do about it."""
    check = all_of(hosts.host(tmp_path, files))[name]
    assert check.outcome == outcome
    assert found in check.found
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("held", "outcome"),
    [("200000", "ok"), ("c000000000", "ok"), ("8000000000", "blind"), ("4000000000", "blind"), ("0", "blind")],
)
def test_calls_without_tracefs_are_seen_by_who_may_load_programs(tmp_path: Path, held: str, outcome: str) -> None:
    """CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON: a BPF program needs no tracefs."""
    call = "/sys/kernel/tracing/events/syscalls/sys_enter_madvise/id"
    files = {**hosts.CONTAINER, call: "", "/proc/self/status": f"CapEff:\t{held}\nCpus_allowed_list:\t0-7"}
    assert all_of(hosts.host(tmp_path, files))["system-calls"].outcome == outcome


def test_pools_that_fit_the_quota_are_fine(tmp_path: Path) -> None:
    """Who has set the pools is not told to; one pool that is left out is."""
    pools = {"TF_NUM_INTRAOP_THREADS": "2", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "2"}
    host = hosts.host(tmp_path, hosts.CONTAINER, environment=pools)
    assert all_of(host)["cpu-quota"].outcome == "ok"
    fewer = hosts.host(tmp_path, hosts.CONTAINER, environment={**pools, "OMP_NUM_THREADS": ""})
    assert all_of(fewer)["cpu-quota"].outcome == "change"
    more = hosts.host(tmp_path, hosts.CONTAINER, environment={**pools, "TF_NUM_INTRAOP_THREADS": "3"})
    assert all_of(more)["cpu-quota"].outcome == "change"


@pytest.mark.parametrize(("quota", "outcome"), [("799000 100000", "change"), ("800000 100000", "ok"), ("max 1", "ok")])
def test_the_edge_of_a_quota(tmp_path: Path, quota: str, outcome: str) -> None:
    """As many CPUs as there are is no quota."""
    host = hosts.host(tmp_path, {**hosts.GOOD, "/sys/fs/cgroup/cpu.max": quota})
    assert all_of(host)["cpu-quota"].outcome == outcome


def test_without_rights_each_part_names_what_allows_it(tmp_path: Path) -> None:
    """Perf that is missing, forbidden, or without the kernel's part are three different lines."""
    absent = all_of(hosts.host(tmp_path, hosts.GOOD, perf=None))["perf"]
    forbidden = all_of(hosts.host(tmp_path, hosts.GOOD, denied=NO_PERF))["perf"]
    partly = all_of(hosts.host(tmp_path, hosts.GOOD, denied={"clock-kernel": "forbidden"}))["perf"]
    inside = all_of(hosts.host(tmp_path / "c", hosts.CONTAINER, denied=NO_PERF))["perf"]
    assert [check.outcome for check in (absent, forbidden, partly, inside)] == ["blind"] * 4
    assert "apt install" in absent.remedy
    assert forbidden.remedy == "sudo sysctl kernel.perf_event_paranoid=1"
    assert "CAP_PERFMON" in partly.remedy
    assert "--cap-add PERFMON" in inside.remedy


RUNTIMES = {"onnxruntime": "1.23.2", "onnxruntime-gpu": "1.23.2"}
CUDNN_8 = {"onnxruntime-gpu": "1.19.2", "nvidia-cudnn-cu12": "8.9.2.26"}


@pytest.mark.parametrize(
    ("python", "name", "outcome", "said"),
    [
        (hosts.python({"numpy": "2.0"}), "tensorflow", "ok", "not installed"),
        (hosts.python(version=(3, 8, 1)), "python", "change", "3.8.1"),
        (hosts.python(loaded=hosts.loaded(error="ImportError: numpy")), "tensorflow", "change", "2.21.0"),
        (hosts.python(unmet=(("tensorflow", "numpy<2", "2.1"),)), "requirements", "change", "numpy<2, 2.1 installed"),
        (hosts.python(unmet=(("keras", "rich", ""),)), "requirements", "note", "rich, not installed"),
        (hosts.python(unchecked="no packaging"), "requirements", "blind", "no packaging"),
        (hosts.python({"tensorflow": "2.16.1", "tensorflow-cpu": "2.15.0"}), "tensorflow-twice", "change", "cpu"),
        (hosts.python({"tensorflow": "2.14.0", "numpy": "2.3.4"}), "known-tensorflow-102743", "change", "numpy 2.3.4"),
        (hosts.python({"torch": "2.2.2+cpu", "numpy": "2.3.4"}), "known-pytorch-132179", "change", "torch 2.2.2"),
        (hosts.python({"onnxruntime-gpu": "1.18.1", "numpy": "2.0"}), "known-onnxruntime-21063", "change", "1.18.1"),
        (hosts.python(CUDNN_8), "known-onnxruntime-22198", "change", "nvidia-cudnn-cu12 8.9.2.26"),
        (hosts.python(RUNTIMES), "onnxruntime-twice", "change", "onnxruntime, onnxruntime-gpu"),
        (hosts.python(loaded=hosts.loaded(unused=("AVX2", "FMA"))), "cpu-flags", "note", "AVX2 FMA"),
        (hosts.python(loaded=hosts.loaded()), "cpu-flags", "ok", "wheel"),
        (hosts.python(), "cpu-flags", "blind", "not imported"),
        (hosts.python(allocator=hosts.STOCK), "allocator", "ok", "oneDNN's pool"),
        (hosts.python(allocator=hosts.PRELOADED), "allocator", "note", "jemalloc, preloaded (MALLOC_CONF"),
    ],
)
def test_packages(tmp_path: Path, python: PythonFacts, name: str, outcome: str, said: str) -> None:
    """Each row about packages says what is installed, and what to do about it."""
    check = all_of(hosts.host(tmp_path, hosts.GOOD), python)[name]
    assert check.outcome == outcome
    assert said in check.found


GPU = {
    **hosts.GOOD,
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023",
}
OPEN_GPU = {
    **hosts.GOOD,
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  515.43.04  Release Build",
}
CUDA12 = {"is_cuda_build": "True", "cuda_version": "12.5.1", "cudnn_version": "9"}


@pytest.mark.parametrize(
    ("files", "build", "packages", "lost", "name"),
    [
        (GPU, {}, {}, False, "gpu-build"),
        (GPU, CUDA12, {}, False, "gpu"),
        (OPEN_GPU, CUDA12, {}, False, "gpu-driver"),
        (GPU, {**CUDA12, "cuda_version": "13.0"}, {}, False, "gpu-driver"),
        (GPU, CUDA12, {"nvidia-cudnn-cu12": "8.9.7"}, False, "gpu-cudnn"),
        (GPU, CUDA12, {"nvidia-cudnn-cu12": "9.3.0"}, False, "gpu"),
        (GPU, CUDA12, {}, True, "gpu-libraries"),
    ],
)
def test_gpus(
    tmp_path: Path,
    files: Mapping[str, str],
    build: Mapping[str, str],
    packages: Mapping[str, str],
    lost: bool,
    name: str,
) -> None:
    """A GPU that this TensorFlow cannot use has one row that says why; without a GPU there is none."""
    facts = hosts.python({"tensorflow": "2.21.0", **packages}, build=build, loaded=hosts.loaded(no_gpu_libraries=lost))
    found = all_of(hosts.host(tmp_path, files), facts)
    assert [key for key in found if key.startswith("gpu")] == [name]
    assert found[name].outcome == ("ok" if name == "gpu" else "change")
    without = all_of(hosts.host(tmp_path / "none", hosts.GOOD), facts)
    assert [key for key in without if key.startswith("gpu")] == []


NEVER = re.compile(
    r"LD_PRELOAD|libjemalloc|libtcmalloc|preload-|-X perf|muzzy|RELEASE_RATE|ONEDNN_OPTS=1|turn off oneDNN"
    r"|disable oneDNN|stack-size|swappiness|\b11x|\b32x|11-32|alignment|echo (?:always|never|madvise)",
    re.IGNORECASE,
)
"""Advice that was measured to do nothing or harm, and orders to change every process of a host."""


@pytest.mark.parametrize("files", [hosts.GOOD, hosts.CONTAINER, hosts.V1, hosts.POOR])
@pytest.mark.parametrize("allocator", [hosts.STOCK, hosts.PRELOADED, hosts.NO_POOL])
def test_advice_that_must_not_be_given(tmp_path: Path, files: Mapping[str, str], allocator: AllocatorInfo) -> None:
    """No allocator to preload, no oneDNN to switch off, no larger stacks, no swappiness: on no host."""
    python = hosts.python(allocator=allocator, loaded=hosts.loaded())
    environment = {"TF_ENABLE_ONEDNN_OPTS": "0"} if allocator is hosts.NO_POOL else {}
    host = hosts.host(tmp_path, files, denied=NO_PERF, environment=environment)
    for check in all_of(host, python).values():
        assert not NEVER.search(check.remedy), check


def test_no_tuning_where_there_is_nothing_to_tune(tmp_path: Path) -> None:
    """One node, no swap and no frequency to set: no remedy; kernel versions of 2023 and 2024 alone say nothing."""
    files = {name: text for name, text in hosts.GOOD.items() if "cpufreq" not in name}
    for version in ("6.7.0", "6.12.1", "6.18.0"):
        host = hosts.host(tmp_path / version, {**files, "/proc/sys/kernel/osrelease": version})
        found = all_of(host)
        for name in ("governor", "swap", "numa", "huge-pages"):
            assert (found[name].outcome, found[name].remedy) == ("ok", "")


def test_onednn_is_never_to_be_switched_off(tmp_path: Path) -> None:
    """Who has switched it off is told what that takes away; nobody is told to do it."""
    host = hosts.host(tmp_path, hosts.GOOD, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})
    check = all_of(host, hosts.python(allocator=hosts.NO_POOL))["allocator"]
    assert check.outcome == "note"
    assert check.remedy.startswith("unset TF_ENABLE_ONEDNN_OPTS")


def test_a_host_without_files(tmp_path: Path) -> None:
    """Where nothing can be read, nothing fails, and nothing is taken for a trouble."""
    found = all_of(hosts.host(tmp_path, {}))
    assert [check.name for check in found.values() if check.outcome == "change"] == []


@pytest.mark.parametrize(("text", "expected"), [("0-2,5", [0, 1, 2, 5]), ("", []), ("3", [3]), ("a-b,1", [1])])
def test_lists_of_the_kernel(text: str, expected: list[int]) -> None:
    """Ranges and single numbers; what is neither is left out."""
    assert numbers(text) == expected
