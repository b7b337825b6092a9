"""Log line of the first look, see ``agent.capture.first_look``."""

from __future__ import annotations

from stepscope.model.event import Event


class LookTaken(Event, tag="look", frozen=True, kw_only=True):
    """The first look that this process begins by itself, or why it does not; its result is a ``capture`` of the same
    id. Since 0.1.
    """

    id: str
    begun: bool = False
    problem: str = ""
    """Reason why it was not begun: the steps are too dear."""
    role: str = ""
    text: str = ""
    """Role and text of the name of the calls that make its steps."""
    work: str = ""
    """Work: training | evaluation | prediction; "" if unknown."""
    steps: int = 0
    """Number of steps that it is to trace."""
    anchors: tuple[tuple[int, int], ...] = ()
    """Pairs (kind, name) of the records whose ends are the ends of its steps."""
