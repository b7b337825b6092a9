"""What a session lacks of what was recorded: a detector that looked over it does not say that there is nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.detectors.signals import UNREAD
from stepscope.tables.units import format_ns, format_number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Checked
    from stepscope.tables.records import Losses


def when(lost: Losses) -> str:
    """``between 3.20 s and 3.41 s`` after the start of the session; of several runs of records, the whole time."""
    if not len(lost):
        return ""
    more = f", in {len(lost)} places" if len(lost) > 1 else ""
    return f"between {format_ns(int(lost.start_ns.min()))} and {format_ns(int(lost.end_ns.max()))}{more}"


def said(view: SessionView) -> str:
    """What is missing, in words: the process that lost most; "" if nothing is."""
    most = max(view.session.workers, key=lambda worker: int(worker.lost.records.sum()), default=None)
    if most is not None and len(most.lost):
        count = format_number_of(f"{int(most.lost.records.sum()):,}", "records")
        return f"{count} of process {most.info.pid} were lost {when(most.lost)}"
    return UNREAD if view.session.lost_files else ""


def withheld(checked: Sequence[Checked], view: SessionView) -> tuple[Checked, ...]:
    """The outcomes, none of them clear if something is missing."""
    why = said(view)
    if not why:
        return tuple(checked)
    return tuple(replace(one, outcome="undecided", hint=why) if one.outcome == "clear" else one for one in checked)
