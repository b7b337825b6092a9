"""The devices of a kineto trace: what its head says of each GPU and of the process's rank, and what a kernel's
arguments say of its launch.

Both are given the names that XSpace files use. Kineto makes a process for each of eight devices, whether there are so
many or not; its head lists those that there are.

Source: pytorch/kineto, ``libkineto/src/output_json.cpp`` (``deviceProperties``, and ``distributedInfo`` of
torch/profiler/profiler.py) and ``CuptiActivity.cpp`` (arguments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.readers.chrome.trace_json import Json
    from stepscope.tables.optrace_stats import PlainStat

_OF_DEVICE = {
    "name": "device_type_string",
    "computeMajor": "compute_cap_major",
    "computeMinor": "compute_cap_minor",
    "numSms": "core_count",
    "totalGlobalMem": "memory_size",
}
_MOST_RANKS = 1 << 20
"""Rank from which a number is none."""
_OCCUPANCY = "est. achieved occupancy %"
"""Share of the warps that fit, estimated by kineto from registers, shared memory and the grid."""
GRID, _BLOCK, _REGISTERS = "grid", "block", "registers per thread"
OF_LAUNCH = (GRID, _BLOCK, _REGISTERS, _OCCUPANCY)
"""Arguments that say how a kernel was launched."""


def devices(head: Json) -> dict[int, Mapping[str, PlainStat]]:
    """Stats of each device in ``deviceProperties``, by its number; empty if the file has none."""
    found: dict[int, Mapping[str, PlainStat]] = {}
    for one in head if isinstance(head, list) else []:
        number = one.get("id") if isinstance(one, dict) else None
        if isinstance(number, int):
            stats = {ours: one[theirs] for theirs, ours in _OF_DEVICE.items() if isinstance(one.get(theirs), int | str)}
            found[number] = stats
    return found


class Rank(NamedTuple):
    """The place of a process in a distributed job, as in ``TraceSource``."""

    rank: int
    world_size: int
    backend: str


def rank(head: Json) -> Rank:
    """What ``distributedInfo`` says: torch.profiler writes it if torch.distributed was initialised when it started."""
    said = head if isinstance(head, dict) else {}
    number, size, backend = said.get("rank"), said.get("world_size"), said.get("backend")
    return Rank(
        rank=number if _is_count(number) else -1,
        world_size=size if _is_count(size) else 0,
        backend=backend if isinstance(backend, str) else "",
    )


def _is_count(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_RANKS


def launch(args: Mapping[str, Json]) -> str | None:
    """A kernel's registers, grid, block and occupancy, as an XSpace file says them; None for other events."""
    grid = _numbers(args.get(GRID))
    if not grid:
        return None
    said = {"regs": args.get(_REGISTERS), "grid": grid, "block": _numbers(args.get(_BLOCK))}
    said["occ_pct"] = args.get(_OCCUPANCY)
    return " ".join(f"{name}:{value}" for name, value in said.items() if value is not None)


def _numbers(value: Json) -> str | None:
    """``[160, 1, 1]`` as ``160,1,1``."""
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        return None
    return ",".join(map(str, value))
