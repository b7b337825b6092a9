"""Answers questions about the parts of a fleet."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from stepscope.fleet import questions
from stepscope.fleet.engine import Engine, UnreadableError
from stepscope.fleet.part_names import parsed
from stepscope.fleet.questions import Asked, Read
from stepscope.model.api.fleet import FleetAnswer, GroupBy, PartsRead
from stepscope.tables.errors import FormatError, UsageError
from stepscope.use_cases.fleet import parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.sessions.fleet.sending import Destination
    from stepscope.tables.stacks import StackProfile
    from stepscope.use_cases.fleet.parts import FoundParts

T = TypeVar("T")


class Scope(Struct, frozen=True, kw_only=True):
    """Where is asked, about which days, and what."""

    place: Destination
    asked: Asked = field(default_factory=Asked)
    since: str = ""
    until: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """All that leaves jobs out."""
        days = {"since": self.since, "until": self.until}
        return {name: value for name, value in {**self.asked.filters, **days}.items() if value}


def jobs(scope: Scope) -> FleetAnswer:
    """The jobs that cost most.

    Raises:
        UsageError: there are no parts, or DuckDB or fsspec are not installed.
        TargetError: the place cannot be read.
        FormatError: parts cannot be read although they are what was sent.
    """
    rows, read = ask(scope, questions.JOBS, lambda engine: questions.jobs(engine, scope.asked))
    return FleetAnswer(
        question="jobs",
        sort=scope.asked.sort,
        filters=scope.filters,
        parts=read,
        currency=scope.asked.prices.currency,
        jobs=rows,
    )


def top(scope: Scope, by: GroupBy) -> FleetAnswer:
    """The lines, findings or groups of jobs that cost most; raises as ``jobs``."""
    rows, read = ask(scope, questions.read_of(by), lambda engine: questions.top(engine, scope.asked, by))
    return FleetAnswer(
        question="top",
        by=by,
        sort=scope.asked.sort,
        filters=scope.filters,
        parts=read,
        currency=scope.asked.prices.currency,
        costs=rows,
    )


def goodput(scope: Scope) -> FleetAnswer:
    """How much of the time that jobs held went into steps; raises as ``jobs``."""
    from stepscope.fleet.goodput import READ
    from stepscope.fleet.goodput import goodput as of_jobs

    rows, read = ask(scope, READ, lambda engine: of_jobs(engine, scope.asked))
    return FleetAnswer(question="goodput", sort="wall", filters=scope.filters, parts=read, goodput=rows)


def flame(scope: Scope, event: str, by: GroupBy | None) -> tuple[StackProfile, PartsRead]:
    """One profile of all jobs: the sums of their stacks. Raises as ``jobs``.

    Raises:
        UsageError: no job has stacks of this event.
    """
    from stepscope.fleet.flame import profile_of

    found, read = ask(scope, questions.STACKS, lambda engine: questions.stacks(engine, scope.asked, event, by))
    if not found:
        raise UsageError(f"{scope.place.url}: no job there has stacks of {event}; expected one of cpu, python, off-cpu")
    return profile_of(found, event), read


def remove(scope: Scope, *, really: bool) -> int:
    """Delete the parts of the jobs that the filters keep, all of each session; return how many. Raises as ``jobs``."""
    rows, _ = ask(scope, questions.JOBS, lambda engine: questions.sessions(engine, scope.asked))
    place = scope.place.open()
    names = [name for name in map(parsed, place.names()) if name is not None and name.session in rows]
    return parts.remove(place, names) if really else len(names)


def ask(scope: Scope, wanted: Read, ask: Callable[[Engine], T]) -> tuple[T, PartsRead]:
    """Ask of all parts that can be read: those that cannot are looked for only if there are any. Raises as ``jobs``."""
    found = parts.find(scope.place.open(), scope.place.url, scope.since, scope.until)
    try:
        return _asked_once(found, wanted, ask)
    except UnreadableError as error:
        if not found.leave_out_damaged():
            raise
        if not found.names:
            raise FormatError(f"{scope.place.url}: all parts there are damaged: {error}") from error
        return _asked_once(found, wanted, ask)


def _asked_once(found: FoundParts, wanted: Read, ask: Callable[[Engine], T]) -> tuple[T, PartsRead]:
    with closing(Engine()) as engine:
        engine.load(found.paths(), wanted.kinds, wanted.columns)
        rows = ask(engine)
    read = PartsRead(
        sessions=len(found.names), others=found.others, newer=found.newer, damaged=tuple(sorted(found.damaged))
    )
    return rows, read
