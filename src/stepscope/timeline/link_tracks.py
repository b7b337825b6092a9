"""What goes over the links between tasks, as lanes of the timeline: traced transfers, and what was sent again.

A transfer's span lies on the lane of its link. It is linked to the op of the sender that made the tensor, and to the
event of the receiver. Only traced runs of a Session name both ends; a collective's trace does not say who sent what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.machine import tcp_links
from stepscope.derive.optrace.exchange import step_graph
from stepscope.model.api.timeline import SpanName
from stepscope.tables.units import format_bytes
from stepscope.timeline.span_track import SpanTrack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stepscope.derive.optrace.exchange.sent_tensors import SentTensors
    from stepscope.model.session.session import Session, StoredOpTrace
    from stepscope.tables.records import I64
    from stepscope.timeline.span_track import DistinctNames, LinkedEvents

NETWORK = "network between tasks"
AGAIN, DROPPED = "sent again", "dropped"


def transfers(
    stored: StoredOpTrace, sent: SentTensors, names: DistinctNames, linked: LinkedEvents | None
) -> Iterator[SpanTrack]:
    """The transfers of a trace, by link."""
    first = sent.first_row
    for number, ((source, target), found) in enumerate(sent.by_link.items()):
        texts = [f"{one.name} ({format_bytes(one.size_bytes)})" if one.size_bytes else one.name for one in found]
        yield SpanTrack(
            key=f"{stored.name}.link{number}",
            group=NETWORK,
            title=f"{step_graph.short_task(source)} to {step_graph.short_task(target)}",
            kind="thread",
            start=np.array([one.start_ns for one in found], np.int64),
            dur=np.array([one.dur_ns for one in found], np.int64),
            name=np.array([names.add(SpanName(text=text, category="copy")) for text in texts], np.int32),
            trace=stored.name,
            linked=linked,
            first_event=first,
        )
        first += len(found)


def packets(
    session: Session, names: DistinctNames, title_of: Callable[[str, str], str], key: str, group: str
) -> Iterator[SpanTrack]:
    """Segments that were sent again and packets that were dropped, by link.

    Args:
        session: the session of one end.
        names: names of spans.
        title_of: the link's title, by both ends of a connection; "": it is left out.
        key: head of the tracks' keys.
        group: their group.
    """
    table = session.peers.packets
    words = session.resource_names
    by_title: dict[str, list[I64]] = {}
    for number in np.unique(table.connection).tolist():
        ends = tcp_links.ends_of(words[number]) if 0 <= number < len(words) else None
        title = title_of(*ends) if ends is not None else ""
        if title:
            by_title.setdefault(title, []).append(np.flatnonzero(table.connection == number))
    reasons = {number: _reason(words, number) for number in np.unique(table.reason).tolist()}
    numbers = {number: names.add(SpanName(text=text, category="lost")) for number, text in reasons.items()}
    for title, parts in by_title.items():
        rows = np.sort(np.concatenate(parts))
        rows = rows[np.argsort(table.at_ns[rows], kind="stable")]
        yield SpanTrack(
            key=f"{key}{title.replace(' ', '-')}-packets",
            group=group,
            title=f"{title}: lost",
            kind="thread",
            start=table.at_ns[rows],
            dur=np.zeros(len(rows), np.int64),
            name=np.array([numbers[number] for number in table.reason[rows].tolist()], np.int32),
        )


def _reason(words: Sequence[str], number: int) -> str:
    if number < 0:
        return AGAIN
    word = words[number].removeprefix("drop:") if number < len(words) else ""
    return f"{DROPPED}: {word}"
