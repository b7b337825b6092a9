"""Copies that a compiled program itself makes between its device's memory and the host's: arrays that it offloads.

XLA splits such a copy into ``copy-start`` and ``copy-done``; the device waits in the second for what is left of it. The
layouts in an op's text say where the array lies: ``S(5)`` is the host's memory. A TPU's lines have the text as the op's
name. Source: xla/layout.h (kHostMemorySpace), xla/service/host_offloader.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.device import device_work
from stepscope.tables.optrace import Category

if TYPE_CHECKING:
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

HOST = "S(5)"
"""Mark of the host's memory in a layout."""
_COPY = re.compile(r"%?copy-(?:start|done)[\w.-]* = .* copy-(start|done)\(", re.DOTALL)
_ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)\w*)\[([\d,]*)\](?:\{([^}]*)\})?")
_SOURCE = {"start": 1, "done": 2}
"""Place of the array that is copied among those of the text: a start gives (copy, array, token), a done takes them."""


class Offload(Struct, frozen=True, kw_only=True):
    """What one op copies."""

    way: str
    """``device_work.TO_DEVICE`` or ``FROM_DEVICE``."""
    bytes: int
    array: str
    """Its type and shape: ``f32[5,1024]``."""
    waits: bool
    """Whether the device waits in this op for the copy's end (``copy-done``)."""


def of_text(text: str) -> Offload | None:
    """What the op of a text copies between device and host; None for every other op."""
    match = _COPY.match(text)
    arrays = list(_ARRAY.finditer(text)) if match is not None else []
    if match is None or len(arrays) <= _SOURCE[match[1]]:
        return None
    into, out_of = (HOST in (arrays[at][4] or "") for at in (0, _SOURCE[match[1]]))
    if into == out_of:
        return None
    kind, bits, shape = arrays[0][1], int(arrays[0][2] or 8), arrays[0][3]
    size = bits * int(np.prod([int(length) for length in shape.split(",") if length], dtype=np.int64)) // 8
    way = device_work.FROM_DEVICE if into else device_work.TO_DEVICE
    return Offload(way=way, bytes=size, array=f"{kind}[{shape}]", waits=match[1] == "done")


def rows(trace: OpTrace, plane: int, way: str, *, waits: bool = False) -> I64:
    """Rows of a device's copies of one way; ``waits``: only those in which the device waits for one."""
    found = device_work.rows(trace, plane, Category.COPY)
    names, of_row = np.unique(trace.metas.name[trace.events.meta[found]], return_inverse=True)
    copied = [of_text(trace.strings[name]) for name in names]
    wanted = [one is not None and one.way == way and (one.waits or not waits) for one in copied]
    chosen: I64 = found[np.array(wanted, np.bool_)[of_row]]
    return chosen


def what(trace: OpTrace, chosen: I64) -> list[tuple[Offload, int]]:
    """What some rows of ``rows`` copy, each with the number of times."""
    names, counts = np.unique(trace.metas.name[trace.events.meta[chosen]], return_counts=True)
    copied = [(of_text(trace.strings[name]), int(count)) for name, count in zip(names, counts, strict=True)]
    return [(one, count) for one, count in copied if one is not None]
