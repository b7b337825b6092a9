"""Kernels of a GPU: how well each fills the device, and in which precision it computes.

Occupancy is the share of a multiprocessor's warps that can run at a time given a kernel's registers and shared memory,
as reported by CUPTI; a grid with fewer blocks than the device has multiprocessors leaves some of them idle whatever the
occupancy. Kernel names show the use of tensor cores.

Source: xprof ``utils/kernel_stats_utils.cc`` (which ops can use tensor cores, which kernels do).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.readers.op_names import WHOLE_PROGRAM, parse_op
from stepscope.tables.optrace import Category
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import F64, I64, Bool

_TENSOR_CORE = re.compile(r"884|1688|16816|hmma|imma|xmma|wgmma|tensorop|gmma|nvjet")
"""Parts of the names of cuBLAS, cuDNN and CUTLASS kernels that use tensor cores, from Volta (884) to Hopper (gmma, and
cuBLAS' nvjet)."""
_PLAIN = re.compile(r"ffma|simt")
"""Parts of the names of those that do not, although another part reads so: ``sm80_xmma_gemm_f32f32_..._ffma_``."""
_SIXTEEN_BIT = re.compile(r"(?i)half|bfloat16|bf16|fp16|f16|hgemm|h884|h1688|h16816|nvjet_(sm\d+_)?[ht]")
"""Also cuBLAS' nvjet of half (h) and bfloat16 (t) numbers."""
_GEMM = re.compile(r"(?i)gemm|scudnn|conv|winograd|wgrad|dgrad|fprop|cutlass|nvjet")
"""Kernels of matrix products and convolutions, used if no op is named."""
_ELIGIBLE = re.compile(
    r"_?(Fused)?(Batch)?MatMul(V[23])?|(Xla)?Einsum|XlaDot(V2)?|_?(Fused)?Conv[23]D(Backprop(Input|Filter)(V2)?)?"
    r"|CudnnRNN(Backprop)?(V[23])?|aten::(mm|addmm|bmm|baddbmm|matmul|linear|(cudnn_)?convolution(_backward)?)"
)
"""Types of ops that can use tensor cores."""
TENSOR_CORES_SINCE = 7
"""Major compute capability. Source: CUDA C++ programming guide, Volta."""
MAX_BLOCKS = 1 << 62
"""Upper bound for what a damaged file may claim."""
_DETAIL = re.compile(r"(\w+):([\d.,]+)")


class Kernels(Struct, frozen=True, kw_only=True):
    """Kernels of one device within the steps. Shapes: [kernel], by row."""

    device: int
    row: I64
    dur_ns: I64
    occupancy: F64
    """Occupancy, 0-1; NaN if the trace does not say."""
    blocks: I64
    """Blocks of the grid; 0 if the trace does not say."""
    tensor_core: Bool
    sixteen_bit: Bool
    """Whether the name says that it computes on 16-bit numbers."""
    eligible: Bool
    """Whether its op, or the kernel itself, is a matrix product or a convolution."""
    capability: int
    """Major compute capability of the device; 0 if the trace does not say."""
    multiprocessors: int
    """Number of multiprocessors; 0 if the trace does not say."""
    wall_ns: int
    """Duration of the steps."""

    def ratio(self, which: Bool) -> float:
        """Time of some kernels as a share of the steps."""
        return float(self.dur_ns[which].sum()) / self.wall_ns if self.wall_ns else 0.0

    @property
    def has_tensor_cores(self) -> bool:
        """Whether the device has them."""
        return self.capability >= TENSOR_CORES_SINCE

    @property
    def mean_occupancy(self) -> float | None:
        """Mean occupancy weighted by time; None if the trace does not say."""
        known = ~np.isnan(self.occupancy) & (self.dur_ns > 0)
        return float(np.average(self.occupancy[known], weights=self.dur_ns[known])) if known.any() else None

    @property
    def underfilled(self) -> Bool:
        """Whether each kernel has fewer blocks than the device has multiprocessors."""
        return (self.blocks > 0) & (self.blocks < self.multiprocessors)


def build(trace: OpTrace, device: int, periods: Periods) -> Kernels | None:
    """The kernels of a GPU within the steps; None if there are none."""
    rows = device_work.rows(trace, device, Category.KERNEL)
    events = trace.events
    rows = rows[intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], periods.windows) > 0]
    if not len(rows):
        return None
    names = trace.names()[rows]
    said = {int(i): trace.strings[i] for i in np.unique(names)}
    tensor = {i for i, text in said.items() if _TENSOR_CORE.search(text) and not _PLAIN.search(text)}
    sixteen = {i for i, text in said.items() if _SIXTEEN_BIT.search(text)}
    gemm = {i for i, text in said.items() if _GEMM.search(text)}
    codes, ops = trace.texts(StatName.TF_OP)
    kinds = [(parse_op(text) or (text, text))[1] for text in ops]
    whole = [text == WHOLE_PROGRAM for text in ops]
    wanted = np.array([*(_ELIGIBLE.fullmatch(kind) is not None for kind in kinds), False], np.bool_)
    of_op = np.where(np.array([*whole, False], np.bool_)[codes[rows]], -1, codes[rows])
    occupancy, blocks = _details(trace, rows)
    stats = trace.planes[device].stats
    return Kernels(
        device=device,
        row=rows,
        dur_ns=events.dur_ns[rows],
        occupancy=occupancy,
        blocks=blocks,
        tensor_core=np.isin(names, list(tensor)),
        sixteen_bit=np.isin(names, list(sixteen)),
        eligible=wanted[of_op] | ((of_op < 0) & np.isin(names, list(gemm))),
        capability=_int(stats.get("compute_cap_major")),
        multiprocessors=_int(stats.get("core_count")),
        wall_ns=int(periods.dur_ns.sum()),
    )


def _int(value: float | str | None) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _details(trace: OpTrace, rows: I64) -> tuple[F64, I64]:
    """Occupancy and blocks of the grid, from ``regs:38 shm:0 grid:160,1,1 block:1024,1,1 occ_pct:75``."""
    codes, texts = trace.texts(StatName.KERNEL_DETAILS)
    occupancy = np.full(len(texts) + 1, np.nan)
    blocks = np.zeros(len(texts) + 1, np.int64)
    for i, text in enumerate(texts):
        found = dict(_DETAIL.findall(text))
        if "occ_pct" in found:
            occupancy[i] = float(found["occ_pct"]) / 100
        if "grid" in found:
            blocks[i] = min(MAX_BLOCKS, math.prod(int(n) for n in found["grid"].split(",") if n.isdigit()))
    return occupancy[codes[rows]], blocks[codes[rows]]
