"""CPU of single threads."""

from __future__ import annotations

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
