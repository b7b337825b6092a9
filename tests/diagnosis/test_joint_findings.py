"""Findings that several members of a joint session have: whose they are is said where it makes a difference."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Job, S
from tests.detectors.member_jobs import member
from tests.web.recorded import write

from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.program import DataLoaderMade
from stepscope.model.session.session import Session
from stepscope.sessions import merge
from stepscope.sessions.bundle import open_session
from stepscope.wire.kinds import Kind

STEP, STEPS = 100 * MS, 100


def rank(index: int, wait: int) -> Session:
    """A rank of torchrun whose steps wait for its DataLoader."""
    job = Job(pid=100 + index, ended_ns=STEPS * STEP + S)
    job.framework("torch", "2.13.0")
    made = DataLoaderMade(id=job.iterator(batch=4), batch=4, file=SCRIPT, line=30)
    job.event(made)
    job.nexts().every(STEP, STEPS, dur=wait, arg=made.id)
    end = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=40)
    end.every(STEP, STEPS, dur=0, start=90 * MS)
    session = job.session()
    info = msgspec.structs.replace(session.workers[0].info, member=member(index, 2, launcher="torchrun", role="rank"))
    return replace(session, workers=(replace(session.workers[0], info=info),))


@pytest.mark.parametrize(
    ("waits", "begins"),
    [((20, 90), "rank 1: the DataLoader"), ((85, 16), "rank 0: the DataLoader"), ((80, 90), "the DataLoader")],
)
def test_the_member_that_it_costs_most_is_named(tmp_path: Path, waits: tuple[int, int], begins: str) -> None:
    """Unless it costs the others about as much."""
    parts = [write(rank(i, wait * MS), tmp_path / f"r{i}.stepscope").path for i, wait in enumerate(waits)]
    report = report_of(open_session(merge.merge(parts, tmp_path / "job.stepscope")))
    (found,) = (one for one in report.findings if one.code == "INP015")
    assert found.title.startswith(begins)
