"""Which rank of a failed job ended first, in the session that holds all of them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Job, S
from tests.detectors.member_jobs import member

from stepscope.causes.cluster import first_death
from stepscope.derive.view import SessionView
from stepscope.diagnosis import analyze
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


@pytest.mark.parametrize(
    ("last", "clean", "signals", "says"),
    [
        ((60, 61), (False, True), (15, 0), "rank 1 was the first to end: it ended by itself (an error, or an exit)"),
        ((40, 61), (False, False), (15, 9), "rank 1 was the first to end: it was killed by SIGKILL, after 61 steps"),
        ((60, 61), (False, False), (15, 15), "rank 0 was the first to end: it was killed by SIGTERM, after 60 steps"),
        ((20, 61), (False, True), (15, 0), "rank 0 was the first to end: it was killed by SIGTERM, after 20 steps"),
        ((60, 61), (False, False), (9, 11), "rank 0 was the first to end: it was killed by SIGKILL, after 60 steps"),
        ((60, 61), (False, False), (15, None), "rank 0 was the first to end: it was killed by SIGTERM"),
    ],
)
def test_what_launchers_end_by_sigterm_was_not_first(
    last: tuple[int, int], clean: tuple[bool, bool], signals: tuple[int | None, ...], says: str
) -> None:
    """A rank that waits for another has its last record up to a second before its end."""
    said = first_death.build(view(*zip(last, clean, strict=True), signals=signals))
    assert said.startswith(says)
    assert ("; rank 0 was killed by SIGTERM at about the same time" in said) == said.startswith("rank 1")


@pytest.mark.parametrize("kind", [Kind.SAMPLE, Kind.TICK])
def test_what_a_sample_stands_for_is_no_time_after_it(kind: Kind) -> None:
    """A stack sample stands for the time since the one before it, a third of a second on a busy machine."""
    found = view((64, True), (61, False), signals=(0, 9))
    first, second = found.session.workers
    weights = np.where(np.arange(len(second.records)) == len(second.records) - 1, 400 * MS, second.records.dur_ns)
    kinds = np.where(weights == 400 * MS, int(kind), second.records.kind)
    sampled = replace(second, records=replace(second.records, dur_ns=weights, kind=kinds))
    said = first_death.build(SessionView(replace(found.session, workers=(first, sampled))))
    assert said.startswith("rank 1 was the first to end: it was killed by SIGKILL")


@pytest.mark.parametrize("noticed", [299, 3])
def test_a_rank_that_ran_on_without_the_agent_ended_when_it_was_noticed(noticed: int) -> None:
    """Its records end minutes before."""
    found = view((20, False), (61, False), signals=(15, 9))
    ends = zip(found.session.workers, (300, noticed), strict=True)
    late = tuple(replace(worker, info=msgspec.structs.replace(worker.info, ended_ns=at * S)) for worker, at in ends)
    said = first_death.build(SessionView(replace(found.session, workers=late)))
    assert said.startswith("rank 1 was the first to end: it was killed by SIGKILL")


@pytest.mark.parametrize(("number", "clean"), [(6, False), (0, True)])
def test_of_a_rank_that_was_started_again_the_newest_end_is_meant(number: int, clean: bool) -> None:
    """Whichever of its processes made most steps."""
    found = view((64, False), (61, False), signals=(9, 15))
    again = view((5, clean), (80, False), signals=(number, 15)).session.workers
    second = [replace(one, info=msgspec.structs.replace(one.info, pid=200 + at)) for at, one in enumerate(again)]
    moved = [
        replace(
            one,
            info=msgspec.structs.replace(one.info, started_ns=20 * S, ended_ns=(one.info.ended_ns and 20 * S + 1)),
            records=replace(one.records, start_ns=one.records.start_ns + 20 * S),
        )
        for one in second
    ]
    said = first_death.build(SessionView(replace(found.session, workers=(*found.session.workers, *moved))))
    how = "ended by itself" if clean else "was killed by SIGABRT"
    assert said.startswith(f"rank 0 was the first to end: it {how}")
    assert "rank 1 was killed by SIGTERM" in said
