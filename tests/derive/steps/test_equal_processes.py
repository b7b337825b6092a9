"""Processes that make the same steps: each is a maker, unless they are tasks of a cluster."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.member_jobs import member

from stepscope.derive.view import SessionView
from stepscope.model.session.session import Worker
from stepscope.report.sections import process_roles, step_summary
from stepscope.wire.kinds import Kind


def worker(pid: int, steps: int, *, line: int = 12, kind: Kind = Kind.APPLY) -> Worker:
    """A process with steps of one kind, at one line."""
    job = Job(pid=pid)
    job.framework("torch", "2.13.0")
    if kind == Kind.STEP:
        call = job.step()
    else:
        call = job.call(kind, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=line)
    call.every(20 * MS, steps, dur=0, start=pid * MS)
    return job.worker()


def view(*workers: Worker) -> SessionView:
    """The session of these processes."""
    return SessionView(replace(Job().session(), workers=workers))


def found(session: SessionView) -> list[tuple[int, int, bool]]:
    """(pid, steps, main) of all makers."""
    made = step_summary.makers(session, session.get(step_summary.found))
    return sorted((one.pid, one.count, one.main) for one in made)


@pytest.mark.parametrize("kind", [Kind.APPLY, Kind.STEP])
@pytest.mark.parametrize("counts", [(150, 150), (150, 100), (60, 60, 60)])
def test_each_is_a_maker(kind: Kind, counts: tuple[int, ...]) -> None:
    """Whichever of them was chosen as the one with the steps."""
    session = view(*(worker(100 + number, count, kind=kind) for number, count in enumerate(counts)))
    assert found(session) == [(100 + number, count, True) for number, count in enumerate(counts)]
    assert {one.role for one in process_roles.build(session)} == {"steps"}


def test_other_steps_are_not_the_same() -> None:
    """A process that trains something else, and one that does nothing."""
    session = view(worker(100, 150), worker(101, 100, line=40), worker(102, 1))
    assert found(session) == [(100, 150, True)]
    assert [one.role for one in process_roles.build(session)] == ["steps", "idle", "idle"]


def test_tasks_of_a_cluster_share_a_step() -> None:
    """Their steps do not add up: the report has a row for each."""
    ranks = [
        replace(one, info=msgspec.structs.replace(one.info, member=member(index, 2, launcher="torchrun", role="rank")))
        for index, one in enumerate((worker(100, 150), worker(101, 150)))
    ]
    assert len(found(view(*ranks))) == 1
