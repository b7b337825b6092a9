"""The events of a trace file as columns, filled some thousands at a time: what is left of them once they are decoded.

Phase, name, category, process and thread of an event are looked up together: most events repeat those of another.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from stepscope.readers.chrome import json_values
from stepscope.readers.chrome.arg_columns import ArgBatch, ArgColumns
from stepscope.readers.stat_columns import Strings
from stepscope.tables import nesting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.readers.chrome.trace_json import Json, RawEvent
    from stepscope.tables.optrace import I8, I32
    from stepscope.tables.records import F64, I64

_NONE, _SPAN, _OTHER, _NAME, _FLOW, _END, _BEGIN = range(7)
"""What becomes of an event."""
_KINDS = {"": _NONE, **dict.fromkeys("XiIRB", _SPAN), "M": _NAME, **dict.fromkeys("stf", _FLOW), "b": _BEGIN, "e": _END}
_HEAD = attrgetter("ph", "name", "cat", "pid", "tid")
_PID, _TID = attrgetter("pid"), attrgetter("tid")
_ID = re.compile(r"0|-?[1-9]\d{0,17}")
_MOST_ID = 10**18
_EXACT = {int, str}
"""Types that are equal as keys of a dictionary only if they are the same text: not so 1, 1.0 and True."""
_FAR_US = 0.999e17
"""Number from which its rounding matters to whether it is a time."""


class Described(NamedTuple):
    """An event that names a process or thread."""

    row: int
    name: Json
    args: dict[str, Json]


class Asynchronous(NamedTuple):
    """What pairs the begin and the end of an asynchronous event."""

    category: str
    id: str
    name: str


class Columns(Struct, frozen=True, kw_only=True):
    """All events in the file's order. Shapes: [event]; texts are indices into ``texts``."""

    texts: Sequence[str]
    phase: I32
    name: I32
    category: I32
    """In lower case."""
    place: I32
    """Index into the places."""
    start_us: F64
    """Clock of the file; NaN if it has none."""
    dur_us: F64
    """0 if it has none."""


class EventColumns:
    """Collects events; ``columns`` ends it."""

    def __init__(self) -> None:
        """Begin without events."""
        self._heads = _Heads()
        self._flows = _Flows()
        self._parts: list[tuple[I32, F64, F64]] = []
        self.args = ArgColumns()
        self.described: list[Described] = []
        self.flows: list[tuple[I64, I64]] = []
        """Rows of the ends of flow arrows, and what is equal for the ends of one arrow: [end], [end, 3]."""
        self.asynchronous: dict[int, Asynchronous] = {}
        self.count = 0

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """Process and thread of each place, as in the file."""
        return tuple(self._heads.places)

    def take(self, batches: Iterable[list[RawEvent]]) -> None:
        """Add events, all or none.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError: an event, or a value in its arguments, cannot be decoded.
        """
        batch = _Batch(self._heads, self._flows, self.count)
        for events in batches:
            batch.take(events)
        self.args.take(batch.args)
        self.described += batch.described
        self.flows += batch.flows
        self.asynchronous |= batch.asynchronous
        self._parts += batch.parts
        self.count = batch.count

    def columns(self) -> Columns:
        """The events that were added; no more can be."""
        parts, self._parts = self._parts, []
        heads, start, dur = (
            np.concatenate([np.empty(0, kind), *(part[i] for part in parts)])
            for i, kind in enumerate((np.int32, np.float64, np.float64))
        )
        phase, name, category, place = np.array(self._heads.columns, np.int32).reshape(-1, 4).T
        return Columns(
            texts=self._heads.texts.all(),
            phase=phase[heads],
            name=name[heads],
            category=category[heads],
            place=place[heads],
            start_us=start,
            dur_us=dur,
        )


class _Batch:
    """Events that are added together."""

    def __init__(self, heads: _Heads, flows: _Flows, first: int) -> None:
        self._heads = heads
        self._flows = flows
        self.count = first
        self.parts: list[tuple[I32, F64, F64]] = []
        self.args = ArgBatch()
        self.described: list[Described] = []
        self.flows: list[tuple[I64, I64]] = []
        self.asynchronous: dict[int, Asynchronous] = {}

    def take(self, events: list[RawEvent]) -> None:
        """Add some of the events."""
        heads = self._headed(events)
        kinds = self._heads.kinds_of(heads)
        if not kinds.all():
            events = [event for event in events if event.ph]
            heads, kinds = heads[kinds != _NONE], kinds[kinds != _NONE]
        args = [event.args for event in events]
        spans = (kinds == _SPAN) | (kinds == _BEGIN)
        starts, durs = _floats([event.ts for event in events], np.nan), _floats([event.dur for event in events], np.nan)
        for row in np.flatnonzero(np.isnan(durs) & spans).tolist():
            durs[row] = json_values.number(events[row].tdur if events[row].dur is None else events[row].dur)
        self.parts.append((heads, starts, durs))
        rows = np.arange(self.count, self.count + len(events))
        if (kinds == _SPAN).all():
            self.args.add(rows, args)
        else:
            self.args.add(rows[spans], [args[row] for row in np.flatnonzero(spans).tolist()])
            self._take_others(events, kinds)
        self.count += len(events)

    def _take_others(self, events: list[RawEvent], kinds: I8) -> None:
        """Add what is no whole event by itself."""
        flows = np.flatnonzero(kinds == _FLOW)
        if len(flows):
            self.flows.append((self.count + flows, self._flows.numbers([events[row] for row in flows.tolist()])))
        _check([events[row].args for row in np.flatnonzero((kinds != _SPAN) & (kinds != _BEGIN)).tolist()])
        for row in np.flatnonzero((kinds == _NAME) | (kinds >= _END)).tolist():
            event = events[row]
            if event.ph == "M":
                self.described.append(Described(self.count + row, event.name, json_values.decoded(event.args)))
            else:
                texts = map(json_values.text, (event.cat, json_values.key(event.id), event.name))
                self.asynchronous[self.count + row] = Asynchronous(*texts)

    def _headed(self, events: list[RawEvent]) -> I32:
        if {*map(type, map(_PID, events)), *map(type, map(_TID, events))} <= _EXACT:
            try:
                return np.fromiter(map(self._heads.__getitem__, map(_HEAD, events)), np.int32, len(events))
            except TypeError:  # a name that is a list, for example
                pass
        text, key = json_values.text, json_values.key
        keys = ((one.ph, text(one.name), text(one.cat), key(one.pid), key(one.tid)) for one in events)
        return np.fromiter(map(self._heads.__getitem__, keys), np.int32, len(events))


class _Heads(dict["tuple[Json, ...]", int]):
    """The number of each phase, name, category, process and thread."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = Strings()
        self.places: dict[tuple[str, str], int] = {}
        self.columns: list[tuple[int, int, int, int]] = []
        """Phase, name and category as numbers of texts, and place."""
        self._kinds: list[int] = []
        self._table = np.empty(0, np.int8)

    def __missing__(self, key: tuple[Json, ...]) -> int:
        phase, name, category, *where = key
        place = json_values.key(where[0]), json_values.key(where[1])
        add = self.texts.add
        self.columns.append(
            (
                add(str(phase)),
                add(json_values.text(name)),
                add(json_values.text(category).lower()),
                self.places.setdefault(place, len(self.places)),
            )
        )
        self._kinds.append(_KINDS.get(str(phase), _OTHER))
        number = self[key] = len(self.columns) - 1
        return number

    def kinds_of(self, heads: I32) -> I8:
        """What becomes of each event."""
        done, size = len(self._table), len(self._kinds)
        if size > done:
            self._table = np.concatenate([self._table, np.array(self._kinds[done:], np.int8)])
        return self._table[heads]


class _Flows:
    """Numbers flow arrows by category and id, as text; whole numbers, which most ids are, are not looked up."""

    def __init__(self) -> None:
        self._categories = Strings()
        self._ids = Strings()

    def numbers(self, events: list[RawEvent]) -> I64:
        """The category's number, whether the id is a text, and the id or its number: int64[event, 3]."""
        found = np.zeros((len(events), 3), np.int64)
        ids = [event.id for event in events]
        found[:, 0] = [self._categories.add(json_values.text(event.cat)) for event in events]
        integers = [one for one in ids if type(one) is int]
        if len(integers) == len(ids) and max(map(abs, integers), default=0) < _MOST_ID:
            found[:, 2] = np.array(integers, np.int64)
            return found
        for row, one in enumerate(map(json_values.key, ids)):
            whole = bool(_ID.fullmatch(one))
            found[row, 1:] = not whole, int(one) if whole else self._ids.add(one)
        return found


@nesting.bounded()
def _check(args: list[Json]) -> None:
    """Decode what is not used, for what is not JSON in it."""
    raws = [value for one in args if isinstance(one, dict) for value in one.values()]
    if raws:
        msgspec.json.decode(b"[" + b",".join(raws) + b"]")


def _floats(values: list[Json], missing: float) -> F64:
    """The numbers of ``json_values.number``."""
    try:
        found = np.array(values, np.float64)
    except (OverflowError, TypeError, ValueError):
        pass
    else:
        if found.ndim == 1 and not (np.abs(found) >= _FAR_US).any():
            return found
    return np.array([json_values.number(value, missing) for value in values], np.float64)
