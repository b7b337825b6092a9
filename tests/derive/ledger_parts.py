"""Jobs that have a ledger, their ledgers, and the parts of these by name."""

from __future__ import annotations

from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, Job, S

from stepscope.derive.ledger import build
from stepscope.derive.ledger.part import Ledger
from stepscope.derive.steps import step_makers
from stepscope.derive.view import SessionView
from stepscope.model.log.events import ProcessEnded
from stepscope.model.session.session import Session

PERIOD = 50 * MS
"""Between two samples."""


def started(end: int) -> Job:
    """A job of which TensorFlow is imported from 1 s to 3 s, and whose interpreter ends a second before ``end``."""
    job = Job(ended_ns=end)
    job.framework(at=3 * S, dur=2 * S)
    job.event(ProcessEnded(at=end - 1 * S))
    return job


def python(job: Job, begin: int, end: int, *, line: int, function: str = "main", thread: int = MAIN) -> None:
    """Samples of a line of the user's code."""
    job.samples(range(begin + PERIOD, end + 1, PERIOD), Frame(SCRIPT, function, line), dur=PERIOD, thread=thread)


def fit(job: Job, begin: int, *, steps: int, step: int = 100 * MS, call: int = 80 * MS, first: int = 0) -> int:
    """A fit whose steps are calls and Keras' own time; ``first``: additional time of the first call. Its end."""
    run = job.execution()
    run.at(begin, call + first, arg=1)
    run.every(step, steps - 1, dur=call, start=begin + step + first, arg=1)
    end = begin + first + steps * step
    job.loop("fit", line=50).at(begin, end - begin, arg=32 * steps)
    return end


def ledgers(session: Session) -> tuple[Ledger, ...]:
    """The ledgers of a session without input wait in compiled calls."""
    view = SessionView(session)
    makers = step_makers.build(view.steps) if view.steps is not None else ()
    return build.ledgers(session, view.workers, makers, lambda _: 0.0)


def times(ledger: Ledger) -> dict[str, int]:
    """Time of each part by name."""
    return {f"{p.phase}/{p.component}" if p.component else str(p.phase): p.ns for p in ledger.parts}


def whole(ledger: Ledger) -> int:
    """All parts together."""
    return sum(part.ns for part in ledger.parts)
