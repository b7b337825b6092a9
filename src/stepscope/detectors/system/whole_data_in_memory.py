"""All data are loaded into one list or array before the first step, and take a large part of the memory there is.

## What it detects
A list, a dictionary or an array of the program's that holds a quarter or more of the memory that bounds the job (its
control group, its address space, the host), has entries or rows, and was there before the first step; while it still
fits.

## Why it matters
The next larger data set, or the same job on a smaller machine or with a second process, dies for lack of memory. The
steps also wait until the last row is loaded.

## Evidence
`held_bytes`: what the variable holds; `held_ratio`: of the limit, twice if the program makes one array of a list, which
takes as much again for a moment; `limit_bytes`; `rows`: its entries, or rows of an array; `rows_that_fit`: how many
would.

## Known limits
Variables are looked up when the memory has doubled from 256 MiB on, has passed a half of its limit, or has grown for
seconds: data that are loaded after the last such look before the first step are missed, in part or whole. A model's own
variables are not data.

## Remedy
Load rows as the steps need them, from their files; or keep them in a smaller type, or in a file that is mapped.

## References
FSE'22 study, symptom "out of memory" ("load all data at once"); tf.data guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.system import memory_owners, out_of_memory
from stepscope.derive.machine import memory_use
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.memory_owners import MemoryOwner
    from stepscope.derive.machine.memory_use import Limit
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the limit, in one variable, with the copy that the program makes of it."""
    min_rows: int = 100
    """Fewer entries or rows are no data set."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    if view.get(out_of_memory.build) is not None:
        return  # it did not fit
    use, first = memory_use.build(view.session, view.steps.worker), int(view.steps.windows[0][0])
    before = tuple(look for look in use.looks if look.at <= first)
    owners = memory_owners.variables(view, replace(use, looks=before))
    owner = next((one for one in owners if one.kind in _HOLD and one.count >= params.min_rows), None)
    limit = use.limit
    if owner is None or limit is None:
        return
    ratio = (1 + owner.copied) * owner.bytes / limit.bytes
    if ratio < params.min_ratio:
        return
    fits = _fitting(owner, limit, max(0.0, before[-1].own_bytes - owner.bytes))
    yield Seen(
        title=_title(owner, limit, fits),
        severity="info",
        confidence=0.85,
        where=owner.where,
        evidence=(
            Evidence(metric="held_bytes", value=owner.bytes, unit="bytes"),
            Evidence(metric="held_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="limit_bytes", value=limit.bytes, unit="bytes"),
            Evidence(metric="rows", value=owner.count, unit="rows"),
            Evidence(metric="rows_that_fit", value=fits, unit="rows"),
        ),
        cost=cost_of(view, 0.0, basis="unknown", ns_per_step=0),
        remedies=_REMEDIES,
        explanation=f"Each takes {format_bytes(owner.per_unit)}{f' ({owner.what})' if owner.what else ''}."
        f"{_COPY if owner.copied else ''} Nothing is lost as long as they fit.",
    )


def _fitting(owner: MemoryOwner, limit: Limit, base: float) -> int:
    if not owner.per_unit:
        owner = replace(owner, per_unit=owner.bytes / owner.count)
    return out_of_memory.fitting(owner, limit, base, owner.bytes * owner.copied)


def _title(owner: MemoryOwner, limit: Limit, fits: int) -> str:
    """``images holds 5.2 GiB of 16 GiB (host) before the first step: 3,000 entries; 8,900 fit``."""
    fit = f"; {fits:,} fit" if fits > owner.count else ""
    return (
        f"{owner.name} holds {format_bytes(owner.bytes)} of {format_bytes(limit.bytes)} ({limit.kind}) before the "
        f"first step: {owner.count:,} {owner.unit}{fit}"
    )


_HOLD = frozenset({"container", "variable"})
_COPY = " The program makes one array of them, which takes as much again while both are there."
_REMEDIES = (
    Remedy(
        id="load-as-needed",
        text="give tf.data the names of the files and load them in map, some at a time "
        "(from_tensor_slices(paths).map(load, num_parallel_calls=AUTOTUNE)), or read them in a DataLoader's dataset",
    ),
    Remedy(
        id="smaller-rows",
        text="or keep them smaller: uint8 images that the pipeline converts, no more columns and pixels than are used, "
        "np.load(file, mmap_mode='r')",
    ),
)


DETECTOR = Detector(
    code="MEM005",
    name="whole-data-in-memory",
    symptom="Memory: out of memory",
    cause="Data: improper data input",
    introduced_stage="data preparation",
    exposed_stage="initialization",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
