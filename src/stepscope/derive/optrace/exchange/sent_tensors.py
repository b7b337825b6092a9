"""What tasks sent each other in the traced runs of a session: each tensor, over which link, who made it, where it came.

Only runs of a Session name both ends (``step_graph``); a collective's trace does not say who sent what to whom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.device.event_links import LinkKind, Links
from stepscope.derive.optrace.exchange import step_graph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.tables.optrace import OpTrace

MOST_RUNS = 100
"""Runs of a trace that are read."""


class SentTensor(Struct, frozen=True, kw_only=True):
    """A transfer. Times of the trace."""

    start_ns: int
    dur_ns: int
    name: str
    """Op that made it."""
    size_bytes: int
    maker: int
    """Row of that op's event; -1: not known."""
    arrived: int
    """Row of the receiver's event."""


class SentTensors(Struct, frozen=True, kw_only=True):
    """All transfers of a trace."""

    by_link: Mapping[tuple[str, str], Sequence[SentTensor]]
    """By the tasks that sent and received, each by start, longer ones first."""
    first_row: int
    """Number of the first transfer as an event: they follow the trace's events, link by link."""
    links: Links
    """From what made each to the transfer, and from that to the receiver's event."""


def build(trace: OpTrace) -> SentTensors:
    """The transfers."""
    found: dict[tuple[str, str], list[SentTensor]] = {}
    for graph in step_graph.build(trace, MOST_RUNS):
        for v in graph.transfers:
            node = graph.nodes[v]
            one = SentTensor(
                start_ns=node.start_ns,
                dur_ns=max(0, node.dur_ns),
                name=node.name,
                size_bytes=node.size_bytes,
                maker=next((graph.nodes[u].row for u in graph.inputs[v]), -1),
                arrived=node.row,
            )
            found.setdefault(node.link or ("", ""), []).append(one)
    ordered = {link: sorted(found[link], key=lambda one: (one.start_ns, -one.dur_ns)) for link in sorted(found)}
    return SentTensors(by_link=ordered, first_row=len(trace.events), links=_links(ordered, len(trace.events)))


def _links(ordered: Mapping[tuple[str, str], Sequence[SentTensor]], first: int) -> Links:
    every = [one for sent in ordered.values() for one in sent]
    rows = np.arange(first, first + len(every), dtype=np.int64)
    makers = np.array([one.maker for one in every], np.int64)
    arrived = np.array([one.arrived for one in every], np.int64)
    known = makers >= 0
    source, target = np.concatenate([makers[known], rows]), np.concatenate([rows[known], arrived])
    return Links(source, target, np.full(len(source), int(LinkKind.TRANSFER), np.int64))
