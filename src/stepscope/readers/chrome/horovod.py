"""Horovod's timeline: what rank 0 wrote of each tensor's exchanges, and which rank came when.

Each tensor is a process; NEGOTIATE_* is the wait until all ranks have it, an instant in it named by a number the moment
at which that rank came. Horovod answers later exchanges of a tensor from a cache, which leaves these instants out.

Source: horovod 0.28, ``common/timeline.cc``; ``HOROVOD_CACHE_CAPACITY`` in its documentation of environment variables.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from stepscope.readers.chrome import json_values
from stepscope.readers.op_names import Meaning
from stepscope.tables.optrace import Category
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.readers.chrome.trace_json import Json

NOTE = "DX125"
NEGOTIATE = "NEGOTIATE_"
_STAMP = "start_time_since_epoch_in_micros"
_EXCHANGES = re.compile(
    rf"({NEGOTIATE}|GLOO_|MPI_|NCCL_|CCL_)?(ALLREDUCE|ALLGATHER|BROADCAST|BCAST|ALLTOALL|REDUCESCATTER|ALLGATHERV)"
)
MIN_SHOWN = 0.5
"""Share of the exchanges from which their order of arrival stands for all."""


class Moment(NamedTuple):
    """An event of the timeline."""

    phase: str
    tensor: str
    name: str
    at_us: float


def started_us(described: Iterable[Mapping[str, Json]]) -> int:
    """Microseconds since 1970 at time 0 of a Horovod timeline, by the arguments of its metadata; 0: it is none."""
    return next((int(json_values.number(args[_STAMP])) for args in described if _STAMP in args), 0)


def meaning(name: str) -> Meaning | None:
    """The meaning of an activity; None if it is no exchange."""
    return Meaning(category=Category.COLLECTIVE) if _EXCHANGES.fullmatch(name) else None


def said(moments: Iterable[Moment]) -> str:
    """How long ranks waited for each other, and for whom if most exchanges show it; "" without exchanges."""
    begun: dict[str, float] = {}
    came: dict[str, list[str]] = {}
    waits: list[float] = []
    last: Counter[str] = Counter()
    for phase, tensor, name, at_us in moments:
        if phase == "B" and name.startswith(NEGOTIATE):
            begun[tensor], came[tensor] = at_us, []
        elif phase == "X" and name.isdigit() and tensor in begun:
            came[tensor].append(name)
        elif phase == "E" and tensor in begun:
            waits.append(at_us - begun.pop(tensor))
            if len(came[tensor]) > 1:
                last[came[tensor][-1]] += 1
    if not waits:
        return ""
    usual = format_ns(int(1000 * sorted(waits)[len(waits) // 2]))
    text = f"Horovod's timeline is that of rank 0 alone: {len(waits):,} exchanges, before each it waits {usual} for all"
    shown = last.total() / len(waits)
    if shown < MIN_SHOWN:
        return (
            f"{text}; which rank came last is shown of {last.total():,} only, as a cache answers the others: "
            "HOROVOD_CACHE_CAPACITY=0 shows all"
        )
    rank, count = last.most_common(1)[0]
    return f"{text}; rank {rank} came last in {format_ratio(count / last.total())} of those that show it"
