"""Lines of the agent's log about what a program sets and what it gives to its steps."""

from __future__ import annotations

from stepscope.model.event import Event


class Setting(Event, tag="setting", frozen=True, kw_only=True):
    """A setting of the framework that changes how everything runs was set."""

    name: str
    """run_functions_eagerly | check_numerics | dump_debug_info | data_debug_mode | op_determinism."""
    value: bool
    file: str = ""
    line: int = 0
    function: str = ""


class Padding(Event, tag="padding", frozen=True, kw_only=True):
    """A fit or a dataset was given integer sequences that are padded to one length."""

    rows: int
    columns: int
    """Positions of each."""
    mean: float
    """Positions that a row uses, of those looked at."""
    p95: float
    """One row in twenty uses more."""
    first: bool = False
    """The padding stands before the sequences."""
    file: str = ""
    line: int = 0
    function: str = ""
    """User code that padded them, else that gave them."""
