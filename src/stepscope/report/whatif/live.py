"""A table of what an experiment tries and knows, on a terminal while it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.console import Group
from rich.table import Table
from rich.text import Text

from stepscope.report.words import printable
from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from stepscope.model.report.whatif import Measure


class Known(Struct, frozen=True, kw_only=True):
    """A trial so far."""

    trial: str
    """"": the unchanged job."""
    ns: float
    """Median of its runs."""
    ratio: float
    """Over the median of the unchanged job; 0: unknown."""
    runs: int


class Progress(Struct, frozen=True, kw_only=True):
    """How far an experiment is."""

    running: str
    """What runs now, in words; "" between runs."""
    spent_s: float
    """Time of all runs that have ended."""
    most_s: float
    """Time for all runs; infinite if only rounds count."""
    measure: Measure
    kept: tuple[str, ...] = ()
    """Changes that are in effect in all runs of the table."""
    known: tuple[Known, ...] = ()


@dataclass(slots=True)
class LiveTable:
    """What is drawn again and again: give it the progress when a run begins or has ended."""

    clock: Callable[[], float] = time.monotonic
    progress: Progress | None = None
    _began: float = field(init=False, default=0.0)
    """When the run that runs now began."""

    def update(self, progress: Progress) -> None:
        """Take what is known now."""
        self.progress, self._began = progress, self.clock()

    def __rich__(self) -> RenderableType:
        """The table, and the line of what runs now."""
        progress = self.progress
        if progress is None:
            return Text("starting")
        line = Text(self._line(progress), style="dim")
        return Group(_table(progress), line) if progress.known else line

    def _line(self, progress: Progress) -> str:
        now = self.clock() - self._began
        limit = f" of {progress.most_s:.0f} s" if progress.most_s < float("inf") else ""
        running = f"{printable(progress.running)} ({now:.0f} s)  " if progress.running else ""
        return f"{running}{progress.spent_s + now:.0f} s{limit}; Ctrl-C keeps what is known"


def _table(progress: Progress) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("trial")
    table.add_column(f"a {progress.measure}", justify="right")
    table.add_column("change", justify="right")
    table.add_column("runs", justify="right")
    for one in sorted(progress.known, key=lambda one: (bool(one.trial), one.ratio)):
        change = f"{100 * (one.ratio - 1):+.0f} %" if one.trial and one.ratio else ""
        name = printable(one.trial) or ("what is kept" if progress.kept else "unchanged")
        table.add_row(Text(name), format_ns(one.ns), change, str(one.runs))
    return table
