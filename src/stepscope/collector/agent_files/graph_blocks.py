"""Blocks of nodes, lines of type ``nodes`` of the agent's log (``stepscope.agent.graphs.node_rows``), as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stepscope.model.log.graph import CALLERS, FIELDS, LATER_COLUMNS, TEXT_COLUMNS, NodeColumns
from stepscope.tables import nesting

if TYPE_CHECKING:
    from stepscope.tables.records import I64

TYPE = "nodes"
"""Type of the log lines that hold a block."""
ALL_READ = "graphs"
"""Type of the log line that follows once no graph is waiting to be read."""


class _Block(msgspec.Struct, frozen=True):
    graph: int
    strings: list[str]
    node: list[int]
    line: list[int]
    owner: list[int]
    name: list[int]
    type: list[int]
    device: list[int]
    outputs: list[int]
    file: list[int]
    function: list[int]
    fan_in: list[int]
    producers: list[int]
    slots: list[int]
    attributes: list[int] = []
    callers: list[int] = []


_DECODER = msgspec.json.Decoder(_Block)


def decode(text: bytes) -> NodeColumns:
    """Decode one block.

    Raises:
        ValueError: it is damaged (msgspec's errors derive from it), or its columns are inconsistent.
    """
    with nesting.bounded():
        block = _DECODER.decode(text)
    count = len(block.node)
    texts = {}
    for name in TEXT_COLUMNS:
        given: list[int] = getattr(block, name)
        codes = _column(given if given or name not in LATER_COLUMNS else [0] * count, count)
        if count and (codes.min() < 0 or codes.max() >= len(block.strings)):
            raise ValueError(f"column {name} counts to {codes.max()}; the block has {len(block.strings)} texts")
        texts[name] = (codes, block.strings if name != "callers" else _callers(block.strings, set(codes.tolist())))
    fan_in = _column(block.fan_in, count)
    if count and fan_in.min() < 0:
        raise ValueError("column fan_in has a negative number")
    inputs = int(fan_in.sum())
    return NodeColumns(
        graph=np.full(count, block.graph, np.int64),
        node=_column(block.node, count),
        line=_column(block.line, count),
        owner=_column(block.owner, count),
        texts=texts,
        fan_in=fan_in,
        producers=_column(block.producers, inputs),
        slots=_column(block.slots, inputs),
    )


def _callers(strings: list[str], wanted: set[int]) -> list[str]:
    """The texts of the column ``callers`` with files and functions in words, see ``GraphTable.callers``.

    Raises:
        ValueError: a text is not ``FILE:FUNCTION:LINE;...``, or counts beyond the block's texts.
    """
    return [_in_words(strings, text) if i in wanted else "" for i, text in enumerate(strings)]


def _in_words(strings: list[str], text: str) -> str:
    lines = [part.split(":") for part in text.split(";")] if text else []
    try:
        return CALLERS.join(FIELDS.join((strings[int(f)], strings[int(g)], str(int(n)))) for f, g, n in lines)
    except (ValueError, IndexError):
        raise ValueError(f"column callers has {text[:80]!r}; expected FILE:FUNCTION:LINE;...") from None


def _column(values: list[int], length: int) -> I64:
    if len(values) != length:
        raise ValueError(f"a column has {len(values)} values; expected {length}")
    return np.array(values, np.int64)
