"""The most that TLB misses can cost a job's steps.

A miss costs at most what a chase over small pages measured here (``tables.page_walks``). How many there are is
counted where the processor does that. Elsewhere, how many there can be follows from what the traced ops work on, with
assumptions that are in docs/decisions/0055-tlb-bound.md: dense ops use pages in order, at most `PASSES` times; products
of matrices are computed in blocks, and load at most one byte from beyond the second-level cache per `FLOPS_PER_BYTE`
operations; ops that look up rows miss for each row. All of the time in which the process ran, but not in such ops,
could be misses.

Serves memory_in_small_pages, and the address spaces of reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.graph import heavy_ops
from stepscope.causes.system import steady_page_faults
from stepscope.derive.machine import address_space
from stepscope.derive.optrace.kernels import op_work
from stepscope.model.report.machine.memory_map import Translation
from stepscope.model.session.replays import size_of

if TYPE_CHECKING:
    from stepscope.causes.graph.heavy_ops import HeavyOp
    from stepscope.derive.view import SessionView
    from stepscope.model.report.machine.memory_map import MemoryMap
    from stepscope.model.session.replays import Recipe
    from stepscope.tables.page_walks import PageWalks

PASSES = 3
"""Times that an op reads an input or writes its output: softmax and normalisations read theirs three times."""
FLOPS_PER_BYTE = 32.0
"""Operations of a product per byte from beyond the second-level cache. Source: blocks of 128 rows and 256 columns, the
smallest that BLIS and oneDNN use: 1/128 + 2/256 elements of 4 bytes for each multiplication and addition."""
ROWS = frozenset({"GatherV2", "ResourceGather", "UnsortedSegmentSum"})
"""Types that look up or add rows in any order."""
SCATTERED = frozenset({"Transpose", "TopKV2"})
"""Types that can use a different page for each element."""
_AXIS = 2
"""Input of GatherV2 that is the dimension looked up."""
MAX_RATIO = 0.5
"""A bound above it bounds nothing."""
PAGE_BYTES = 4096


class Misses(Struct, frozen=True, kw_only=True):
    """The most misses of one run of an op."""

    in_order: float
    """Of pages that are used one after the other."""
    scattered: float


def maps(view: SessionView) -> tuple[MemoryMap, ...]:
    """The address spaces of a session's processes, with what translating addresses can cost the steps."""
    walks = view.session.page_walks
    found = address_space.of_session(view.session)
    if walks is None or not walks.points:
        return found
    return tuple(replace(one, translation=_translation(view, one, walks)) for one in found)


def of_counters(one: MemoryMap, walks: PageWalks) -> MemoryMap:
    """A map with the most that counted misses cost; without counters the cost of a miss alone.

    Nothing else is known about what the process does.
    """
    found = unbounded(one, walks)
    misses_per_s = one.hardware.tlb_misses_per_s if one.hardware is not None else None
    if misses_per_s is None or found.translation is None:
        return found
    ratio = min(1.0, misses_per_s * found.translation.walk_ns * 1e-9)
    return replace(found, translation=replace(found.translation, ratio=ratio, counted=True))


def unbounded(one: MemoryMap, walks: PageWalks) -> MemoryMap:
    """A map with the cost of a miss alone: nothing is known about what the process does."""
    small = one.resident_bytes - one.huge_bytes
    return replace(one, translation=Translation(small_bytes=small, walk_ns=walks.cost_ns(small)))


def misses(recipe: Recipe) -> Misses:
    """The most misses of one run of an op."""
    kind = recipe.nodes[recipe.main].type
    pages = sum(tensor.elements * size_of(tensor.dtype) // PAGE_BYTES + 1 for tensor in (*recipe.inputs, recipe.output))
    beyond = op_work.flops(recipe) / FLOPS_PER_BYTE / PAGE_BYTES
    return Misses(in_order=PASSES * pages + beyond, scattered=_scattered(kind, recipe))


def _scattered(kind: str, recipe: Recipe) -> float:
    if kind in SCATTERED:
        return float(recipe.output.elements)
    if kind not in ROWS:
        return 0.0
    row = _row_elements(recipe)
    elements = max(recipe.output.elements, recipe.inputs[0].elements if kind == "UnsortedSegmentSum" else 0)
    return elements / row * (1 + row * size_of(recipe.output.dtype) // PAGE_BYTES)


def _row_elements(recipe: Recipe) -> int:
    """Elements that lie together in what is looked up or added: the last dimension, unless lookups go along it."""
    table, output = recipe.inputs[0].shape, recipe.output.shape
    axis = recipe.inputs[_AXIS].values if len(recipe.inputs) > _AXIS else ()
    if len(table) <= 1 or not output or table[-1] != output[-1] or not {-1, len(table) - 1}.isdisjoint(axis):
        return 1
    return max(1, table[-1])


def _translation(view: SessionView, one: MemoryMap, walks: PageWalks) -> Translation:
    heavy, worker = view.get(heavy_ops.build), view.worker
    alone = of_counters(one, walks).translation
    if (
        alone is None
        or alone.counted
        or heavy is None
        or worker is None
        or worker.info.pid != one.pid
        or not heavy.step_ns
    ):
        return alone or Translation()
    paging = view.get(steady_page_faults.build)
    cores = paging.cpu_ns / max(1, paging.span_ns) if paging is not None else 1.0
    known = [op for op in heavy.ops if op.recipe is not None]
    lost = sum(_lost_ns(op, walks, alone.small_bytes, max(1.0, cores)) for op in known) / heavy.step_ns
    known_ratio = min(1.0, sum(op.step_ns for op in known) / heavy.step_ns)
    ratio = lost + max(0.0, min(1.0, cores) - known_ratio)
    return replace(
        alone,
        misses_per_step=sum(op.calls_per_step * _number(op) for op in known),
        known_ratio=known_ratio,
        known_lost_ratio=lost,
        ratio=ratio if ratio <= MAX_RATIO else None,
    )


def _lost_ns(op: HeavyOp, walks: PageWalks, size: int, cores: float) -> float:
    """The most of an op's wall time in a step that is misses. Threads share them as they share its CPU time."""
    if op.recipe is None:
        return op.step_ns
    found = misses(op.recipe)
    each = found.in_order * walks.cost_ns(size, in_order=True) + found.scattered * walks.cost_ns(size)
    return min(op.step_ns, op.calls_per_step * each / cores)


def _number(op: HeavyOp) -> float:
    found = misses(op.recipe) if op.recipe is not None else Misses(in_order=0.0, scattered=0.0)
    return found.in_order + found.scattered
