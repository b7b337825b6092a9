"""Weights of a profile summed over its tree of stacks, and over functions.

A profile's stacks form a tree: totals are sums from the leaves up. A function's total counts a sample once, however
often the function stands on its stack (recursion).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.tables.stacks import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.records import F64, I64
    from stepscope.tables.stacks import Frame, StackProfile


class Totals(Struct, frozen=True, kw_only=True):
    """Self and total of each stack or function. float64[n], in the unit of the column that was summed."""

    self_weight: F64
    total: F64


def stack_totals(profile: StackProfile, weights: F64) -> Totals:
    """Sums over the tree of stacks. ``weights``: float64[sample], the column to sum.

    Total = self + the totals of the children, exactly for whole numbers.
    """
    size = len(profile.stacks)
    mine = profile.samples.stack
    self_weight = np.bincount(mine[mine != UNKNOWN], weights[mine != UNKNOWN], minlength=size).astype(np.float64)
    total = self_weight.copy()
    for level in reversed(_levels(profile.stacks.parent)):
        parents = profile.stacks.parent[level]
        np.add.at(total, parents[parents != UNKNOWN], total[level[parents != UNKNOWN]])
    return Totals(self_weight=self_weight, total=total)


def _levels(parents: I64) -> list[I64]:
    """Stacks by their depth, roots first."""
    depth = np.zeros(len(parents), np.int64)
    for stack, parent in enumerate(parents.tolist()):
        if parent != UNKNOWN:
            depth[stack] = depth[parent] + 1
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(parents) else []


def function_keys(frames: Sequence[Frame]) -> tuple[I64, list[Frame]]:
    """The function of each frame, int64[frame] (lines of one function are merged), and one frame for each function."""
    known: dict[tuple[str, str, str], int] = {}
    shown: list[Frame] = []
    keys = []
    for frame in frames:
        key = (frame.function, frame.file, frame.module)
        if key not in known:
            known[key] = len(known)
            shown.append(frame._replace(line=0))
        keys.append(known[key])
    return np.array(keys, np.int64), shown


def function_totals(profile: StackProfile, weights: F64, functions: I64) -> Totals:
    """Sums over functions; ``functions``: int64[frame] from ``function_keys``."""
    of_stacks = stack_totals(profile, weights)
    mine = functions[profile.stacks.frame] if len(profile.stacks) else np.empty(0, np.int64)
    size = int(functions.max()) + 1 if len(functions) else 0
    outermost = _outermost(profile.stacks.parent, mine)
    return Totals(
        self_weight=np.bincount(mine, of_stacks.self_weight, minlength=size).astype(np.float64),
        total=np.bincount(mine[outermost], of_stacks.total[outermost], minlength=size).astype(np.float64),
    )


def _outermost(parents: I64, functions: I64) -> I64:
    """Stacks in which the leaf's function does not occur further out."""
    above: list[frozenset[int]] = []
    found = []
    for stack, (parent, function) in enumerate(zip(parents.tolist(), functions.tolist(), strict=True)):
        callers = above[parent] if parent != UNKNOWN else frozenset()
        if function in callers:
            above.append(callers)
        else:
            above.append(callers | {function})
            found.append(stack)
    return np.array(found, np.int64)
