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


def view(*ranks: tuple[int, bool], code: int | None = 1, signals: tuple[int | None, ...] = (None, None)) -> SessionView:
    """Ranks by (steps, whether exit handlers ran); the signals that ended them."""
    workers = []
    for index, (steps, clean) in enumerate(ranks):
        job = Job(pid=100 + index)
        job.framework("torch", "2.13.0")
        call = job.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12)
        call.every(50 * MS, steps, dur=0, start=50 * MS)
        made = job.worker()
        about = {"member": member(index, len(ranks), launcher="torchrun", role="rank"), "clean_exit": clean}
        about["signal"] = signals[index]
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


@pytest.mark.parametrize(
    ("signals", "says"),
    [
        (
            (15, 9),
            "was the first to end: it was killed by SIGKILL, after 61 steps; rank 0 was killed by SIGTERM 150 ms",
        ),
        ((9, 11), "it was killed by SIGSEGV, after 61 steps; rank 0 was killed by SIGKILL"),
        ((0, 0), "it left without its exit handlers (os._exit), after 61 steps; rank 0 left 150 ms later"),
        ((None, 6), "it was killed by SIGABRT, after 61 steps; rank 0 was killed 150 ms later"),
        ((15, 63), "it was killed by signal 63, after 61 steps"),
    ],
)
def test_the_signal_is_named_where_the_kernel_says_it(signals: tuple[int | None, ...], says: str) -> None:
    """A kill for lack of memory, a fault of native code and an exit are three things."""
    assert says in first_death.build(view((64, False), (61, False), signals=signals))


def test_when_a_killed_rank_ended_its_records_say() -> None:
    """The collector notices the ends of several at once, seconds later."""
    found = view((64, False), (61, False), signals=(15, 9))
    late = [
        replace(worker, info=msgspec.structs.replace(worker.info, ended_ns=30 * S)) for worker in found.session.workers
    ]
    said = first_death.build(SessionView(replace(found.session, workers=tuple(late))))
    assert said.startswith("rank 1 was the first to end: it was killed by SIGKILL, after 61 steps; rank 0")
