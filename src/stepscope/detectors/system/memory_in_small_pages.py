"""Gigabytes of steady memory are in small pages, although they fill huge ones.

## What it detects
A process that makes the steps and whose anonymous memory is large, does not change in the second half of them, and
fills whole blocks of a huge page's size, but mostly in pages of 4 KiB: because huge pages are not requested, are off,
or were denied. It is information: what this costs is not measured.

## Why it matters
Each page of 4 KiB needs its own entry in the TLB, which has some thousand. A program that reads a large table in
random order then misses for each access: huge pages made gathers from tables of 1 GB 1.2 to 1.5 times as fast.
Programs that read in order gain next to nothing.

## Evidence
`small_page_bytes`: memory that fills whole blocks in small pages; `small_page_ratio`: its share of the anonymous
memory; `changed_ratio`: growth or shrinkage in the second half of the steady steps; `page_table_bytes`;
`tlb_bound_ratio`: the most of the time that TLB misses can take, where it could be bounded; `huge_pages_denied`:
faults on the whole host that were denied a huge page between the snapshots, and `fragmentation_ratio`, the kernel's
index of the zone that has none, if it has none. The cost is unknown; its high end is that bound, else the gain of such
gathers.

## Known limits
The first snapshot is taken after a minute (`run`), or ten (`enable`): a shorter job is not examined. If the bound is
below 3 %, or memory still changes, nothing is said.

## Remedy
Where huge pages are available on request, a setting of the C library requests them; `stepscope whatif --try
glibc-hugepages` measures what it brings. Where the host denies them, an administrator decides.

## References
THP alignment in inference (linux-mm 2025). Linux: Documentation/admin-guide/mm/transhuge.rst; mm/vmstat.c,
fragmentation_index. glibc: glibc.malloc.hugetlb.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import translation
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES, HUGE_PAGES
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.machine.memory_map import MemoryMap

GAIN_RATIO = 1 - 1 / 1.5
"""Share of the time that huge pages removed from gathers in random order, the most that was measured in steady state.
Source: docs/decisions/0055, a table of 1.2 GB."""
MIN_SAMPLES = 4
"""Samples of the process within the steady steps; one a second."""
DENIED_RATIO = 0.5
"""Share of the host's requests for huge pages that are denied, above which this is why there are none."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_bytes: int = 1 << 30
    """Source: the smallest table for which a gain was measured (``GAIN_RATIO``)."""
    min_ratio: Ratio = Ratio(0.5)
    """Of the anonymous memory."""
    max_changed_ratio: Ratio = Ratio(0.1)
    """Change of the memory in the second half of the steady steps."""
    min_bound_ratio: Ratio = Ratio(0.03)
    """Bound on the time of TLB misses below which they are not worth a line: the limit of a low severity."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    pid = view.worker.info.pid
    one = next((found for found in view.get(translation.maps) if found.pid == pid), None)
    if one is None or one.wasted_bytes is None or one.unasked_bytes is None:
        yield Undecided(missing=Signal.MEMORY_LOOKS, hint="no permission to read the page map of the steps' process")
        return
    small = one.wasted_bytes + one.unasked_bytes
    if small < params.min_bytes or small < params.min_ratio * one.anonymous_bytes:
        return
    changed = _changed_ratio(view)
    if changed is None or changed > params.max_changed_ratio:
        return
    bound = one.translation.ratio if one.translation is not None else None
    if bound is not None and bound < params.min_bound_ratio:
        return
    yield Seen(
        title=f"{format_bytes(small)} of {format_bytes(one.anonymous_bytes)} of memory are in pages of "
        f"{format_bytes(one.page_bytes)}, although huge pages would fit: {_why(one)}",
        confidence=0.5,
        severity="info",
        cost=cost_of(view, 0.0, high=GAIN_RATIO if bound is None else bound, basis="unknown"),
        evidence=_evidence(one, small, changed, params),
        remedies=(_remedy(view, one),),
        explanation=_explanation(bound),
    )


def _changed_ratio(view: StepsView) -> float | None:
    """Change of the process's memory in the second half of the steady steps; None if it was not sampled.

    Not from look to look: the last one may be of a process that ends.
    """
    (lo, hi), table = view.steps.span, view.session.process
    rows = table.take((table.pid == view.worker.info.pid) & (table.at_ns >= lo) & (table.at_ns <= hi))
    if len(rows) < MIN_SAMPLES:
        return None
    before, now = (int(rows.rss_bytes[at]) for at in (len(rows) // 2, -1))
    return abs(now - before) / max(1, before)


def _denied(one: MemoryMap) -> int:
    """Faults that were denied a huge page, if most were."""
    denied, given = (one.kernel_work.get(name, 0) for name in ("thp_fault_fallback", "thp_fault_alloc"))
    return denied if denied and denied >= DENIED_RATIO * (denied + given) else 0


def _why(one: MemoryMap) -> str:
    if one.mode == "never":
        return "the host has switched them off"
    if not one.allowed:
        return "they are disabled for this process"
    if _denied(one):
        return "the kernel has none to give"
    if one.mode == "madvise" and (one.unasked_bytes or 0) >= (one.wasted_bytes or 0):
        return "nothing requests them"
    return "the memory was faulted in too early, or page by page"


def _explanation(bound: float | None) -> str:
    limit = (
        f"TLB misses cannot explain more than {format_ratio(bound)} of the time here."
        if bound is not None
        else "How much time TLB misses take here could not be bounded."
    )
    return (
        f"{limit} Only accesses in random order to much memory gain by huge pages, such as lookups in large tables: "
        "1.2 to 1.5 times in tables of 1 GB. What they bring to this job, only a measurement shows."
    )


def _evidence(one: MemoryMap, small: int, changed: float, params: Params) -> tuple[Evidence, ...]:
    ratio = small / max(1, one.anonymous_bytes)
    found = [
        Evidence(metric="small_page_bytes", value=small, unit="bytes", threshold=params.min_bytes),
        Evidence(metric="small_page_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
        Evidence(metric="changed_ratio", value=changed, unit="ratio", threshold=params.max_changed_ratio),
        Evidence(metric="page_table_bytes", value=one.page_table_bytes, unit="bytes"),
    ]
    if one.translation is not None and one.translation.ratio is not None:
        bound = one.translation.ratio
        found.append(Evidence(metric="tlb_bound_ratio", value=bound, unit="ratio", threshold=params.min_bound_ratio))
    if _denied(one):
        found.append(Evidence(metric="huge_pages_denied", value=_denied(one), unit="faults"))
        indices = [zone.fragmentation_ratio for zone in one.free_memory if zone.fragmentation_ratio is not None]
        found += [Evidence(metric="fragmentation_ratio", value=max(indices), unit="ratio")] if indices else []
    return tuple(found)


def _remedy(view: StepsView, one: MemoryMap) -> Remedy:
    if one.mode == "never" or not one.allowed:
        text = "measure the job where huge pages are available: the host or a parent process has switched them off"
        return Remedy(id="allow-huge-pages", text=text)
    if _denied(one):
        text = "leave memory free on the host, or let an administrator compact it: echo 1 > /proc/sys/vm/compact_memory"
        return Remedy(id="compact-memory", text=text)
    command = shlex.join(view.session.manifest.command)
    what_if = f"stepscope whatif --try {HUGE_PAGES} -- {command}" if command else None
    return Remedy(id=HUGE_PAGES, text=ENVIRONMENT_REMEDIES[HUGE_PAGES].text, safety="review", what_if=what_if)


DETECTOR = Detector(
    code="MEM003",
    name="memory-in-small-pages",
    cause="System: memory layout",
    introduced_stage="environment setting",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.MEMORY_LOOKS}),
    params=Params(),
    detect=detect,
)
