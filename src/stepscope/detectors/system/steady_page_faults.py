"""Every step faults in the same memory again.

## What it detects
Page faults of the process that makes the steps that never stop: about as many in each part of the steady steps,
although its memory does not grow. Memory is returned to the kernel and touched again, step after step. If the session
holds a window of native stacks (`run` records one by itself), also the code that faults, the call that returned the
memory, and its caller.

## Why it matters
A fault enters the kernel, finds and zeroes a page and accounts for it: 0.5 us on bare machines, 1.5 us in virtual ones,
for 4 KiB that a kernel then overwrites. A tensor of 32 MiB takes 8,192 of them. With huge pages it takes 16, each of
which zeroes 2 MiB: 75 to 250 us. Profilers of ops count this as compute: it happens inside the copy or the op that
touches the memory first.

## Evidence
`fault_ratio`: faults x the cost of one (measured on this host by the collector, `fault_ns`, and `huge_fault_ns` for
faults of huge pages, `huge_faults_per_step`), as a share of the CPU time, at most the time in the kernel;
`lasting_ratio`: the share of CPU time that faults reach or exceed in three of four parts of the steady steps;
`faults_per_step`; `system_ratio`: CPU time in the kernel; `kept_ratio`: pages per fault that stayed. From a window:
`sampled_fault_ratio` and `sampled_release_ratio`, CPU samples below the kernel's page fault and in calls that return
memory; `refault_ratio`, the share of sampled faults on addresses that the named call had returned before. The cost
counts faults and releases. Low end: the published gain, 3 of 10 %. High end: at least 1.5 times the share, because
pages that stay are still in the caches and threads no longer wait for each other to map them.

## Known limits
Faults of 1 to 3 % of the time are information, without a window. So are those of up to 10 % while it is not known what
returns the memory: of as many, remedies saved between nothing and all. Counters show neither which call faults nor why:
that needs the window. Huge-page faults are counted only for the whole host. The job's number is bounded by that count
and by its own faults, so it is too high if a neighbour also uses huge pages. A window shows whether it is. Only the
process that makes the steps is examined.

## Remedy
Depending on the allocator, a setting that `stepscope whatif --try` measures and `run --apply` sets: make it keep what
is freed. On x86, TensorFlow's oneDNN pool serves the tensors unless it is switched off: another malloc then changes
nothing for them and is not recommended. If TensorFlow's generator dataset (2.21) pins glibc's mmap threshold, the
report says so, with its line. ONNX Runtime's arena serves its tensors in the same way. If a session runs without the
arena, the report names that session first. PyTorch asks for no huge pages, the C library's malloc does with a
setting: a tensor of 64 MiB takes a thirtieth of the faults then, whatever returns its memory. PyTorch's own switch,
THP_MEM_ALLOC_ENABLE=1, is advised on other allocators only: on the C library's, tensors of 2 to 8 MiB take more faults.

## References
Library performance by flame graph (Gregg 2022): 10 % of CPU in page faults by madvise. Linux: proc(5), minflt;
madvise(2), MADV_DONTNEED; mallopt(3), M_MMAP_THRESHOLD; jemalloc(3), opt.dirty_decay_ms, opt.oversize_threshold.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.input import input_cause
from stepscope.causes.job import purpose
from stepscope.causes.system import allocators, contention, steady_page_faults, translation
from stepscope.derive import steps_view
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.remedies import libraries
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES, HUGE_PAGES, TORCH_HUGE_PAGES
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.system.allocators import Serving
    from stepscope.causes.system.steady_page_faults import Faults
    from stepscope.derive.machine.fault_causes import FaultCauses
    from stepscope.derive.view import SessionView
    from stepscope.model.log.events import DatasetMade
    from stepscope.tables.findings import Stage
    from stepscope.tables.place import Place

PUBLISHED_GAIN = 0.3
"""Share of the expected gain that was achieved. Source: Gregg 2022, 3 of 10 %."""
FURTHER_GAIN = 1.5
"""Largest gain over the predicted share. Source: docs/benchmarks/page-faults.md: a share of 9 % gained 9.9 %
(5.7-13.9), one of 60 % gained 66 % (62-70)."""
GIVEN_BACK = {
    "MADV_DONTNEED": "madvise(MADV_DONTNEED)",
    "MADV_FREE": "madvise(MADV_FREE)",
    "munmap": "munmap",
    "heap trim": "brk",
}
"""Causes that are an allocator's doing, and the call with which it does it."""
NEW_MAP = "new map"
"""Cause of faults on maps made within the window. Memory that does not grow is unmapped as often, observed or not."""
SHOWN = 0.01
"""Causes of a smaller share of the faults are not shown."""
PINNED_BYTES, MAX_THRESHOLD_BYTES = 128 << 10, 32 << 20
"""Sizes of blocks that glibc keeps unless its threshold is pinned. Source: mallopt(3), M_MMAP_THRESHOLD, on 64 bits."""
_PINNED = (
    "Since 2.21, TensorFlow's generator dataset calls mallopt(M_MMAP_THRESHOLD, 128 KiB). That ends glibc's dynamic "
    "threshold, so each larger block is mapped, faulted in and unmapped again."
)
_REMEDIES = {"jemalloc": ("jemalloc-keep", "glibc-malloc"), "glibc": ("glibc-keep", "preload-jemalloc")}
_OTHERWISE = ("preload-jemalloc",)


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of the steady wall time: less is information, and no window is opened for it. Without a known cause the lower
    bound of the saving must reach it."""
    min_told_ratio: Ratio = Ratio(0.01)
    """Same: less is what allocators always cost (0 to 0.1 % in the clean cases)."""
    max_kept_ratio: Ratio = Ratio(0.5)
    """Pages per fault that stay: more means that memory grows (MEM001)."""
    max_lost_ratio: Ratio = Ratio(0.15)
    """Share of the CPUs that others take; above it shares of wall time are less certain."""
    min_cause_ratio: Ratio = Ratio(0.5)
    """Of the sampled faults: a cause of fewer is not the main one."""
    min_cpu_samples: int = 50
    """Samples of the window needed for a share of CPU time."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided | CaptureRequest]:
    """Yield at most one finding, and a request if its cause is not known."""
    paging = view.get(steady_page_faults.build)
    if paging is None or paging.kept_ratio > params.max_kept_ratio:
        return
    causes = view.get(allocators.build).causes
    if causes is not None and causes.pid != paging.pid:
        causes = None
    shown = _shown_ratio(paging, causes, params)
    if shown < params.min_told_ratio:
        return
    found = _finding(view, paging, causes, params)
    # A share alone is no saving: not known is what returns the memory, and how much of it a remedy would save.
    sure = found.cause != "unknown" or found.cost.low >= params.min_ratio
    yield found if sure and shown >= params.min_ratio else replace(found, severity="info")
    if causes is None and shown >= params.min_ratio:
        yield CaptureRequest(
            kind="native",
            missing=Signal.NATIVE,
            hint="which call faults, and what returned the memory: stepscope trace JOB --kind native",
        )


def _shown_ratio(faults: Faults, causes: FaultCauses | None, params: Params) -> float:
    """Share of the steady wall time: by counters, and at most what a window shows where huge pages were given.

    These are counted on the whole host: without a window they may be a neighbour's.
    """
    counted = faults.lasting_ratio * faults.busy
    if not faults.huge or causes is None or causes.fault_ratio is None or causes.cpu_samples < params.min_cpu_samples:
        return counted
    return min(counted, (causes.fault_ratio + causes.release_ratio) * faults.busy)


def _finding(view: SessionView, faults: Faults, causes: FaultCauses | None, params: Params) -> Seen:
    sampled = causes is not None and causes.fault_ratio is not None and causes.cpu_samples >= params.min_cpu_samples
    if sampled and causes is not None and causes.fault_ratio is not None:
        share, lost = causes.fault_ratio, causes.fault_ratio + causes.release_ratio
        high = causes.high + causes.release_ratio
    else:
        share, lost = faults.ratio, faults.churn_ratio
        high = lost * faults.cost.high_ns / faults.cost.fault_ns
    ratio, room = lost * faults.busy, _room(view)
    others = view.get(contention.build)
    starved = others is not None and others.lost_ratio >= params.max_lost_ratio
    serving = view.get(allocators.build)
    call = _call(causes, params)
    pinned = _pinned(causes, serving, call)
    return Seen(
        title=f"{_how_many(faults)} take {format_ratio(share)} of the CPU time; " + _why(causes, serving, call, pinned),
        confidence=(0.6 if starved else 0.8) + (0.15 if call else 0.0),
        cause="System: allocator" if call or pinned else "unknown",
        introduced_stage="environment setting" if call or pinned else "unknown",
        exposed_stage=_exposed(view),
        where=_where(view, serving, pinned),
        evidence=_evidence(faults, causes, params),
        cost=cost_of(
            view,
            min(ratio, room),
            low=PUBLISHED_GAIN * ratio if ratio <= room else 0.0,
            high=max(high, FURTHER_GAIN * lost) * faults.busy,
            basis="measured" if sampled else "modelled",
            by_time=True,
        ),
        remedies=_remedies(view, serving, faults, causes, call, known=_by_allocator(causes, call) or bool(pinned)),
        explanation=_explanation(causes, serving, call, pinned)
        + (f" The input's generator sets the pace: until it is faster, {_LESS}." if ratio > room else ""),
    )


_LESS = "only faults in the generator itself cost the steps time"


def _room(view: SessionView) -> float:
    """Share of the steps' time that a generator, which makes one batch after the other, leaves: no step is shorter."""
    steps = steps_view.of(view)
    cause = steps.get(input_cause.build) if steps is not None else None
    return 1.0 - cause.python_ratio if cause is not None and cause.limit == "generator" else 1.0


def _how_many(faults: Faults) -> str:
    huge = faults.huge_per_step if faults.steps else faults.huge_per_second
    of_huge = f" ({huge:,.0f} of huge pages)" if huge >= 1 else ""
    if faults.steps:
        return f"{faults.per_step:,.0f} page faults in every step{of_huge}"
    return f"{faults.per_second:,.0f} page faults a second{of_huge}"


def _exposed(view: SessionView) -> Stage:
    if view.steps is None:
        return "unknown"
    return "training" if view.get(purpose.trains) else "prediction"


def _where(view: SessionView, serving: Serving, pinned: DatasetMade | None) -> tuple[Place, ...]:
    """Lines of a session made without its arena and of a generator dataset; environment settings have none."""
    made = serving.without_arena
    arena = view.place(made.file, made.line, function=made.function) if made is not None and made.file else None
    generator = view.dataset_place(pinned) if pinned is not None else None
    return tuple(place for place in (arena, generator) if place is not None)


def _pinned(causes: FaultCauses | None, serving: Serving, call: str) -> DatasetMade | None:
    """The generator dataset to blame: blocks that glibc would keep are unmapped, or mapped again in each step.

    With a window, only if the blocks have a size for which glibc would have raised its threshold. If no window shows
    what unmaps them, only if malloc serves the tensors, because few other blocks are as large.
    """
    if causes is None:
        return serving.pinned_by if serving.tensors_on_malloc else None
    calls = sum(site.calls for site in causes.sites)
    if call == "munmap" and calls:
        size = causes.bytes_back / calls
    else:
        mapped = call == "munmap" or causes.main[0] == NEW_MAP
        size = causes.map_bytes if mapped and serving.tensors_on_malloc else 0.0
    return serving.pinned_by if PINNED_BYTES <= size < MAX_THRESHOLD_BYTES else None


def _call(causes: FaultCauses | None, params: Params) -> str:
    """The call with which an allocator returns the memory; "" if that does not happen or is not known."""
    if causes is None:
        return ""
    cause, share = causes.main
    return GIVEN_BACK.get(cause, "") if share >= params.min_cause_ratio else ""


def _why(causes: FaultCauses | None, serving: Serving, call: str, pinned: DatasetMade | None) -> str:
    if causes is None and pinned is not None:
        return "TensorFlow's generator dataset keeps the C library from reusing blocks above 128 KiB"
    if causes is None:
        return "the same memory is returned to the kernel and faulted in again"
    who = f"{causes.leaf} in {causes.op}" if causes.op and causes.op != causes.leaf else causes.leaf or "the job"
    if not call and pinned is not None:
        why = "because of TensorFlow's generator dataset"
        return f"{serving.name} maps every block above 128 KiB again, {why}, and {who} faults it in"
    if not call:
        return f"{who} touches pages; their cause is: {causes.main[0]}"
    why = "; TensorFlow's generator dataset makes it do so" if pinned is not None else ""
    returns = f"{serving.name} returns memory" if _by_allocator(causes, call) else "memory is returned"
    return f"{returns} with {call}, and {who} faults it in again{why}"


def _by_allocator(causes: FaultCauses | None, call: str) -> bool:
    """Whether stacks show what returns the memory; the end of the heap is the C library's to move."""
    return causes is not None and bool(call) and (bool(causes.sites) or call == GIVEN_BACK["heap trim"])


def _explanation(causes: FaultCauses | None, serving: Serving, call: str, pinned: DatasetMade | None) -> str:
    limit = (
        "This share is the time of the faults and releases themselves. A remedy can gain less, and it "
        "can gain more: pages that are kept are still in the caches, and threads do not wait for each other to map "
        "them."
    )
    if pinned is not None:
        limit = f"{_PINNED} {limit}"
    if causes is None:
        return (
            "The process does not grow, yet the kernel gives it new pages all the time: what was freed was returned "
            f"to the kernel at once. {limit}"
        )
    shares = ", ".join(f"{name} {format_ratio(share)}" for name, share in causes.causes.items() if share >= SHOWN)
    text = f"Why the pages were missing, by {causes.sampled:,} sampled faults: {shares}."
    if call and causes.sites:
        callers = list(dict.fromkeys(site.caller for site in causes.sites if site.caller))[:2]
        text += f" {serving.sentence}" + (f" It is asked to free by {' and '.join(callers)}." if callers else "")
    return f"{text} {limit}"


def _evidence(faults: Faults, causes: FaultCauses | None, params: Params) -> tuple[Evidence, ...]:
    found = [
        Evidence(metric="fault_ratio", value=faults.ratio, unit="ratio"),
        Evidence(metric="lasting_ratio", value=faults.lasting_ratio, unit="ratio", threshold=params.min_ratio),
        Evidence(metric="faults_per_step", value=faults.per_step, unit="faults")
        if faults.steps
        else Evidence(metric="faults_per_second", value=faults.per_second, unit="faults"),
        Evidence(metric="fault_ns", value=faults.cost.fault_ns, unit="ns"),
        *_of_huge(faults),
        Evidence(metric="system_ratio", value=faults.system_ratio, unit="ratio"),
        Evidence(metric="kept_ratio", value=faults.kept_ratio, unit="ratio", threshold=params.max_kept_ratio),
    ]
    if causes is not None:
        refs = (f"stacks:page-faults-{causes.window:04d}",)
        if causes.fault_ratio is not None:
            cpu = (f"stacks:cpu-{causes.window:04d}",)
            found.append(Evidence(metric="sampled_fault_ratio", value=causes.fault_ratio, unit="ratio", refs=cpu))
            found.append(Evidence(metric="sampled_release_ratio", value=causes.release_ratio, unit="ratio", refs=cpu))
        found.append(Evidence(metric="refault_ratio", value=causes.main[1], unit="ratio", refs=refs))
        found.append(Evidence(metric="bytes_given_back", value=causes.bytes_back, unit="bytes"))
    return tuple(found)


def _of_huge(faults: Faults) -> tuple[Evidence, ...]:
    if not faults.huge:
        return ()
    number = (
        Evidence(metric="huge_faults_per_step", value=faults.huge_per_step, unit="faults")
        if faults.steps
        else Evidence(metric="huge_faults_per_second", value=faults.huge_per_second, unit="faults")
    )
    return number, Evidence(metric="huge_fault_ns", value=faults.cost.huge_ns, unit="ns")


def _remedies(
    view: SessionView, serving: Serving, faults: Faults, causes: FaultCauses | None, call: str, *, known: bool
) -> tuple[Remedy, ...]:
    """Known is what returns the memory. Huge pages take fewer faults whatever returns it, but none of files."""
    anonymous = known or bool(call) or causes is None or causes.main[0] == NEW_MAP
    larger = _larger_pages(view, serving, faults) if anonymous else ()
    if not known:
        what = f"what calls {call}" if call else "which call returns the memory, and which allocator serves the tensors"
        text = f"find out {what}, before changing any{' allocator' if call else ''}"
        tried = _REMEDIES["glibc"][:1] if causes is None and _on_malloc(view, serving) else ()
        return *_settings(view, larger), Remedy(id="find-the-allocator", text=text), *_settings(view, tried)
    names = _REMEDIES.get(serving.allocator, _OTHERWISE)
    if serving.tensors_on_malloc:
        names = (*names, "onednn-pool")
    return _arena(serving) + _settings(view, (*names, *larger))


def _on_malloc(view: SessionView, serving: Serving) -> bool:
    """Whether the C library serves the tensors: JAX has no pool on a CPU; of PyTorch see ``_larger_pages``."""
    computes = set(view.frameworks)
    return serving.allocator == "glibc" and "jax" in computes and computes.isdisjoint({"tensorflow", "torch"})


def _larger_pages(view: SessionView, serving: Serving, faults: Faults) -> tuple[str, ...]:
    """The setting with which PyTorch's tensors get huge pages, where these are on request and most memory is in small
    ones. The C library's is better than torch's, which makes small tensors fault more.

    Huge pages are counted on the whole host: some may be a neighbour's.
    """
    pages = next((one for one in view.get(translation.maps) if one.pid == faults.pid), None)
    on_request = pages is None or (pages.mode == "madvise" and pages.allowed)
    has_them = faults.huge * steady_page_faults.HUGE_PAGES > faults.minor
    if "torch" not in (libraries(view) or ()) or not on_request or has_them:
        return ()
    return (HUGE_PAGES,) if serving.allocator == "glibc" else (TORCH_HUGE_PAGES,)


def _settings(view: SessionView, names: Sequence[str]) -> tuple[Remedy, ...]:
    command = shlex.join(view.session.manifest.command)
    return tuple(
        Remedy(
            id=name,
            text=ENVIRONMENT_REMEDIES[name].text,
            safety="review",
            what_if=f"stepscope whatif --try {name} -- {command}" if command else None,
        )
        for name in names
    )


def _arena(serving: Serving) -> tuple[Remedy, ...]:
    """For ONNX Runtime with its arena off: no environment setting switches it on."""
    made = serving.without_arena
    if made is None:
        return ()
    at = f" at {made.file.rpartition('/')[2]}:{made.line}" if made.file else ""
    text = f"leave ONNX Runtime's arena on: no SessionOptions.enable_cpu_mem_arena = False for {made.model}{at}"
    return (Remedy(id="onnxruntime-arena", text=text, safety="review"),)


DETECTOR = Detector(
    code="MEM002",
    name="steady-page-faults",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.FAULTS}),
    params=Params(),
    detect=detect,
)
