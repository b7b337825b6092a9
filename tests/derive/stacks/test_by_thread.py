"""Stacks below their threads, and waits as innermost frames."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples

from stepscope.derive.stacks.by_thread import by_thread, pools_of, waiting_ratio
from stepscope.tables.stacks import UNKNOWN, Frame, StackFlag, StackProfile, Thread

MAIN, STEP, AUGMENT = Frame("main"), Frame("step"), Frame("augment")
WAITS = int(StackFlag.WAITING)
THREADS = (Thread(7, 7, "MainThread"), Thread(7, 8, "pool_0"), Thread(7, 9, "pool-1_1"), Thread(7, 10, "pool_2"))


def stacks(profile: StackProfile) -> Counter[str]:
    """How many samples each stack has."""
    return Counter(";".join(f.function for f in profile.frames_of(at)) for at in profile.samples.stack.tolist())


def test_threads_of_a_pool_are_one_and_waits_are_told() -> None:
    """Every sample keeps its weight; the same function of two threads is two boxes."""
    profile = of_samples(
        [(1, [MAIN, STEP]), (2, [MAIN, STEP]), (3, [AUGMENT]), (4, [AUGMENT]), (5, [STEP])],
        threads=[0, 0, 1, 3, 3],
        flags=[0, WAITS, 0, 0, 0],
    )
    shown = by_thread(replace(profile, threads=THREADS))
    assert stacks(shown) == {
        "[MainThread];main;step": 1,
        "[MainThread];main;step;[waits]": 1,
        "[pool: 2 threads];augment": 2,
        "[pool: 2 threads];step": 1,
    }
    assert waiting_ratio(profile) == pytest.approx(0.2)


def test_one_thread_has_no_frame_of_its_own() -> None:
    """Nor has anything where threads are not to stand apart; without waits the profile stays as it is."""
    one = of_samples([(1, [MAIN, STEP]), (2, [MAIN])], flags=[WAITS, 0])
    assert stacks(by_thread(one)) == {"main;step;[waits]": 1, "main": 1}
    still = of_samples([(1, [MAIN]), (2, [MAIN])])
    assert by_thread(still) is still
    two = replace(of_samples([(1, [MAIN]), (2, [MAIN])], threads=[0, 1]), threads=THREADS)
    assert by_thread(two, apart=False) is two


def test_threads_without_a_name() -> None:
    """They are counted together; a sample whose thread is not known is one of them."""
    threads = (Thread(7, 7, "MainThread"), Thread(7, 8), Thread(7, 9))
    assert pools_of(threads, {0, 1, 2}) == {
        0: "[MainThread]",
        1: "[2 threads without names]",
        2: "[2 threads without names]",
    }
    assert pools_of(threads, {0, UNKNOWN})[UNKNOWN] == "[thread without a name]"
    assert pools_of((Thread(7, 7, "12"),), {0}) == {0: "[12]"}
