"""Stats of an op trace: a profiler's annotations of an event or a kind of event, one sparse column per name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.tables.records import F64, I64

I32 = npt.NDArray[np.int32]

PlainStat = int | float | str
"""Value of a stat outside columns."""


class StatName:
    """Names of stats with a meaning in the model. Readers map other formats' names to these; any other name of a file
    is kept unchanged.
    """

    GROUP_ID = "group_id"
    """Number that links events to the step that caused them."""
    STEP_NUM = "step_num"
    """Number of the step given by the program; on step markers."""
    STEP_ROOT = "_r"
    """Marks an event as the root of a step (grouping)."""
    CORRELATION_ID = "correlation_id"
    """Number shared by the host's launch call and the device's work."""
    PRODUCER_ID, PRODUCER_TYPE = "_p", "_pt"
    CONSUMER_ID, CONSUMER_TYPE = "_c", "_ct"
    """Id and type that link a producer and a consumer across threads if both are equal."""
    FLOW_OUT, FLOW_IN = "flow_out", "flow_in"
    """Flow arrows of Chrome traces: equal numbers link the event that begins with the one that ends it."""
    TF_OP = "tf_op"
    """Name ``scope/name:Type`` of the framework op that a kernel or an allocation belongs to."""
    HLO_OP, HLO_MODULE, HLO_CATEGORY = "hlo_op", "hlo_module", "hlo_category"
    PROGRAM_ID, RUN_ID = "program_id", "run_id"
    FLOPS, BYTES_ACCESSED = "flops", "bytes_accessed"
    """Amounts for one execution; mostly stats of metas."""
    KERNEL_DETAILS, MEMCPY_DETAILS = "kernel_details", "memcpy_details"
    """Details as ``key:value key:value`` in one string."""
    TRANSFER_BYTES = "transfer_bytes"
    """Size of a copy, extracted from ``memcpy_details`` or similar."""
    SHAPE = "shape"
    INPUTS = "inputs"
    """Names of the nodes whose results an op takes, separated by ", " as TensorFlow's labels have them."""
    IS_EAGER = "is_eager"
    SOURCE = "source"
    """Source line ``file:line``."""
    DEVICE_OFFSET_PS, DEVICE_DURATION_PS = "device_offset_ps", "device_duration_ps"
    """Start and duration on the device's own clock (TPU). The event's own times are mapped to the host's clock, which
    stretches and squeezes single ops by half and more; sums over many hardly change."""
    OCCURRENCES = "num_occurrences"
    """Number of events that this one stands for; it has no start (``start_ns`` is the line's) and carries their summed
    duration."""


class StatColumn(Struct, frozen=True, kw_only=True):
    """One stat. Shapes: ``rows`` int64[value], rising: events (or metas) that have it; ``values`` int64 or float64.

    Numbers above 2**63 - 1 (addresses, hashes) are stored as their two's complement. A string's value is its index in
    ``texts``. A stat that is a number in some events and a string in others is a string in all.
    """

    name: str
    rows: I64
    values: I64 | F64
    texts: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """The number of values."""
        return len(self.rows)

    def between(self, first: int, last: int | None) -> StatColumn:
        """The values of rows ``first`` to ``last`` (exclusive; None: to the end)."""
        begin = int(np.searchsorted(self.rows, first))
        end = len(self.rows) if last is None else int(np.searchsorted(self.rows, last))
        return replace(self, rows=self.rows[begin:end], values=self.values[begin:end])

    def of(self, rows: I64) -> StatColumn:
        """The values of some rows, which rise."""
        at = np.searchsorted(self.rows, rows)
        there = at < len(self.rows)
        there[there] = self.rows[at[there]] == rows[there]
        at = at[there]
        return replace(self, rows=self.rows[at], values=self.values[at])

    def text(self, position: int) -> str:
        """The value at ``position`` (not row) as a text."""
        value = self.values[position]
        return str(value) if self.texts is None else self.texts[int(value)]


def no_stat(name: str) -> StatColumn:
    """A column without values."""
    return StatColumn(name=name, rows=np.empty(0, np.int64), values=np.empty(0, np.int64))


def as_texts(column: StatColumn) -> tuple[I32, tuple[str, ...]]:
    """The values as texts: int32[value], indices into the texts."""
    if column.texts is not None:
        return column.values.astype(np.int32), column.texts
    values, codes = np.unique(column.values, return_inverse=True)
    return codes.astype(np.int32), tuple(str(v) for v in values.tolist())


def joined(name: str, parts: Sequence[StatColumn]) -> StatColumn:
    """Pieces of one stat as one column: strings if any piece holds strings, else floats if any holds floats."""
    if not parts:
        return no_stat(name)
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    if all(part.texts is None for part in parts):
        values = np.concatenate([part.values for part in parts])
        return StatColumn(name=name, rows=rows[order], values=values[order])
    numbers: dict[str, int] = {}
    codes = []
    for part in parts:
        own, texts = as_texts(part)
        codes.append(np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)[own])
    return StatColumn(name=name, rows=rows[order], values=np.concatenate(codes)[order], texts=tuple(numbers))


class StatReader(Protocol):
    """Reads stats on request; keeps the source that it needs for it (a buffer, a Parquet file).

    Raises (every method): FormatError, SessionError: the source is damaged.
    """

    def event_names(self) -> Sequence[str]:
        """Names of the stats that events have."""
        ...

    def meta_names(self) -> Sequence[str]:
        """Names of the stats that metas have."""
        ...

    def of_events(self, name: str, first: int = 0, last: int | None = None) -> StatColumn:
        """One stat of the events from row ``first`` to ``last`` (exclusive; None: to the end); empty if none has it."""
        ...

    def of_rows(self, name: str, rows: I64) -> StatColumn:
        """One stat of some events, whose rows rise; if an event has it twice, the first. Faster than ``of_events`` if
        most of them have it.
        """
        ...

    def of_metas(self, name: str) -> StatColumn:
        """One stat of metas; empty if none has it."""
        ...

    def columns(self) -> Iterator[StatColumn]:
        """All stats of events, in pieces: a name may occur several times, with rising rows. For copying them."""
        ...


class LoadedStats(Struct, frozen=True):
    """Stats that are in memory."""

    events: Mapping[str, StatColumn] = field(default_factory=dict)
    metas: Mapping[str, StatColumn] = field(default_factory=dict)

    def event_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return tuple(self.events)

    def meta_names(self) -> Sequence[str]:
        """See ``StatReader``."""
        return tuple(self.metas)

    def of_events(self, name: str, first: int = 0, last: int | None = None) -> StatColumn:
        """See ``StatReader``."""
        column = self.events.get(name) or no_stat(name)
        return column if first == 0 and last is None else column.between(first, last)

    def of_rows(self, name: str, rows: I64) -> StatColumn:
        """See ``StatReader``."""
        return self.of_events(name).of(rows)

    def of_metas(self, name: str) -> StatColumn:
        """See ``StatReader``."""
        return self.metas.get(name) or no_stat(name)

    def columns(self) -> Iterator[StatColumn]:
        """See ``StatReader``."""
        yield from self.events.values()
