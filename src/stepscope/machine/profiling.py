"""Checks of what stepscope may observe: perf, the kernel's stacks and names, system calls, other processes.

Source: Documentation/admin-guide/perf-security.rst, Documentation/admin-guide/sysctl/kernel.rst, Yama.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.machine.host import Host
from stepscope.model.report.doctor import Check, Outcome

_KERNEL = "/proc/sys/kernel/"
_PAGE_KB = 4
_RING_KB = 512 + _PAGE_KB
"""Memory that perf record locks for each CPU by default."""
_NOBODY = 3
"""Value of ptrace_scope that forbids even root; it stays until the next boot."""
_LOW_RATE = 1000
"""Samples per second. A window of stepscope takes at most 200 for each event and CPU."""


def _check(name: str, title: str, outcome: Outcome, found: str, why: str = "", remedy: str = "") -> Check:
    return Check(name=name, group="profiling", title=title, outcome=outcome, found=found, why=why, remedy=remedy)


def checks(host: Host) -> Iterator[Check]:
    """All checks of visibility, with the settings that would allow more."""
    yield _perf(host)
    yield _kernel_names(host)
    yield _calls(host)
    yield _counters(host)
    yield _ptrace(host)
    yield from _locked(host)
    yield from _rate(host)


def _perf(host: Host) -> Check:
    title = "native stacks"
    level = host.number(_KERNEL + "perf_event_paranoid")
    setting = f"kernel.perf_event_paranoid {'absent' if level is None else level}"
    if host.program("perf") is None:
        why = "flame graphs below Python and causes of page faults are recorded with perf"
        remedy = "apt install linux-perf (Ubuntu: linux-tools-$(uname -r))"
        return _check("perf", title, "blind", f"perf is not installed; {setting}", why, remedy)
    own = host.try_counting("clock-user")
    if own:
        why = "nothing below Python can be sampled"
        if host.is_container:
            remedy = "start the container with --cap-add PERFMON and a seccomp profile that allows perf_event_open"
            remedy += "; on its host: sudo sysctl kernel.perf_event_paranoid=1"
        else:
            remedy = "sudo sysctl kernel.perf_event_paranoid=1"
        return _check("perf", title, "blind", f"{own}; {setting}", why, remedy)
    kernel = host.try_counting("clock-kernel")
    if kernel:
        why = "time in the kernel (page faults, madvise) is missing in stacks"
        remedy = "sudo sysctl kernel.perf_event_paranoid=1 (or run stepscope with CAP_PERFMON)"
        return _check("perf", title, "blind", f"without the kernel's part: {kernel}; {setting}", why, remedy)
    return _check("perf", title, "ok", f"perf, with the kernel's part; {setting}")


def _kernel_names(host: Host) -> Check:
    level = host.number(_KERNEL + "kptr_restrict")
    first = (host.text("/proc/kallsyms") or "").split(" ", 1)[0]
    found = f"kernel.kptr_restrict {'absent' if level is None else level}"
    if first.strip("0"):
        return _check("kernel-names", "names in the kernel", "ok", found)
    why = "kernel functions appear as addresses in stacks: a page fault looks like a system call"
    remedy = "sudo sysctl kernel.kptr_restrict=0"
    if not level:  # under 0, too, addresses are hidden from unprivileged users if perf_event_paranoid is above 1
        remedy = "sudo sysctl kernel.perf_event_paranoid=1, or run stepscope as root"
    return _check("kernel-names", "names in the kernel", "blind", found, why, remedy)


def _calls(host: Host) -> Check:
    title = "system calls"
    if host.text("/sys/kernel/tracing/events/syscalls/sys_enter_madvise/id"):
        return _check("system-calls", title, "ok", "events of tracefs can be read")
    if host.may("CAP_SYS_ADMIN") or (host.may("CAP_BPF") and host.may("CAP_PERFMON")):
        return _check("system-calls", title, "ok", "no events of tracefs, but programs may be loaded that see them")
    why = "the calls that release memory (madvise, munmap, brk) cannot be identified"
    mounts = (host.text("/proc/self/mounts") or "").splitlines()
    if any(line.split()[1:3] == ["/sys/kernel/tracing", "tracefs"] for line in mounts):
        remedy = "run stepscope as root, or give it read access to /sys/kernel/tracing"
        return _check("system-calls", title, "blind", "no access to the events of tracefs", why, remedy)
    remedy = "sudo mount -t tracefs nodev /sys/kernel/tracing"
    return _check("system-calls", title, "blind", "tracefs is not mounted", why, remedy)


def _counters(host: Host) -> Check:
    title = "counters of the processor"
    problem = host.try_counting("cycles")
    if not problem:
        return _check("pmu", title, "ok", "cycles can be counted")
    why = "instructions per cycle, TLB and cache misses cannot be counted; CPU time and page faults can"
    if "paranoid" in problem:
        return _check("pmu", title, "blind", problem, why, "sudo sysctl kernel.perf_event_paranoid=1")
    remedy = "look on the machine itself, or give the virtual machine a virtual PMU"
    return _check("pmu", title, "blind", problem, why, remedy)


def _ptrace(host: Host) -> Check:
    title = "other processes"
    scope = host.number(_KERNEL + "yama/ptrace_scope")
    if scope is None:
        return _check("ptrace", title, "ok", "no Yama: processes of the same user may be examined")
    found = f"kernel.yama.ptrace_scope {scope}"
    if scope == 0 or (host.may("CAP_SYS_PTRACE") and scope < _NOBODY):
        return _check("ptrace", title, "ok", found)
    why = "Python's stacks cannot be read from a process that stepscope has not started; `stepscope run` has them"
    remedy = "sudo sysctl kernel.yama.ptrace_scope=0, or sudo stepscope attach PID"
    if scope >= _NOBODY:
        remedy = "start jobs with stepscope run: this setting stays until the host boots again"
    return _check("ptrace", title, "blind", found, why, remedy)


def _locked(host: Host) -> Iterator[Check]:
    allowed = host.number(_KERNEL + "perf_event_mlock_kb")
    if allowed is None:
        return
    free = host.may("CAP_PERFMON") or host.may("CAP_SYS_ADMIN")
    found = f"kernel.perf_event_mlock_kb {allowed}, for each CPU"
    if free or allowed >= _RING_KB:
        yield _check("perf-memory", "perf's buffers", "ok", found)
        return
    why = f"perf record locks {_RING_KB} KB for each CPU and fails if it may not"
    remedy = f"sudo sysctl kernel.perf_event_mlock_kb={_RING_KB}"
    yield _check("perf-memory", "perf's buffers", "blind", found, why, remedy)


def _rate(host: Host) -> Iterator[Check]:
    rate = host.number(_KERNEL + "perf_event_max_sample_rate")
    if rate is None:
        return
    found = f"kernel.perf_event_max_sample_rate {rate}"
    if rate >= _LOW_RATE:
        yield _check("sample-rate", "sampling rate", "ok", found)
        return
    why = "the kernel has lowered it because samples took too long; windows contain fewer than requested"
    yield _check(
        "sample-rate", "sampling rate", "note", found, why, "sudo sysctl kernel.perf_event_max_sample_rate=100000"
    )
