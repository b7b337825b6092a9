"""The function of the input that makes its elements larger: casts, one-hot rows, resizing to more than was read.

What is cast or encoded before the copy to the device is copied in its larger form, and batched, shuffled and cached in
it; the device could do it after the copy. Sizes are static: types and shapes, whatever the values.

Source: training-pipeline analysis (Rand 2020), "hold off on casting ... until after the data is copied".

Serves host_to_device_copy_bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.log.events import DatasetMade

MIN_RATIO = 2.0
"""Growth from which it counts: a type twice as wide."""
MAPS = "Map"
"""Part of the class names of the transformations that apply a function to each element."""
FLAT = "Flat"
"""Part of the names of those that make several elements of one."""


class Widening(Struct, frozen=True, kw_only=True):
    """A map that gives larger elements than it takes."""

    made: DatasetMade
    ratio: float


def build(datasets: Sequence[DatasetMade]) -> Widening | None:
    """The map that grows the elements of an iterator most; None if no map doubles them, or sizes are unknown."""
    by_id = {d.id: d for d in datasets}
    found = []
    for made in datasets:
        source = by_id.get(made.inputs[0]) if len(made.inputs) == 1 else None
        if source is None or MAPS not in made.cls or FLAT in made.cls or not source.element_bytes:
            continue
        ratio = made.element_bytes / source.element_bytes
        if ratio >= MIN_RATIO and made.file:
            found.append(Widening(made=made, ratio=ratio))
    return max(found, key=lambda one: one.ratio, default=None)
