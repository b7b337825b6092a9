"""Checks of memory: limits, huge pages, swap, nodes, shared memory.

Huge pages are said to be worth a measurement, never to be a fix: their gain depends on the job. The kernel's treatment
of a job's mappings depends on these mappings (``stepscope memory``), not on the kernel's version.

Source: Documentation/admin-guide/mm/transhuge.rst, cgroup-v2.rst; numastat: Documentation/admin-guide/numastat.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.machine.host import Host
from stepscope.model.report.doctor import Check, Outcome
from stepscope.model.report.remedies import HUGE_PAGES
from stepscope.native.cgroups import cgroup
from stepscope.tables.units import format_bytes, format_number_of

_THP = "/sys/kernel/mm/transparent_hugepage/"
_FULL_RATIO = 0.9
_SHARED = "/dev/" + "shm"
_SMALL_SHARED = 64 << 20
"""Default size of container engines."""
_REMOTE_RATIO = 0.2
"""Share of remote pages above which it is reported. Source: knowledge of the field."""
_GLIBC_HUGE_PAGES = (2, 35)
"""First version with glibc.malloc.hugetlb. Source: NEWS of glibc 2.35."""


def _check(name: str, title: str, outcome: Outcome, found: str, why: str = "", remedy: str = "") -> Check:
    return Check(name=name, group="memory", title=title, outcome=outcome, found=found, why=why, remedy=remedy)


def checks(host: Host) -> Iterator[Check]:
    """All checks of memory."""
    yield from _limit(host)
    yield _huge_pages(host)
    yield _swap(host)
    yield _nodes(host)
    yield _shared(host)
    yield _container(host)


def _limit(host: Host) -> Iterator[Check]:
    title = "memory limit"
    folders = cgroup.folders("self", "memory", host.root)
    limits = [(limit, folder) for folder in folders if (limit := cgroup.memory_limit(folder)) > 0]
    total = int(host.fields("/proc/meminfo").get("MemTotal", "0 kB").split()[0]) << 10
    if not limits or min(limits)[0] >= total > 0:
        yield _check("memory-limit", title, "ok", f"none; the host has {format_bytes(total)}")
        return
    limit, folder = min(limits)
    used = max(cgroup.number(folder / "memory.current"), cgroup.number(folder / "memory.usage_in_bytes"))
    words = cgroup.read(folder / "memory.stat").split()
    stat = {key: int(value) for key, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}
    held = max(0, used - stat.get("total_inactive_file", stat.get("inactive_file", 0)))
    found = (
        f"{format_bytes(limit)} of the host's {format_bytes(total)}, {format_bytes(held)} held besides idle page cache"
    )
    if held > _FULL_RATIO * limit:
        why = "further memory is taken from the job's page cache first; then the kernel kills the job"
        remedy = "smaller cache() and shuffle() buffers, or a larger limit"
        yield _check("memory-limit", title, "change", found, why, remedy)
    else:
        yield _check("memory-limit", title, "ok", found)
    events = {
        **host.fields(_below(host, folder, "memory.events")),
        **host.fields(_below(host, folder, "memory.oom_control")),
    }
    killed = int(events.get("oom_kill", "0"))
    if killed:
        found = f"killed at the limit since the group was made: {format_number_of(str(killed), 'processes')}"
        yield _check(
            "memory-kills",
            "kills",
            "note",
            found,
            "a job that died without a message may be one of them",
            "dmesg names them",
        )


def _below(host: Host, folder: object, name: str) -> str:
    return f"{folder}/{name}".removeprefix(str(host.root).rstrip("/"))


def _huge_pages(host: Host) -> Check:
    title = "huge pages"
    text = host.text(_THP + "enabled")
    if text is None:
        return _check("huge-pages", title, "ok", "not built into this kernel")
    mode, defrag = _chosen(text), _chosen(host.text(_THP + "defrag") or "")
    found = f"transparent_hugepage {mode}, defrag {defrag}"
    allowed = host.fields("/proc/self/status").get("THP_enabled", "1")
    if allowed == "0":
        why = "disabled for processes started from here (prctl PR_SET_THP_DISABLE of a parent)"
        return _check("huge-pages", title, "note", found, why, "start the job from a shell in which they are enabled")
    if mode == "always":
        return _check("huge-pages", title, "ok", found)
    why = (
        "a job's memory is in pages of 4 KiB unless it asks; that matters for random access to gigabytes (1.2 times, "
        "measured on gathers from a table of 1 GB) and if memory is faulted in again in every step, otherwise hardly"
    )
    if mode == "never":
        remedy = "none for one job: the host says never; an administrator can set madvise, which alone changes nothing"
        return _check("huge-pages", title, "note", found, why, remedy)
    if host.libc and host.libc < _GLIBC_HUGE_PAGES:
        remedy = "this C library has no switch for it (glibc 2.35 has); measure with madvise in the program itself"
        return _check("huge-pages", title, "note", found, why, remedy)
    remedy = f"measure one job with and without: stepscope whatif --try {HUGE_PAGES} train.py"
    return _check("huge-pages", title, "note", found, why, remedy)


def _chosen(text: str) -> str:
    """The word in brackets: ``_chosen("always [madvise] never") == "madvise"``."""
    found = re.search(r"\[([^\]]+)\]", text)
    return found.group(1) if found else "unknown"


def _swap(host: Host) -> Check:
    rows = [line.split() for line in (host.text("/proc/swaps") or "").splitlines()[1:]]
    total = sum(int(size) for _, _, size, *_ in rows) << 10
    used = sum(int(used) for _, _, _, used, *_ in rows) << 10
    if not total:
        return _check("swap", "swap", "ok", "none")
    found = f"{format_bytes(used)} of {format_bytes(total)} used"
    if used < total // 100:
        return _check("swap", "swap", "ok", found)
    why = "swapped-out memory is read from disk when it is touched; stepscope memory PID shows how much is a job's"
    return _check("swap", "swap", "note", found, why, "more memory, or fewer jobs at the same time")


def _nodes(host: Host) -> Check:
    title = "memory nodes"
    nodes = [name for name in host.folder("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    if len(nodes) <= 1:
        return _check("numa", title, "ok", "one")
    local = remote = 0
    for node in nodes:
        counts = host.fields(f"/sys/devices/system/node/{node}/numastat")
        local += int(counts.get("local_node", "0"))
        remote += int(counts.get("other_node", "0"))
    ratio = remote / (local + remote) if local + remote else 0.0
    found = f"{len(nodes)}; {100 * ratio:.0f} % of pages since boot came from another node"
    if ratio < _REMOTE_RATIO:
        return _check("numa", title, "ok", found)
    why = "memory of another node is slower to reach; these pages are the whole host's, not one job's"
    remedy = "measure a job kept on one node: numactl --cpunodebind=0 --membind=0 stepscope run train.py"
    return _check("numa", title, "note", found, why, remedy)


def _shared(host: Host) -> Check:
    title = "shared memory"
    mounts = [line.split() for line in (host.text("/proc/self/mounts") or "").splitlines()]
    options = [options for _, place, _, options, *_ in mounts if place == _SHARED]
    if not options:
        why = "shared memory of Python's multiprocessing and of NCCL lies there: without it they fail, or copy"
        return _check(
            "shared-memory", title, "note", f"{_SHARED} is not mounted", why, f"mount -t tmpfs tmpfs {_SHARED}"
        )
    size = _size(options[-1])
    if not size:
        return _check("shared-memory", title, "ok", "no size set: half of the memory")
    if size > _SMALL_SHARED:
        return _check("shared-memory", title, "ok", f"{_SHARED} of {format_bytes(size)}")
    why = "workers that share memory (multiprocessing, PyTorch's loaders, NCCL) die with SIGBUS when it is full"
    remedy = f"docker run --shm-size=2g; Kubernetes: an emptyDir of medium Memory at {_SHARED}"
    return _check("shared-memory", title, "note", f"{_SHARED} of {format_bytes(size)}", why, remedy)


def _size(options: str) -> int:
    """The bytes of tmpfs' option size; 0 if it is not given in bytes."""
    found = re.search(r"(?:^|,)size=(\d+)([kmg]?)(?:,|$)", options)
    return int(found.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[found.group(2)] if found else 0


def _container(host: Host) -> Check:
    mark = host.is_container
    return _check("container", "container", "ok", f"yes ({mark})" if mark else "no sign of one")
