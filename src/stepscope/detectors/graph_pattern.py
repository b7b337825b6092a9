"""What the detectors on graphs have in common: where nodes were made, and how to ask for the time that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.detectors.base import CaptureRequest, Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.view import SessionView
    from stepscope.model.report.finding import Place

MAX_PLACES = 4


def question(what: str) -> CaptureRequest:
    """A graph shows something whose time nobody knows."""
    return CaptureRequest(
        kind="ops", missing=Signal.OP_TRACE, hint=f"{what} shows in an op trace: stepscope trace JOB while it runs"
    )


def places(session: SessionView, index: GraphIndex, rows: Iterable[int]) -> tuple[Place, ...]:
    """The lines of user code that made some nodes, else those that built their layers; the first ones first."""
    found: list[Place] = []
    for row in rows:
        line, layer = index.maker_of(row)
        if line is not None:
            found.append(session.place(line[0], line[2], function=line[1]))
        elif layer is not None and layer.line:
            found.append(session.place(layer.file, layer.line, function=layer.function))
    return tuple(dict.fromkeys(found))[:MAX_PLACES]
