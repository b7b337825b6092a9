"""Sessions with op traces for each detector that looks at them."""

from __future__ import annotations

from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import nothing
from tests.detectors.traced_jobs import HEAD, compiled, fed, many_kernels, on_gpu, transposed, untraced

TRACE, DEVICE = "op trace of some steps", "work of a device in an op trace"
WALL = 11 * 100_000.0

GRF010 = Fixtures(
    firing=lambda: compiled(WALL),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(),
        metrics=("recompilation_ratio", "compilations", "traced_steps"),
        title=("recompilation", "jit_f", "step 4", "1.1 s", "f32[8,4] is f32[6,4] now"),
        introduced="data preparation",
        exposed="training",
        pipeline_stage="forward-backward",
        remedy="constant-shapes",
    ),
    silent=lambda: compiled(WALL, again=False),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: compiled(WALL * 0.108),
    at=lambda: compiled(WALL * 0.114),
)
INP005 = Fixtures(
    firing=lambda: fed(60_000),
    expected=Expected(
        severity="high",
        cost=0.6 * 0.8 * 7 / 8,
        where=(),
        metrics=("input_wait_ratio", "around_ratio", "calls_per_batch", "call_ns", "traced_steps"),
        title=("maps records one by one", "8 calls", "80 %", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="batch-before-map",
        basis="modelled",
    ),
    silent=lambda: fed(60_000, work=0.9),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: fed(60_000, work=0.52),
    at=lambda: fed(60_000, work=0.48),
)
INP006 = Fixtures(
    firing=lambda: fed(60_000, work=0.9, kind="RandomUniform"),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(),
        metrics=(
            "input_wait_ratio",
            "stage_parallelism",
            "stateful_op_ratio",
            "stage_ns_per_batch",
            "traced_steps",
        ),
        title=("one element at a time", "RandomUniform", "60 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="parallel-map",
        basis="modelled",
    ),
    silent=lambda: fed(60_000, work=0.9, kind="StatelessRandomUniformV2"),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: fed(14_900, work=0.9, kind="RandomUniform"),
    at=lambda: fed(15_100, work=0.9, kind="RandomUniform"),
)
INP007 = Fixtures(
    firing=lambda: fed(60_000, work=0.95, kind="PyFunc", measured=False),
    expected=Expected(
        severity="high",
        cost=0.6,
        where=(),
        metrics=("input_wait_ratio", "stage_ns_per_batch", "python_ratio", "traced_steps"),
        title=("stage Map", "95 % of it in Python", "60 %"),
        introduced="data preparation",
        exposed="unknown",
        pipeline_stage="preprocessing",
        remedy="use-tensorflow-ops",
    ),
    silent=lambda: fed(2_000, work=0.95, kind="PyFunc", measured=False),
    not_applicable=nothing,
    missing=TRACE,
    below=lambda: fed(14_900, work=0.95, kind="PyFunc", measured=False),
    at=lambda: fed(15_100, work=0.95, kind="PyFunc", measured=False),
)
KRN001 = Fixtures(
    firing=lambda: on_gpu([HEAD], launching=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("launch_idle_ratio", "kernels_per_step", "kernel_ns", "launch_ns", "traced_steps"),
        title=("kernel launch", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="more-work-per-launch",
        basis="modelled",
    ),
    silent=lambda: on_gpu([HEAD]),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], launching=24_500),
    at=lambda: on_gpu([HEAD], launching=25_500),
)
KRN002 = Fixtures(
    firing=lambda: on_gpu([HEAD], copy=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("copy_ratio", "bytes_per_step", "bytes_per_s", "traced_steps"),
        title=("copies from host to device", "40 %"),
        introduced="data preparation",
        pipeline_stage="host-to-device",
        remedy="prefetch-to-device",
    ),
    silent=lambda: on_gpu([("gemm_kernel", 0.0, 10.0, 60_000.0)], copy=2_000),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], copy=9_900),
    at=lambda: on_gpu([HEAD], copy=10_100),
)
KRN003 = Fixtures(
    firing=lambda: on_gpu([HEAD], host_op=40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("host_op_ratio", "op_ns_per_step", "traced_steps"),
        title=("model/Where (Where)", "40 ms", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="op-on-device",
    ),
    silent=lambda: on_gpu([HEAD], host_op=2_000),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([HEAD], host_op=9_900),
    at=lambda: on_gpu([HEAD], host_op=10_100),
)
KRN004 = Fixtures(
    firing=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 60_000.0)]),
    expected=Expected(
        severity="high",
        cost=0.3,
        where=(),
        metrics=("full_precision_ratio", "tensor_core_ratio", "capability", "traced_steps"),
        title=("32 bits", "60 %", "mixed precision"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="mixed-precision",
        basis="modelled",
    ),
    silent=lambda: on_gpu([("volta_h884gemm_128x64_nn", 0.0, 10.0, 60_000.0)]),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 29_900.0)]),
    at=lambda: on_gpu([("volta_sgemm_128x64_nn", 0.0, 10.0, 30_100.0)]),
)
KRN005 = Fixtures(
    firing=lambda: many_kernels(18),
    expected=Expected(
        severity="high",
        cost=0.30,
        where=(),
        metrics=("gap_ratio", "kernels_per_step", "kernel_ns", "fusible_ratio", "traced_steps"),
        title=("1,600 kernels", "20 us", "XLA"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="jit-compile",
        basis="modelled",
    ),
    silent=lambda: many_kernels(200, count=300),
    not_applicable=lambda: transposed(10_000),
    missing=DEVICE,
    below=lambda: many_kernels(5),
    at=lambda: many_kernels(6.5),
)
LAY001 = Fixtures(
    firing=lambda: transposed(40_000),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(),
        metrics=("transpose_ratio", "transposes_per_step", "traced_steps"),
        title=("1 layout transposes", "40 %"),
        introduced="model building",
        pipeline_stage="forward-backward",
        remedy="one-layout",
    ),
    silent=lambda: transposed(40_000, name="attention/transpose"),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: transposed(4_900),
    at=lambda: transposed(5_100),
)
