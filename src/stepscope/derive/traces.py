"""The op traces of a session, ready to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive import anatomy, intervals
from stepscope.derive.op_view import OpView
from stepscope.errors import SessionError

if TYPE_CHECKING:
    from stepscope.derive.intervals import Intervals
    from stepscope.derive.steps import Steps
    from stepscope.model.session import Session

_PARTS = {
    "saving": ("saving",),
    "callbacks": ("callbacks", "hooks"),
    "evaluation": ("evaluation",),
    "building": ("building",),
    "gc": ("gc",),
    "compile": ("tracing",),
    "framework": ("framework",),
}
"""Part of a traced step to the layers of level 0 that name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTraces:
    """What could be read, and what could not."""

    views: tuple[OpView, ...]
    """By name."""
    problems: tuple[str, ...] = ()

    @property
    def main(self) -> OpView | None:
        """The one that shows the most steps; None where none shows any."""
        return max((v for v in self.views if v.shows_steps), key=lambda v: len(v.periods), default=None)


def build(session: Session, steps: Steps | None) -> OpTraces:
    """The op traces of the process that makes the steps; all of the session's where no step was measured."""
    level_0 = _level_0(steps) if steps is not None else None
    refs = {
        name.rpartition("/")[2]: f"capture:{capture.id}"
        for capture in session.manifest.captures
        for name in capture.files
    }
    views, problems = [], []
    for stored in session.op_traces:
        if steps is not None and stored.worker != steps.worker.info.key:
            continue
        try:
            trace = stored.load()
        except SessionError as error:
            problems.append(str(error))
            continue
        views.append(OpView(trace, stored.name, level_0, ref=refs.get(stored.name, "")))
    return OpTraces(views=tuple(views), problems=tuple(problems))


def _level_0(steps: Steps) -> dict[str, Intervals]:
    layers = anatomy.layers(steps)
    found = {}
    for part, names in _PARTS.items():
        when = layers[names[0]]
        for name in names[1:]:
            when = intervals.union(when, layers[name])
        found[part] = when
    return found
