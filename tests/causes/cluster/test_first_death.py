"""Which rank of a failed job ended first, in the session that holds all of them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.derive.sessions import MS, SCRIPT, Job, S
from tests.detectors.member_jobs import member

from stepscope.app.report import analyze
from stepscope.causes.cluster import first_death
from stepscope.derive.view import SessionView
from stepscope.wire.kinds import Kind


def view(*ranks: tuple[int, bool], code: int | None = 1) -> SessionView:
    """Ranks by (steps, whether exit handlers ran)."""
    workers = []
    for index, (steps, clean) in enumerate(ranks):
        job = Job(pid=100 + index)
        job.framework("torch", "2.13.0")
        call = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)
        call.every(50 * MS, steps, dur=0, start=50 * MS)
        made = job.worker()
        about = {"member": member(index, len(ranks), launcher="torchrun", role="rank"), "clean_exit": clean}
        ended = 50 * MS * steps + 10 * MS if clean else 0
        workers.append(replace(made, info=msgspec.structs.replace(made.info, ended_ns=ended, **about)))
    session = Job(exit_code=code, ended_ns=60 * S).session()
    return SessionView(replace(session, workers=tuple(workers)))


@pytest.mark.parametrize(
    ("ranks", "begins", "says"),
    [
        (((64, False), (61, False)), "rank 1 was the first to end: it was killed", "rank 0 was killed 150 ms later"),
        (((20, False), (64, False)), "rank 0 was the first to end: it was killed", "after 20 steps; rank 1"),
        (((64, False), (61, True)), "rank 1 was the first to end: it ended by itself", "rank 0 was killed"),
        (((64, True), (61, False)), "rank 1 was the first to end: it was killed", "after 61 steps"),
    ],
)
def test_the_first_is_named(ranks: tuple[tuple[int, bool], ...], begins: str, says: str) -> None:
    """And how the others went: their launcher ends them."""
    said = first_death.build(view(*ranks))
    assert said.startswith(begins)
    assert says in said
    assert said in [one.text for one in analyze.report_of_view(view(*ranks)).diagnostics if one.code == "DX194"]


@pytest.mark.parametrize("code", [0, None, -9])
def test_nothing_is_said_of_a_job_that_did_not_fail_by_a_rank(code: int | None) -> None:
    """A program may leave by os._exit; a launcher that was killed itself took its ranks along."""
    assert first_death.build(view((64, False), (61, False), code=code)) == ""


def test_nothing_is_said_where_all_ended_by_themselves() -> None:
    """Each rank has its own error, or none."""
    assert first_death.build(view((64, True), (61, True))) == ""
    assert first_death.build(view((64, False))) == ""
