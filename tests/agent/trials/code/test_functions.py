"""The search for live functions while other threads of the program run."""

from __future__ import annotations

import sys
import threading
import time

from stepscope.agent.trials.code import functions

SECONDS = 1.0


def test_a_search_leaves_what_other_threads_are_making_alone() -> None:
    """``tuple`` of a generator fails if somebody holds the tuple while it grows; a local function is found."""

    def local() -> None:
        """Among the live functions, in no module."""

    stop = threading.Event()
    found = []

    def search() -> None:
        while not stop.is_set():
            found.append(local in functions._alive())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=search)
    thread.start()
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            assert tuple(number for number in range(50))[-1] == 49
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
    assert found
    assert all(found)
