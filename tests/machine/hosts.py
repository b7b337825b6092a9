"""Hosts that are folders: the files that the doctor reads, and what the kernel would answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stepscope.machine.host import Host
from stepscope.machine.nvml import Gpus
from stepscope.machine.python import PythonFacts, TensorFlowImport
from stepscope.tables.allocator_info import AllocatorInfo

GOOD = {
    "/proc/self/status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\nTHP_enabled:\t1",
    "/proc/self/cgroup": "0::/",
    "/proc/self/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,size=8388608k 0 0\nnone /sys/kernel/tracing tracefs rw 0 0",
    "/proc/kallsyms": "ffffffff81000000 T _stext",
    "/proc/meminfo": "MemTotal:       33554432 kB\nMemFree: 1 kB",
    "/proc/swaps": "Filename Type Size Used Priority",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.50 avg300=0.10 total=1\nfull avg10=0.00 avg60=0 avg300=0 total=0",
    "/proc/sys/kernel/perf_event_paranoid": "1",
    "/proc/sys/kernel/kptr_restrict": "0",
    "/proc/sys/kernel/perf_event_mlock_kb": "516",
    "/proc/sys/kernel/perf_event_max_sample_rate": "100000",
    "/sys/kernel/tracing/events/syscalls/sys_enter_madvise/id": "99",
    "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/devices/system/cpu/online": "0-7",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "/sys/devices/system/node/node0/numastat": "local_node 10\nother_node 0",
    "/sys/fs/cgroup/cgroup.controllers": "cpu memory",
}
"""A machine with nothing to be said about it."""
CONTAINER = {
    **GOOD,
    "/.dockerenv": "",
    "/proc/self/mounts": "shm /dev/shm tmpfs rw,size=65536k 0 0",
    "/sys/fs/cgroup/cpu.max": "200000 100000",
    "/sys/fs/cgroup/cpu.stat": "nr_periods 1000\nnr_throttled 400\nthrottled_usec 5",
    "/sys/fs/cgroup/memory.max": "4294967296",
    "/sys/fs/cgroup/memory.current": "4200000000",
    "/sys/fs/cgroup/memory.stat": "anon 4100000000\ninactive_file 50000000",
    "/sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
}
"""A container as engines start them when nobody asks, with a quota and a limit that is nearly reached."""
V1 = {
    **{name: text for name, text in GOOD.items() if not name.startswith("/sys/fs/cgroup")},
    "/proc/self/cgroup": "4:memory:/job\n1:cpu,cpuacct:/job\n",
    "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "150000",
    "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
    "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824",
    "/sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1000000",
}
"""The same with control groups of version 1."""
POOR = {
    **GOOD,
    "/proc/self/status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\nTHP_enabled:\t0",
    "/proc/kallsyms": "0000000000000000 T _stext",
    "/proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1000000 500000 -2",
    "/proc/pressure/cpu": "some avg10=99.00 avg60=70.00 avg300=40.00 total=1",
    "/proc/sys/kernel/perf_event_paranoid": "3",
    "/proc/sys/kernel/kptr_restrict": "2",
    "/proc/sys/kernel/yama/ptrace_scope": "1",
    "/proc/sys/kernel/perf_event_mlock_kb": "64",
    "/proc/sys/kernel/perf_event_max_sample_rate": "250",
    "/sys/kernel/tracing/events/syscalls/sys_enter_madvise/id": "",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    "/sys/devices/system/node/node1/numastat": "local_node 10\nother_node 10",
}
"""A machine where nearly everything is to be said."""


def host(
    root: Path,
    files: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    denied: Mapping[str, str] | None = None,
    perf: str | None = "/usr/bin/perf",
    gpus: Gpus | None = None,
) -> Host:
    """A host of ``files``; ``denied``: why a counter cannot be opened."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(
        root=root,
        environment=environment or {},
        program=lambda name: perf,
        try_counting=lambda counter: (denied or {}).get(counter, ""),
        libc=(2, 36),
        gpus=lambda: gpus or Gpus(),
    )


def python(
    packages: Mapping[str, str] | None = None,
    *,
    loaded: TensorFlowImport | None = None,
    build: Mapping[str, str] | None = None,
    unmet: tuple[tuple[str, str, str], ...] = (),
    allocator: AllocatorInfo | None = None,
    version: tuple[int, ...] = (3, 11, 7),
    unchecked: str = "",
    torch_cuda: str = "",
) -> PythonFacts:
    """A Python with TensorFlow, or with ``packages``."""
    return PythonFacts(
        executable="/venv/bin/python",
        version=version,
        packages={"tensorflow": "2.21.0", "numpy": "2.4.6"} if packages is None else packages,
        unmet=unmet,
        unchecked=unchecked,
        build=build or {},
        torch_cuda=torch_cuda,
        allocator=allocator,
        loaded=loaded,
    )


def loaded(*, error: str = "", unused: tuple[str, ...] = (), no_gpu_libraries: bool = False) -> TensorFlowImport:
    """What importing TensorFlow gave."""
    return TensorFlowImport(version="2.21.0", error=error, gpus=0, unused=unused, no_gpu_libraries=no_gpu_libraries)


STOCK = AllocatorInfo(name="glibc", how="default", library="/absent/libc.so.6", pool="oneDNN")
"""The malloc of a stock wheel's process."""
PRELOADED = AllocatorInfo(name="jemalloc", how="preloaded", pool="oneDNN", settings={"MALLOC_CONF": "dirty_decay_ms:0"})
NO_POOL = AllocatorInfo(name="glibc", how="default", library="/absent/libc.so.6", pool="none")
