"""CPU of single threads."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import Job, S

from stepscope.derive.machine import thread_cpu


def test_use_is_a_share_of_the_window() -> None:
    """A thread that runs for three quarters of each second uses 0.75 CPUs, in any window of whole seconds."""
    job = Job()
    job.thread_cpu(8, {1: 75, 2: 10})
    used = thread_cpu.used(job.threads, (2 * S, 6 * S))
    assert {native: use.run for native, use in used.items()} == pytest.approx({1001: 0.75, 1002: 0.1})
    assert used[1001].ready == 0


def test_waits_are_of_the_second_of_each_moment() -> None:
    """Half of the second one, all of the third; nothing is known of a thread with less than two rows."""
    job = Job()
    job.thread_cpu(3, {1: 0})
    table = msgspec.structs.replace(job.threads, wait_ns=np.array([0, 0, S // 2, 3 * S // 2], np.int64))
    at = np.array([0, S // 2, S, 3 * S // 2, 5 * S // 2, 9 * S], np.int64)
    assert thread_cpu.waited(table, at).tolist() == [0, 0, 0, 0.5, 1, 1]
    assert thread_cpu.waited(table.take(np.array([0])), at).tolist() == [0] * 6
