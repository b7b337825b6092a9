"""Nodes of graphs as Parquet columns, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stepscope.model.log.graph import LATER_COLUMNS, TEXT_COLUMNS, NodeColumns
from stepscope.tables.records import I64

NUMBERS = ("graph", "node", "line", "owner")
LISTS = ("producers", "slots")


def columns_of(parts: Sequence[NodeColumns]) -> dict[str, object]:
    """The columns of a segment: numbers, strings, and for each node the lists of its inputs."""
    columns: dict[str, object] = {
        name: np.concatenate([getattr(part, name) for part in parts] or [np.zeros(0, np.int64)]) for name in NUMBERS
    }
    for name in TEXT_COLUMNS:
        texts = [pa.array(part.texts[name][1], pa.string()).take(pa.array(part.texts[name][0])) for part in parts]
        columns[name] = pa.concat_arrays(texts) if texts else pa.array([], pa.string())
    counts = np.concatenate([part.fan_in for part in parts] or [np.zeros(0, np.int64)])
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    for name in LISTS:
        values = np.concatenate([getattr(part, name) for part in parts] or [np.zeros(0, np.int64)])
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()))
    return columns


def decode(columns: Mapping[str, Any]) -> NodeColumns:
    """The inverse of ``columns_of``.

    Raises:
        ValueError: a column is missing, of another type, or inconsistent with the others.
    """
    import pyarrow.compute as pc  # a fifth of the collector's imports, which needs it for graphs alone

    missing = [name for name in (*NUMBERS, *TEXT_COLUMNS, *LISTS) if name not in columns and name not in LATER_COLUMNS]
    if missing:
        raise ValueError(f"no column {missing[0]}")
    count = len(columns["graph"])
    producers, slots = columns["producers"], columns["slots"]
    if not (pa.types.is_list(producers.type) and pa.types.is_list(slots.type)):
        raise ValueError(f"inputs are {producers.type} and {slots.type}; expected lists")
    fan_in = _numbers(pc.list_value_length(producers), count)
    return NodeColumns(
        **{name: _numbers(columns[name], count) for name in NUMBERS},
        texts={
            name: _texts(columns[name]) if name in columns else (np.zeros(count, np.int64), [""])
            for name in TEXT_COLUMNS
        },
        fan_in=fan_in,
        producers=_numbers(producers.flatten(), int(fan_in.sum())),
        slots=_numbers(slots.flatten(), int(fan_in.sum())),
    )


def _numbers(values: Any, length: int) -> I64:
    if not pa.types.is_integer(values.type) or values.null_count:
        raise ValueError(f"a column is {values.type} with {values.null_count} gaps; expected integers")
    if len(values) != length:
        raise ValueError(f"a column has {len(values)} values; expected {length}")
    found: I64 = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _texts(values: Any) -> tuple[I64, list[str]]:
    if not pa.types.is_string(values.type):
        raise ValueError(f"a column is {values.type}; expected texts")
    encoded = values.fill_null("").dictionary_encode()
    codes: I64 = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
