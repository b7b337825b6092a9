"""The imports of the job's main process, as parts of its life.

Serves slow_import and the ledger's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import phase_lines
from stepscope.derive.ledger import import_times
from stepscope.derive.numeric import intervals

if TYPE_CHECKING:
    from stepscope.derive.ledger.import_times import ImportTime, Waited
    from stepscope.derive.ledger.part import Ledger
    from stepscope.derive.view import SessionView
    from stepscope.model.report.ledger import Phase


class StartImports(Struct, frozen=True, kw_only=True):
    """The imports of one process."""

    times: tuple[ImportTime, ...]
    """The longest first."""
    wall_ns: int
    """Life of the job."""
    framework_ns: int
    """Part within the imports of frameworks, which the job needs."""
    phases: tuple[tuple[Phase, float], ...]
    """Phases of the ledger with the share that these imports are of each."""

    waited: Waited | None
    """What the time was until stacks were sampled; None: not known."""

    @property
    def ns(self) -> int:
        """All of them."""
        return sum(time.ns for time in self.times)

    @property
    def other_ns(self) -> int:
        """What the program imports besides frameworks."""
        return self.ns - self.framework_ns


def build(view: SessionView) -> StartImports | None:
    """None where nothing was measured from the start, or nothing is known to be imported."""
    whole = view.get(phase_lines.job)
    times = import_times.build(whole.worker, view.source_of) if whole is not None else ()
    if whole is None or not times:
        return None
    frameworks = import_times.frameworks(whole.worker)
    return StartImports(
        times=times,
        wall_ns=whole.wall_ns,
        framework_ns=sum(intervals.total(intervals.clip(time.spans, frameworks)) for time in times),
        phases=_phases(whole, times),
        waited=import_times.waited(whole.worker),
    )


def _phases(whole: Ledger, times: tuple[ImportTime, ...]) -> tuple[tuple[Phase, float], ...]:
    spans = intervals.empty()
    for time in times:
        spans = intervals.union(spans, time.spans)
    parts = ((part, intervals.total(intervals.clip(part.spans, spans))) for part in whole.parts if part.ns > 0)
    return tuple((part.phase, ns / part.ns) for part, ns in parts if ns)
