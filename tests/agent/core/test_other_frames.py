"""No collection begins while frames of other threads are walked, and collections are afterwards as the program set."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType

import pytest

import stepscope
from stepscope.agent.core import other_frames
from stepscope.agent.core.other_frames import STEADY, Stacks, Steady

DEEP = 40
SOURCES = Path(stepscope.__file__).parent.parent


@pytest.fixture
def collects_often() -> Iterator[list[int]]:
    """Collections begin after a few objects; the threads in which they began."""
    threads: list[int] = []

    def began(phase: str, _info: dict[str, int]) -> None:
        threads.append(threading.get_ident() if phase == "start" else 0)

    before = gc.get_threshold()
    gc.callbacks.append(began)
    gc.set_threshold(5)
    yield threads
    gc.set_threshold(*before)
    gc.callbacks.remove(began)


@pytest.fixture
def needed(monkeypatch: pytest.MonkeyPatch) -> Steady:
    """One of our own, on any Python."""
    monkeypatch.setattr(other_frames, "NEEDED", True)
    return Steady()


def walked(steady: AbstractContextManager[object], began: list[int]) -> int:
    """Collections that began in this thread while it walked the frames of another, for the first time."""
    ready, over = threading.Event(), threading.Event()

    def wait(depth: int) -> None:
        if depth:
            wait(depth - 1)
        else:
            ready.set()
            over.wait(30)

    other = threading.Thread(target=wait, args=(DEEP,))
    other.start()
    assert ready.wait(30)
    try:
        with steady:
            began.clear()
            frame: FrameType | None = sys._current_frames()[other.ident or 0]
            met = 0
            while frame is not None:
                frame, met = frame.f_back, met + 1
            found = began.count(threading.get_ident())
    finally:
        over.set()
        other.join()
    assert met > DEEP
    return found


@pytest.mark.skipif(not other_frames.NEEDED, reason="this Python does not collect while it makes a frame's object")
def test_python_3_11_collects_while_frames_are_walked(collects_often: list[int]) -> None:
    """The mechanism: asking for a frame of another thread begins collections, unless they are kept from it."""
    assert walked(nullcontext(), collects_often) > 0
    assert walked(STEADY, collects_often) == 0
    assert gc.isenabled()


def test_collections_are_left_as_the_program_set_them(needed: Steady) -> None:
    """On again after the last thread has left; off where the program has them off."""
    with needed:
        with needed:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with needed:
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_child_forked_meanwhile_collects(needed: Steady) -> None:
    """The thread that would switch collections on again is not in the child."""
    with needed:
        child = os.fork()
        if not child:
            needed.after_fork()
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_stacks_are_those_of_others_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own frame is not among them, no collection begins meanwhile, and nothing is left."""
    monkeypatch.setattr(other_frames, "NEEDED", True)
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with Stacks() as found:
            assert other.ident in found
            assert threading.get_ident() not in found
            assert not gc.isenabled()
        assert found == {}
        assert gc.isenabled()
    finally:
        over.set()
        other.join()


def test_reading_a_variable_leaves_none_in_the_frame() -> None:
    """What a function lets go of after it was read dies at once."""
    read, alive = read_and_let_go()
    assert read
    assert not alive


def read_and_let_go() -> tuple[bool, bool]:
    """Whether a variable was read, and whether its value lives on. No assert: pytest's ask for variables."""
    value: object = threading.Event()
    reference = weakref.ref(value)
    read = look_above() is value
    del value
    return read, reference() is not None


def look_above() -> object:
    """The value that the caller holds."""
    return other_frames.variable(sys._getframe(1), "value")


TRACED = """
import sys, threading
from stepscope.agent.core.other_frames import Stacks, variables

inside, looked = threading.Semaphore(0), threading.Semaphore(0)
main = threading.get_ident()
seen = set()

def look():
    while inside.acquire():
        with Stacks() as stacks:
            frame = stacks[main]
            while frame is not None:
                seen.update(name for name, _ in variables(frame))
                frame = frame.f_back
        looked.release()

def traces(frame, event, arg):
    inside.release()
    looked.acquire()

def add(number):
    return number + 1

def work():
    kept, total = [1, 2, 3], 0
    for number in range(5):
        total += add(number) + len(kept)
    return total, sorted(locals())

threading.Thread(target=look, daemon=True).start()
getattr(sys, sys.argv[1])(traces)
found = work()
getattr(sys, sys.argv[1])(None)
print(found)
"""


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13"])
@pytest.mark.parametrize("way", ["setprofile", "settrace"])
def test_traced_functions_keep_their_variables(version: str, way: str, find_python: Callable[[str], str]) -> None:
    """A look from within a call of the program's own trace or profile function takes no local variable away."""
    words = [find_python(version), "-c", TRACED, way]
    done = subprocess.run(words, env={"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(30, ['kept', 'number', 'total'])\n", "")


@pytest.mark.skipif(not other_frames.COPIED, reason="since Python 3.13 f_locals is no dictionary that a frame keeps")
def test_a_dictionary_of_the_programs_stays_as_it_is() -> None:
    """What ``locals`` gave before is neither emptied nor brought up to date, and such a function is not read."""
    ready, over = threading.Event(), threading.Event()
    given: list[dict[str, object]] = []

    def asks() -> None:
        number = 1
        given.append(locals())
        number += 1
        ready.set()
        over.wait(30)

    other = threading.Thread(target=asks)
    other.start()
    assert ready.wait(30)
    with Stacks() as found:
        frame: FrameType | None = found[other.ident or 0]
        while frame is not None and frame.f_code is not asks.__code__:
            frame = frame.f_back
        read = other_frames.variables(frame) if frame is not None else None
        frame = None
    over.set()
    other.join()
    assert (read, given[0]["number"]) == ([], 1)
