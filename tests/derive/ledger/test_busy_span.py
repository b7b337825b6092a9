"""When steps were made, without a long pause that came once: over that time rates of what is sampled mean something."""

from __future__ import annotations

from tests.derive.sessions import MS, Job, S

from stepscope.derive.ledger import pauses
from stepscope.derive.steps.steps import Steps

STEP = 10 * MS


def stretches(*pieces: tuple[int, int]) -> Steps:
    """Steps of 10 ms: so many from each of these times on."""
    job = Job()
    for begin, count in pieces:
        job.function().every(STEP, count, dur=8 * MS, start=begin)
    return job.steps()


def test_the_longest_stretch_counts() -> None:
    """A pause of 9 s between 2 s and 3 s of steps would make a CPU that is always busy one that mostly idles."""
    low, high = pauses.busy_span(stretches((0, 200), (11 * S, 300)))
    assert low >= 10 * S
    assert 14 * S - 2 * STEP <= high <= 14 * S


def test_a_short_pause_is_no_matter() -> None:
    """Half a second of twelve."""
    steps = stretches((0, 600), (6500 * MS, 600))
    assert pauses.busy_span(steps) == steps.span


def test_pauses_that_recur_are_a_part_of_the_run() -> None:
    """Each epoch ends with one: what the machine does meanwhile counts."""
    steps = stretches(*((number * 4 * S, 200) for number in range(5)))
    assert pauses.busy_span(steps) == steps.span
