"""Steps of which only the end is seen, as an optimizer's of PyTorch: nothing shows where a member waits."""

from __future__ import annotations

from tests.derive.sessions import MS, Job
from tests.detectors.framework_jobs import pytorch
from tests.detectors.member_jobs import MemberJob, member

from stepscope.derive.cluster import member_calls
from stepscope.detectors.signals import Signal, hint
from stepscope.wire.kinds import Kind


def test_members_in_one_session_are_not_sent_to_merge() -> None:
    """Where the session holds several members, only why their waits are not compared is missing."""
    job, other = (MemberJob(pid=100 + index, info=member(index, 2)) for index in range(2))
    for one in (job, other):
        one.framework("torch", "2.13.0")
        one.call(Kind.APPLY, "optimizer step", role="optimizer").every(10 * MS, 100, dur=0, start=9 * MS)
    assert "stepscope merge" in hint(Signal.MEMBERS, job.view())
    job.others.append(other)
    assert "not compared" in hint(Signal.MEMBERS, job.view())


def _names(job: Job) -> list[str]:
    steps = job.view().steps
    assert steps is not None
    return [calls.name for calls in member_calls.of(steps, 0)]


def test_a_moment_is_no_call_to_wait_in() -> None:
    """The ends of optimizer steps are no calls by which members are compared, and said to run asynchronously."""
    assert _names(pytorch()) == []


def test_a_span_around_the_call_shows_it() -> None:
    """What the user marks is compared, as for JAX; a compiled call is one by itself."""
    job = pytorch()
    job.call(Kind.SPAN, "backward").every(10 * MS, 100, dur=4 * MS, start=4 * MS)
    assert _names(job) == ["span backward"]
    trained = Job()
    trained.function().every(10 * MS, 100, dur=8 * MS)
    assert len(_names(trained)) == 1
