"""Checks of the processors: how many a job may use, competition for them, and their frequency.

Frameworks make as many threads as the affinity mask has CPUs; none of them considers a quota.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.machine.host import Host
from stepscope.model.report.doctor import Check, Outcome
from stepscope.native.cgroups import cgroup

_POOLS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
"""Variables that set the sizes of TensorFlow's two pools and of OpenMP's."""
_MIN_THROTTLED_RATIO = 0.01
"""Share of the quota's periods above which throttling is reported."""
_MIN_PRESSURE_PERCENT = 10.0
"""Pressure above which waiting is reported. Source: knowledge of the field; a stalled tenth is beyond what a job's own
threads cost each other."""
_OWN_SCALING = ("intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp", "cppc_cpufreq")
"""Drivers with which the processor chooses its own frequency, even under "powersave"."""
_FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen")


def _check(name: str, title: str, outcome: Outcome, found: str, why: str = "", remedy: str = "") -> Check:
    return Check(name=name, group="cpu", title=title, outcome=outcome, found=found, why=why, remedy=remedy)


def checks(host: Host) -> Iterator[Check]:
    """All checks of processors."""
    yield _quota(host)
    yield from _throttled(host)
    yield _cpuset(host)
    yield _pressure(host)
    yield _governor(host)
    yield from _clock(host)


def _quota(host: Host) -> Check:
    title = "CPU quota"
    cpus = host.cpus()
    quotas = [quota for folder in cgroup.folders("self", "cpu", host.root) if (quota := cgroup.quota_milli(folder)) > 0]
    if not quotas:
        return _check("cpu-quota", title, "ok", f"none; {cpus} CPUs")
    cores = min(quotas) / 1000
    found = f"{cores:g} of {cpus} CPUs"
    if cores >= cpus:
        return _check("cpu-quota", title, "ok", found)
    threads = max(1, int(cores))
    wanted = {name: host.environment.get(name, "") for name in _POOLS}
    if all(value.isdigit() and 0 < int(value) <= max(threads, cores) for value in wanted.values()):
        return _check("cpu-quota", title, "ok", f"{found}; pools are set to it by {', '.join(_POOLS)}")
    why = f"TensorFlow, tf.data and OpenMP make {_threads(cpus)} each: they use up the quota, then all of them stop"
    remedy = (
        " ".join(f"{name}={threads}" for name in _POOLS)
        + f", and tf.data's options.threading.private_threadpool_size={threads}"
    )
    return _check("cpu-quota", title, "change", found, why, remedy)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _throttled(host: Host) -> Iterator[Check]:
    for folder in cgroup.folders("self", "cpu", host.root):
        if cgroup.quota_milli(folder) <= 0:
            continue
        words = cgroup.read(folder / "cpu.stat").split()
        values = {key: int(value) for key, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}
        periods, throttled = values.get("nr_periods", 0), values.get("nr_throttled", 0)
        if not periods:
            continue
        found = f"in {throttled:,} of {periods:,} periods since the group was created"
        if throttled / periods < _MIN_THROTTLED_RATIO:
            yield _check("cpu-throttled", "throttling", "ok", found)
            return
        why = "all threads of the group were stopped for the rest of these periods"
        remedy = "fewer threads (see CPU quota), or a larger quota"
        yield _check("cpu-throttled", "throttling", "note", found, why, remedy)
        return


def _cpuset(host: Host) -> Check:
    cpus, online = host.cpus(), host.online()
    if cpus >= online:
        return _check("cpu-set", "CPUs that may be used", "ok", f"all {online}")
    why = f"code that asks os.cpu_count() makes {online} threads or workers for {cpus}; TensorFlow's pools make {cpus}"
    remedy = f"where a program counts CPUs itself: len(os.sched_getaffinity(0)), or give it {cpus}"
    return _check("cpu-set", "CPUs that may be used", "note", f"{cpus} of {online}", why, remedy)


def _pressure(host: Host) -> Check:
    title = "waiting for CPUs"
    text = host.text("/proc/pressure/cpu")
    found = re.search(r"some avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+)", text or "")
    if not found:
        why = "competition for the CPUs then shows only in a running job"
        remedy = "boot with psi=1, where the kernel has it; stepscope run reads waiting threads either way"
        return _check("cpu-pressure", title, "blind", "no /proc/pressure/cpu", why, remedy)
    minute, minutes = float(found[2]), float(found[3])
    said = f"{minute:.0f} % of the last minute, {minutes:.0f} % of the last five"
    if min(minute, minutes) < _MIN_PRESSURE_PERCENT:
        return _check("cpu-pressure", title, "ok", said)
    why = (
        "tasks are ready but cannot run: other processes compete, or one job has more threads than CPUs; times "
        "measured now include this waiting"
    )
    remedy = (
        "find the processes with top; stepscope run distinguishes a starved job (CFG001) from too many threads (CFG003)"
    )
    return _check("cpu-pressure", title, "note", said, why, remedy)


def _governor(host: Host) -> Check:
    title = "frequency governor"
    folder = "/sys/devices/system/cpu/cpu0/cpufreq"
    governor = host.text(f"{folder}/scaling_governor")
    if governor is None:
        return _check("governor", title, "ok", "not measurable here: no cpufreq, as in virtual machines")
    driver = host.text(f"{folder}/scaling_driver") or "unknown driver"
    found = f"{governor} ({driver})"
    if governor != "powersave" or driver in _OWN_SCALING:
        return _check("governor", title, "ok", found)
    why = "the CPUs stay at their lowest frequency"
    return _check("governor", title, "change", found, why, "sudo cpupower frequency-set -g performance")


def _clock(host: Host) -> Iterator[Check]:
    name = host.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if name is None:
        return
    if name in _FAST_CLOCKS:
        yield _check("clock", "clock", "ok", name)
        return
    why = "reading the time takes a system call, some microseconds: programs and profilers that read it often are slow"
    remedy = "dmesg | grep -i -E 'tsc|clocksource' says why the kernel gave up the fast one"
    yield _check("clock", "clock", "note", name, why, remedy)
