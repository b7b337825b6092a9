"""A session with an op trace whose graph is known, and a name of 225 characters in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from tests.derive.optrace.opgraph import op_graphs
from tests.web import recorded, timeline_sessions

from stepscope.store import optrace
from stepscope.store.writer import SessionWriter

if TYPE_CHECKING:
    from pathlib import Path


def stored(folder: Path) -> Path:
    """Steps with a callback; an op trace of some, and the graph of their function."""
    made, tables = timeline_sessions.session(), op_graphs.tables(long=True)
    worker = made.workers[0]
    path = folder / "graph.stepscope"
    made = replace(made, workers=(replace(worker, events=[*worker.events, *tables.events()]),))
    recorded.write(made, path)
    SessionWriter(path).write_graphs(worker.info.key, [tables.columns()])
    trace = op_graphs.maker(long=True).trace().shifted(timeline_sessions.STEP)
    optrace.write(path, "ops-001", trace, worker=worker.info.key)
    return path
