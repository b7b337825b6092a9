"""Whether the step's ops are as fast as they can be here: their time in the steps against their time alone.

The heaviest ops were replayed alone after the job (``sidecar.op_replays``), at their shapes, types and attributes.
An op counts as proven if a run takes in the steps at most 1 / 0.7 of its time alone, and nothing cheaper is known: its
time is not the fixed cost of an op, it does more than rearrange data, and it was not at least 1.5 times as fast in
float32 instead of float64, for each sample of a larger batch, or with other threads. 16 bits change the numbers of a
model: that they are faster is said, and refutes nothing.

Wall time in which several ops run is divided among them (``derive.optrace.wall_shares``), so that shares add up to the
call at most. The roofs only explain.

Serves op_slower_than_alone and cheaper_way_measured.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.graph import heavy_ops
from stepscope.derive.optrace.kernels import op_work
from stepscope.model.session.replays import BATCH_FACTOR, ReplayTimes
from stepscope.tables.units import format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.causes.graph.heavy_ops import HeavyOp, HeavyOps
    from stepscope.derive.view import SessionView
    from stepscope.model.session.replays import Recipe, ReplayedOp, Replays, Roofs, Variant
    from stepscope.tables.records import F64

MIN_RATIO = 0.7
"""Time alone over time in the steps from which an op is as fast as it can be here. Source: issue text of the ledger;
measured ratios of tuned programs are in docs/benchmarks/op-limits.md."""
MAX_RATIO = 2.0
"""The same above which the op alone is not what ran in the steps. If inputs from memory make that difference, its time
with inputs from the caches is compared instead."""
CHEAPER = 1.5
"""Factor by which another way to compute an op must be faster alone."""
MIN_OVER_FIXED = 4.0
"""Time alone over the fixed cost of an op below which larger ops would do more in the same time."""
MOVES = frozenset({"Transpose", "Cast", "Tile", "BroadcastTo", "Slice", "StridedSlice", "StridedSliceGrad"})
"""Types that only rearrange or convert what another op could have made so."""
MAX_WAITED = 0.1
"""Time that its threads waited for a CPU during the fastest run alone, over the run's time, above which it was not
alone."""
MIN_OTHERS = 0.05
"""CPUs that other processes must use meanwhile for such a wait to be due to them: an op's own threads wait for each
other where they are more than the CPUs."""
MIN_TOLD = 0.01
"""Share of the call below which what is proven is not named."""
LOW = 25
"""Percentile of the steps that a saving's lower bound is taken from."""


class Cheaper(Struct, frozen=True, kw_only=True):
    """Another way to compute an op that is faster alone."""

    variant: Variant
    """What is different: another type, a larger batch; "": other threads."""
    threads: int
    factor: float
    """How many times as fast, for the same work."""

    @property
    def text(self) -> str:
        """What it is, as the end of a sentence."""
        if self.variant == "batch":
            return f"{self.factor:.1f} times as fast per sample in batches {BATCH_FACTOR} times as large"
        if self.variant == "channels":
            return f"{self.factor:.1f} times as fast with the width as channels"
        if self.variant:
            return f"{self.factor:.1f} times as fast in {self.variant}"
        return f"{self.factor:.1f} times as fast with {_threads(self.threads)}"


class OpLimit(Struct, frozen=True, kw_only=True):
    """One heavy op: its time in the steps and alone. Times in ns of one run."""

    op: HeavyOp
    share: float
    """Share of the traced step's call."""
    step_ratio: float
    """Share of the traced step."""
    alone_ns: float
    """The fastest run alone; 0: it was not measured."""
    slow_alone_ns: float
    """Time alone that a quarter of the runs took longer than."""
    cheaper: tuple[Cheaper, ...]
    disturbed: bool
    """Whether others had the CPUs while it ran alone."""
    small: bool
    """Whether its time alone is mostly the fixed cost of an op."""
    why: str
    """Why there is no proof; "" if it is proven."""
    flops: float
    """Operations of one run."""
    bytes: float
    """Bytes that one run reads and writes."""
    roof_ratio: float
    """Shortest possible time by the machine's roofs over the time alone; 0: unknown."""

    @property
    def ratio(self) -> float:
        """Time alone over wall time in the steps; 0: it was not measured."""
        return self.alone_ns / self.op.call_ns if self.op.call_ns else 0.0

    @property
    def proven(self) -> bool:
        """Whether it is as fast as it can be here."""
        return not self.why

    @property
    def type(self) -> str:
        """Type of the op."""
        return self.op.type


class OpLimits(Struct, frozen=True, kw_only=True):
    """What is known about the ops of the step's call."""

    ops: tuple[OpLimit, ...]
    """The heavy ops, the heaviest first."""
    heavy: HeavyOps
    replays: Replays
    call_ratio: float
    """Share of the steady steps in their call, as the report says it."""

    @property
    def explained_ratio(self) -> float:
        """Share of the step's call in ops that are proven to be as fast as they can be here."""
        return min(1.0, sum(limit.share for limit in self.ops if limit.proven))

    @property
    def roofs(self) -> Roofs | None:
        """The machine's roofs, if they were measured."""
        return self.replays.roofs

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        if self.explained_ratio < MIN_TOLD:
            return f"compute {format_ratio(self.call_ratio)}: none of it is known to be at this machine's limit"
        parts = [
            f"{format_ratio(share)} {kind} at {format_ratio(ratio)}"
            for kind, share, ratio in self._by_type()[:3]
            if share >= MIN_TOLD
        ]
        return (
            f"compute {format_ratio(self.call_ratio)}, {format_ratio(self.explained_ratio)} of it as fast as it can be "
            f"here: {', '.join(parts)} of what it reaches alone"
        )

    def _by_type(self) -> list[tuple[str, float, float]]:
        """(type, share of the call, ratio to its time alone) of what is proven, the largest first."""
        groups: dict[str, list[OpLimit]] = defaultdict(list)
        for limit in self.ops:
            if limit.proven:
                groups[limit.type].append(limit)
        rows = []
        for kind, limits in groups.items():
            share = sum(limit.share for limit in limits)
            alone = sum(min(1.0, limit.ratio) * limit.share for limit in limits)
            rows.append((kind, share, alone / share if share else 0.0))
        return sorted(rows, key=lambda row: -row[1])

    def slowed(self) -> tuple[OpLimit, ...]:
        """Ops that take more than 1 / 0.7 of their time alone."""
        apart = [limit for limit in self.ops if not limit.small and not limit.disturbed]
        return tuple(limit for limit in apart if 0 < limit.ratio < MIN_RATIO)

    def lost(self) -> tuple[float, float]:
        """Share of the step that these take beyond their time alone: the estimate, and its lower bound."""
        slowed = self.slowed()
        if not slowed:
            return 0.0, 0.0
        runs = [limit.op.calls_per_step for limit in slowed]
        mean = sum(limit.op.step_ns - n * limit.alone_ns for limit, n in zip(slowed, runs, strict=True))
        per_step: F64 = np.sum([limit.op.per_step_ns for limit in slowed], axis=0)
        alone = sum(n * limit.slow_alone_ns for limit, n in zip(slowed, runs, strict=True))
        low = float(np.percentile(per_step, LOW)) - alone
        step = self.heavy.step_ns
        return max(0.0, mean / step), max(0.0, min(mean, low) / step)


def build(view: SessionView) -> OpLimits | None:
    """None if no ops were replayed, or the session's trace shows no steps."""
    replays, heavy = view.session.replays, view.get(heavy_ops.build)
    if replays is None or heavy is None or not heavy.compute_ns:
        return None
    measured = {op.key: op for op in replays.ops}
    found = tuple(_limit(op, measured.get(op.key), heavy, replays) for op in heavy.ops[: 2 * heavy_ops.MOST])
    call = view.anatomy.ratio("call") if view.anatomy is not None else heavy.compute_ns / heavy.step_ns
    return OpLimits(ops=found, heavy=heavy, replays=replays, call_ratio=call)


def _limit(op: HeavyOp, measured: ReplayedOp | None, heavy: HeavyOps, replays: Replays) -> OpLimit:
    times = {(t.variant, t.threads): t for t in measured.times} if measured is not None else {}
    alone = times.get(("", replays.threads))
    fastest = _alone_ns(op, alone)
    cheaper = _cheaper(times, replays)
    small = 0 < fastest < MIN_OVER_FIXED * replays.fixed_ns
    flops = op_work.flops(op.recipe) if op.recipe is not None else 0.0
    moved = float(op.recipe.bytes) if op.recipe is not None else 0.0
    return OpLimit(
        op=op,
        share=op.step_ns / heavy.compute_ns,
        step_ratio=op.step_ns / heavy.step_ns,
        alone_ns=fastest,
        slow_alone_ns=max(alone.slow_ns, fastest) if alone is not None else 0.0,
        cheaper=cheaper,
        disturbed=alone is not None and _disturbed(alone, replays),
        small=small,
        why=_unmeasured(op, alone, replays)
        or _slower(op, fastest)
        or _wasteful(op, cheaper, small=small)
        or _too_few_threads(times, replays),
        flops=flops,
        bytes=moved,
        roof_ratio=_roof_ratio(op.recipe, flops, moved, fastest, replays.roofs),
    )


def _alone_ns(op: HeavyOp, alone: ReplayTimes | None) -> float:
    """Time of the fastest run alone: with inputs from memory; from the caches if steps run it much faster than that."""
    if alone is None:
        return 0.0
    cached = alone.fastest_ns > MAX_RATIO * op.call_ns and alone.warm_ns > 0
    return alone.warm_ns if cached else alone.fastest_ns


def _disturbed(times: ReplayTimes, replays: Replays) -> bool:
    """Whether other processes had the CPUs during the fastest run."""
    return times.waited_ratio > MAX_WAITED and replays.others_cores > MIN_OTHERS


def _unmeasured(op: HeavyOp, alone: ReplayTimes | None, replays: Replays) -> str:
    """Why an op's time alone is not known."""
    if op.recipe is None:
        return op.why
    if alone is None:
        return "it was not measured alone: there was no time left"
    if not alone.fastest_ns:
        return alone.problem or "it was not measured alone"
    return "other processes had the CPUs while it ran alone" if _disturbed(alone, replays) else ""


def _too_few_threads(times: Mapping[tuple[Variant, int], ReplayTimes], replays: Replays) -> str:
    """Why nothing is proven of a job that uses fewer threads than there are CPUs: more were not measured well."""
    if not 0 < replays.threads < replays.cores:
        return ""
    more = times.get(("", replays.cores))
    if more is not None and more.fastest_ns and not _disturbed(more, replays):
        return ""
    return f"the job uses {_threads(replays.threads)} of {replays.cores} CPUs, and more could not be measured"


def _slower(op: HeavyOp, alone_ns: float) -> str:
    """Why an op's time in the steps is not its time alone."""
    if alone_ns > MAX_RATIO * op.call_ns:
        return f"alone it takes {alone_ns / op.call_ns:.1f} times as long as in the steps: no comparison"
    if alone_ns >= MIN_RATIO * op.call_ns:
        return ""
    return f"it takes {op.call_ns / alone_ns:.1f} times as long as alone"


def _wasteful(op: HeavyOp, cheaper: Sequence[Cheaper], *, small: bool) -> str:
    """Why an op that is as fast as alone is not as fast as it can be."""
    if small:
        return "it is so small that most of its time is the fixed cost of an op"
    if op.type in MOVES:
        return "it only rearranges data"
    refuting = [way for way in cheaper if way.variant != "bfloat16"]
    return f"alone it is {refuting[0].text}" if refuting else ""


def _cheaper(times: Mapping[tuple[Variant, int], ReplayTimes], replays: Replays) -> tuple[Cheaper, ...]:
    """Ways that are faster by ``CHEAPER`` at least: their slow runs against the fastest of the op as it is."""
    base = times.get(("", replays.threads))
    if base is None or not base.fastest_ns or _disturbed(base, replays):
        return ()
    found = []
    for (variant, threads), other in times.items():
        if other is base or not other.fastest_ns:
            continue
        work = BATCH_FACTOR if variant == "batch" else 1
        factor = min(base.fastest_ns / other.fastest_ns, base.median_ns / other.median_ns) * work
        if factor >= CHEAPER:
            found.append(Cheaper(variant=variant, threads=threads, factor=factor))
    return tuple(sorted(found, key=lambda way: -way.factor))


def _roof_ratio(recipe: Recipe | None, flops: float, moved: float, alone_ns: float, roofs: Roofs | None) -> float:
    if recipe is None or roofs is None or not alone_ns:
        return 0.0
    rates = [rate for size, rate in roofs.copies if moved <= size] or [roofs.memory_bytes_per_s]
    by_bytes = moved / max(1.0, rates[0], roofs.memory_bytes_per_s)
    single = all(given.dtype in {"float32", "int32", "int64"} for given in recipe.inputs)
    by_flops = flops / max(1.0, roofs.flops_per_s) if single else 0.0
    return max(by_bytes, by_flops) / (1e-9 * alone_ns)


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"
