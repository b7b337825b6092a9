"""Each fault is joined to the call that gave its address back, and the stacks say who."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.memory_events import (
    BLOCK,
    BRK,
    COPY,
    FREE,
    MADVISE,
    MMAP,
    MUNMAP,
    SIZE,
    Row,
    events,
    faults,
    kernel,
    native,
    profile,
)

from stepscope.derive.machine import fault_causes
from stepscope.derive.machine.fault_causes import FaultCauses
from stepscope.model.session.session import Manifest, Session
from stepscope.readers.native_names import owner, short
from stepscope.tables.records import Mapped
from stepscope.tables.stacks import StackProfile

if TYPE_CHECKING:
    from stepscope.derive.steps.steps import Steps


def build(rows: Sequence[Row], *profiles: StackProfile) -> FaultCauses:
    found = fault_causes.build(Session(manifest=Manifest(), memory_events=events(sorted(rows)), stacks=profiles))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("before", "mapped", "cause"),
    [
        ([(5, MADVISE, BLOCK, SIZE, 4)], Mapped.ANONYMOUS, "MADV_DONTNEED"),
        ([(5, MADVISE, BLOCK, SIZE, 8)], Mapped.ANONYMOUS, "MADV_FREE"),
        ([(5, MADVISE, BLOCK, SIZE, 14)], Mapped.ANONYMOUS, "first touch or before the window"),
        ([(5, MUNMAP, BLOCK, SIZE, 0), (6, MMAP, BLOCK, SIZE, 0)], Mapped.ANONYMOUS, "munmap"),
        ([(6, MMAP, BLOCK, SIZE, 0)], Mapped.ANONYMOUS, "new map"),
        ([(5, BRK, BLOCK, -1, 0)], Mapped.HEAP, "heap trim"),
        ([(5, BRK, BLOCK + SIZE, -1, 0)], Mapped.HEAP, "first touch or before the window"),
        ([(5, MADVISE, BLOCK, SIZE, 4)], Mapped.FILE, "file"),
        ([(5000, MADVISE, BLOCK, SIZE, 4)], Mapped.ANONYMOUS, "first touch or before the window"),
        ([(5, MADVISE, BLOCK - SIZE, SIZE, 4)], Mapped.ANONYMOUS, "first touch or before the window"),
    ],
)
def test_why_a_page_was_not_there(before: list[Row], mapped: Mapped, cause: str) -> None:
    """Advice that keeps pages, later calls and other addresses are no cause."""
    found = build([*before, *faults(40, mapped=mapped)])
    assert found.main == (cause, 1.0)
    assert found.faults == 400


def test_shares_of_causes() -> None:
    """Weights count, and shares add up."""
    found = build([(5, MADVISE, BLOCK, SIZE, 4), *faults(30), *faults(10, address=BLOCK + 10 * SIZE)])
    assert found.main == ("MADV_DONTNEED", 0.75)
    assert sum(found.causes.values()) == pytest.approx(1.0)
    assert found.bytes_back == 10 * SIZE


def test_too_few_faults_say_nothing() -> None:
    """Neither does a session without a window."""
    few = Session(manifest=Manifest(), memory_events=events(faults(fault_causes.MIN_FAULTS - 1)))
    assert fault_causes.build(few) is None
    assert fault_causes.build(Session(manifest=Manifest())) is None


def test_who_faults_and_who_gives_back() -> None:
    """The copy, the op it works for, its thread; the allocator's library and who freed; shares of CPU time."""
    found = build(
        faults(40),
        profile("page-faults", [(COPY, 900), (native("start_thread", "other"), 100)]),
        profile("madvise", [(FREE, 30)]),
        profile(
            "cpu",
            [
                ([*COPY, *kernel("asm_exc_page_fault", "clear_page")], 60),
                ([*FREE, *kernel("entry_SYSCALL", "do_madvise")], 10),
                (COPY, 30),
            ],
        ),
    )
    assert (found.leaf, found.op, found.thread) == ("__memmove_avx512", "tensorflow::ConcatCPU", "tf_Compute")
    assert found.leaf_ratio == pytest.approx(0.9)
    (site,) = found.sites
    assert (site.call, site.library, site.caller) == ("madvise", "libjemalloc.so.2", "tensorflow::Buffer::~Buffer")
    assert found.fault_ratio == pytest.approx(0.6)
    assert found.release_ratio == pytest.approx(0.1)
    assert found.low <= 0.6 <= found.high


@pytest.mark.parametrize(
    ("entry", "call"),
    [("__x64_sys_madvise", "madvise"), ("__arm64_sys_munmap", "munmap"), ("do_brk_flags", "brk"), ("vm_mmap", "")],
)
def test_samples_of_the_cpu_say_who_where_perf_did_not_record_the_calls(entry: str, call: str) -> None:
    """How many calls there were they do not say; a fault in one is none that gives back."""
    faulting = [*FREE, *kernel(entry, "asm_exc_page_fault")]
    found = build(faults(40), profile("cpu", [(COPY, 60), ([*FREE, *kernel(entry)], 3), (faulting, 9)]))
    who = ("libjemalloc.so.2", "tensorflow::Buffer::~Buffer", 0.0)
    assert [(site.call, site.library, site.caller, site.calls) for site in found.sites] == (
        [(call, *who)] if call else []
    )


def test_what_lies_outside_of_the_steady_steps_does_not_count() -> None:
    """A window that begins in the warm-up and ends with the process says of the steps what it saw of them."""
    steps = cast("Steps", SimpleNamespace(span=(1000, 1040), steady_count=3))
    rows = [*faults(60, start=10, address=BLOCK + 10 * SIZE), (900, MADVISE, BLOCK, SIZE, 4), *faults(60, start=1000)]
    cpu = profile("cpu", [(COPY, 60), ([*COPY, *kernel("asm_exc_page_fault")], 30), (COPY, 10)])
    cpu = replace(cpu, samples=replace(cpu.samples, at_ns=np.array([500, 1010, 1039], np.int64)))
    session = Session(manifest=Manifest(), memory_events=events(rows), stacks=(cpu,))
    found = fault_causes.build(session, steps)
    assert found is not None
    assert (found.sampled, dict(found.causes)) == (40, {"MADV_DONTNEED": 1.0})
    assert found.fault_ratio == pytest.approx(0.75)
    after = cast("Steps", SimpleNamespace(span=(5000, 6000), steady_count=3))
    assert fault_causes.build(session, after) is None


def test_without_samples_of_the_kernel_no_share_is_claimed() -> None:
    """Perf without rights sees the process's own code only."""
    found = build(faults(40), profile("cpu", [(COPY, 100)]))
    assert found.fault_ratio is None


def test_pages_that_are_copied_after_a_fork() -> None:
    """The kernel's frames tell copy on write."""
    frames = [*COPY, *kernel("asm_exc_page_fault", "do_wp_page")]
    found = build(faults(40), profile("page-faults", [(frames, 10)]))
    assert found.causes["copy on write"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (
            "void tensorflow::ConcatCPU<float>(tensorflow::DeviceBase*, std::vector<int> const&)",
            "tensorflow::ConcatCPU",
        ),
        ("tensorflow::Buffer<float>::~Buffer()", "tensorflow::Buffer::~Buffer"),
        ("tensorflow::(anonymous namespace)::Executor<X>::Run(int) const", "tensorflow::Executor::Run"),
        ("dnnl_status_t dnnl::gemm<float>(char const*) [clone .part.0]", "dnnl::gemm"),
        ("__memmove_avx512_unaligned_erms", "__memmove_avx512_unaligned_erms"),
        ("[oneDNN generated code]", "[oneDNN generated code]"),
        ("", ""),
    ],
)
def test_short_names(function: str, name: str) -> None:
    """What a reader needs of a C++ function."""
    assert short(function) == name


def test_the_op_that_a_kernel_works_for() -> None:
    """The innermost function of a framework's own; what only spreads work over threads is nobody's."""
    frames = native("tensorflow::MatMulOp::Compute(x)", "tensorflow::Shard(int)", "std::function::operator()()", "f")
    assert owner(frames) == "tensorflow::MatMulOp::Compute"
    assert owner(native("main", "f")) == ""
