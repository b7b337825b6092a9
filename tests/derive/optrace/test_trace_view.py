"""Memory, compilations, kernels, roofline and launches of a trace."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.op_traces import US, Maker

from stepscope.derive.optrace.kernels.compilations import Change
from stepscope.derive.optrace.trace_view import OpView
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import LineKind, PlaneKind, Program, TraceSource


def test_memory_at_the_peak_is_told_by_the_ops_that_hold_it() -> None:
    made = Maker()
    line = made.main
    made.allocate(line, 1, "w/Read:Read", 100, live=600)  # 500 were live before the trace
    made.allocate(line, 2, "a/Conv2D:Conv2D", 200, live=800)
    made.free(line, 3, "a/Conv2D:Conv2D", 200, live=600)
    made.allocate(line, 4, "b/MatMul:MatMul", 300, live=900, peak_bytes_in_use=950, fragmentation=0.5)
    made.free(line, 5, "b/MatMul:MatMul", 300, live=600)
    made.allocate(line, 6, "", 50, live=70, allocator_name="cpu", bytes_available=5)
    gpu, cpu = made.view().memory
    assert (gpu.allocator, cpu.allocator) == ("GPU_0_bfc", "cpu")
    assert [(h.op, h.type, h.bytes, h.blocks) for h in gpu.holders] == [
        ("b/MatMul", "MatMul", 300, 1),
        ("w/Read", "Read", 100, 1),
    ]
    assert (gpu.before_bytes, gpu.peak_bytes, gpu.pool_bytes) == (500, 950, 1000)
    assert (gpu.live_bytes[gpu.peak], gpu.fragmentation_ratio[gpu.peak]) == (900, 0.5)
    assert gpu.live_bytes.tolist() == [600, 800, 600, 900, 600]
    assert Maker().view().memory == ()


def _compiled(again: bool = True, same: bool = False) -> OpView:
    """Steps of 100 us; in the fourth, of 1,000 us, a program is compiled that differs in one parameter from before."""
    made = Maker()
    at = 0.0
    for i, dur in enumerate([100, 100, 100, 1000, 100, 100, 100]):
        made.step(at, dur, i)
        if i == 3:
            made.span(made.main, "PjitFunction(f)", at + 5, 900)
            made.span(made.main, "backend_compile_and_load", at + 50, 700)
            made.span(made.main, "CpuCompiler::RunBackend", at + 60, 600, name="jit_f")
        if again or i >= 3:
            ran = 1 if i < 3 else 2
            made.span(made.main, f"dot.{ran}", at + dur - 20, 10, hlo_op="dot", hlo_module="jit_f", program_id=ran)
        at += dur
    before, now = ("f32[128,64]", "s32[]"), ("f32[128,64]" if same else "f32[96,64]", "s32[]")
    programs = (Program(name="jit_f", id=2, parameters=now), Program(name="jit_f", id=1, parameters=before))
    return OpView(replace(made.trace(), programs=programs))


def test_a_compilation_is_told_with_its_step_its_cost_and_what_changed() -> None:
    found = _compiled().compiles
    (one,) = found.found
    assert (one.step, one.program, one.dur_ns, one.again) == (3, "jit_f", 700 * US, True)
    assert one.changes == (Change(parameter=0, before="f32[128,64]", now="f32[96,64]"),)
    assert (found.steps, found.usual_ns, found.extra_ns) == ((3,), 100 * US, 900 * US)


def test_a_first_compilation_is_no_repeated_one_and_equal_signatures_say_no_cause() -> None:
    assert not _compiled(again=False).compiles.found[0].again
    assert _compiled(same=True).compiles.found[0].changes == ()
    assert Maker().view().compiles.found == ()


def test_a_compilation_on_a_pool_is_named_by_what_runs_there_meanwhile() -> None:
    """As newer JAX does: the step's thread waits, and its own event carries no name."""
    made = Maker()
    pool = made.thread("tf_PjRtCompilerThreadPool")
    for i in range(4):
        made.step(1000.0 * i, 990, i)
        made.span(made.main, "dot.1", 1000.0 * i + 900, 10, hlo_op="dot", hlo_module="jit_f")
    made.span(made.main, "backend_compile_and_load", 2050, 300)
    made.span(pool, "CpuCompiler::RunBackend", 2060, 280, name="jit_f")
    made.span(made.main, "backend_compile_and_load", 2400, 300)
    made.span(pool, "CpuCompiler::RunBackend", 2390, 280, name="jit_g")
    assert [(one.program, one.again) for one in made.view().compiles.found] == [("jit_f", True), ("", False)]


def test_programs_without_an_id_are_compiled_again_by_their_name() -> None:
    """As in a trace.json: the cause is not told there."""
    made = Maker()
    for i in range(4):
        made.step(1000.0 * i, 990, i)
        made.span(made.main, "dot.1", 1000.0 * i + 900, 10, hlo_op="dot", hlo_module="jit_f")
    made.span(made.main, "backend_compile_and_load", 2050, 700, name="jit_f")
    (one,) = made.view().compiles.found
    assert (one.step, one.program, one.again, one.changes) == (2, "jit_f", True, ())


@pytest.mark.parametrize("function", ["f", "<lambda>", "train.step"])
def test_a_program_from_the_compilation_cache_is_made_again_too(function: str) -> None:
    """As JAX 0.10 does with ``jax_compilation_cache_dir``: it writes the program, and no compiler runs. Such programs
    run under other ids than they are described with.
    """
    program = f"jit_{re.sub('[^a-z]', '_', function)}".rstrip("_")
    made = Maker()
    for i in range(4):
        made.step(1000.0 * i, 990, i)
        made.span(made.main, f"PjitFunction({function})", 1000.0 * i + 1, 800 if i == 2 else 50)
        run = 3 if i < 2 else 6
        made.span(made.main, "dot.1", 1000.0 * i + 900, 10, hlo_op="dot", hlo_module=program, program_id=run)
    made.span(made.main, "lower_sharding_computation", 2050, 300)
    programs = tuple(
        Program(name=program, id=id_, parameters=(shape,)) for id_, shape in ((8, "f32[3]"), (5, "f32[2]"))
    )
    view = OpView(replace(made.trace(), programs=programs))
    (one,) = view.compiles.found
    assert (one.step, one.program, one.dur_ns, one.again, one.cached) == (2, program, 800 * US, True, True)
    assert one.changes == (Change(parameter=0, before="f32[2]", now="f32[3]"),)
    assert view.breakdown.ratio("compile") == pytest.approx(800 / 3000)


def test_a_program_that_is_written_and_compiled_is_one_compilation() -> None:
    made = Maker()
    for i in range(4):
        made.step(1000.0 * i, 990, i)
        made.span(made.main, "PjitFunction(f)", 1000.0 * i + 1, 800 if i == 2 else 50)
    made.span(made.main, "lower_sharding_computation", 2050, 100)
    made.span(made.main, "backend_compile_and_load", 2200, 500, name="jit_f")
    assert [(one.dur_ns, one.cached) for one in made.view().compiles.found] == [(500 * US, False)]


def _kernels() -> OpView:
    made = Maker()
    device = made.device(compute_cap_major=7, core_count=80)
    stream = made.stream(device)
    for i in range(3):
        at = 1000.0 * i
        made.step(at, 990, i)
        details = "regs:38 shm:0 grid:160,2,1 block:1024,1,1 occ_pct:50"
        made.launch(made.main, stream, "volta_sgemm_128x64_nn", at, at + 2, 300, tf_op="d/MatMul:MatMul")
        made.launch(
            made.main,
            stream,
            "volta_h884gemm_64x64",
            at + 5,
            at + 302,
            100,
            tf_op="e/MatMul:MatMul",
            kernel_details=details,
        )
        made.launch(made.main, stream, "relu_kernel", at + 9, at + 402, 50, kernel_details="grid:4,1,1 occ_pct:100")
    return made.view()


def test_kernels_tell_precision_occupancy_and_grids_that_leave_the_device_empty() -> None:
    view = _kernels()
    found = view.kernels
    assert found is not None
    assert found.has_tensor_cores
    assert found.ratio(found.eligible) == pytest.approx(0.4)
    assert found.ratio(found.eligible & ~found.tensor_core) == pytest.approx(0.3)
    assert found.mean_occupancy == pytest.approx((0.5 * 100 + 1.0 * 50) / 150)
    assert found.ratio(found.underfilled) == pytest.approx(0.05)
    launches = view.launches
    assert launches is not None
    assert len(launches.known) == 9
    assert sorted(set((launches.queued_ns // US).tolist())) == [0, 295, 391]
    assert view.labels.of(int(found.row[0])) == ("d/MatMul", "MatMul")


def test_damaged_details_of_kernels_do_no_harm() -> None:
    made = Maker()
    stream = made.stream(made.device())
    for i in range(3):
        made.step(100.0 * i, 99, i)
        details = "regs:17179869185 grid:139910925219184,139940599917296,139910925219200 block:,,"
        made.launch(made.main, stream, "k", 100.0 * i, 100.0 * i + 2, 50, kernel_details=details)
    found = made.view().kernels
    assert found is not None
    assert found.ratio(found.underfilled) == 0
    assert not found.has_tensor_cores


def test_an_op_is_placed_under_the_roofline() -> None:
    """One op is bound by memory and reaches half of the bandwidth, another by computing; without figures, none."""
    builder = OpTraceBuilder(TraceSource(format="test"))
    peaks = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 100.0}
    core = builder.plane("/device:TPU:0", PlaneKind.TPU, ordinal=0, stats=peaks)
    modules = builder.line(core, "XLA Modules", LineKind.XLA_MODULES)
    ops = builder.line(core, "XLA Ops", LineKind.XLA_OPS)
    for i in range(3):
        at = 1_000_000.0 * i
        builder.event(modules, "jit_f(1)", at, 900_000)
        builder.event(ops, "%copyish = f32[] fusion(x)", at, 20_000, stats={"flops": 1, "bytes_accessed": 1_000_000})
        builder.event(ops, "%dot = f32[] dot(x)", at + 30_000, 10_000, stats={"flops": 9_000_000, "bytes_accessed": 10})
        builder.event(ops, "%plain = f32[] add(x)", at + 50_000, 10_000)
    view = OpView(builder.build())
    placed = {p.name: p for p in view.roofline}
    assert set(placed) == {"copyish", "dot"}
    assert (placed["copyish"].bound, placed["dot"].bound) == ("memory", "compute")
    assert placed["copyish"].reached_ratio == pytest.approx(0.5)
    assert placed["dot"].reached_ratio == pytest.approx(0.9)
    assert placed["copyish"].intensity < 10 < placed["dot"].intensity
    assert np.isclose(view.breakdown.ratio("device-compute"), 0.04)
    assert _kernels().roofline == ()
