"""Imports that no hook knows: stacks sampled before the first step show them."""

from __future__ import annotations

import pytest
from tests.derive.ledger_parts import ledgers, times, whole
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S

from stepscope.derive.ledger.spots import Spots
from stepscope.model.log.events import ProcessEnded
from stepscope.wire.kinds import Kind

FIND, LOAD = (
    Frame("<frozen importlib._bootstrap>", name, 1176, own=False) for name in ("_find_and_load", "_load_unlocked")
)
LIBRARY = Frame("/venv/lib/python3.11/site-packages/transformers/__init__.py", "<module>", 26, own=False)
MAIN, OWN = Frame(SCRIPT, "<module>", 3), Frame("/home/user/prepare.py", "<module>", 9)
C_MODULE = (MAIN, FIND, LOAD)
PYTHON_MODULE = (MAIN, FIND, LOAD, LIBRARY)


def job(*frames: Frame, seconds: float = 4.0, name: str = "torch") -> Job:
    """A framework until 3 s, steps from 10 s on; of the time before them so much is sampled in these frames."""
    made = Job()
    made.framework(name, at=3 * S, dur=2 * S)
    until = 4 * S + round(seconds * S)
    made.samples(range(3 * S, 10 * S, 50 * MS), MAIN)
    made.records = [one for one in made.records if not 4 * S <= one.start_ns < until]
    made.samples(range(4 * S, until, 50 * MS), *frames)
    made.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12).every(
        20 * MS, 200, dur=0, start=10 * S
    )
    made.event(ProcessEnded(at=14 * S))
    made.ended_ns = 14 * S
    return made


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
@pytest.mark.parametrize("frames", [C_MODULE, PYTHON_MODULE, (*PYTHON_MODULE, FIND, LOAD, LIBRARY)])
def test_imports_of_libraries_are_imports(frames: tuple[Frame, ...], name: str) -> None:
    """Whatever they are, and the line that waits for them is their place."""
    (ledger,) = ledgers(job(*frames, name=name).session())
    found = times(ledger)
    assert abs(found["imports"] - 6 * S) <= 50 * MS
    assert abs(found["building"] - 3 * S) <= 100 * MS
    assert whole(ledger) == ledger.wall_ns
    part = next(part for part in ledger.parts if part.phase == "imports")
    assert [(spot.file, spot.line) for spot in Spots(ledger).of(part)] == [(SCRIPT, 3)]


def test_what_a_module_of_the_users_does_is_none() -> None:
    """Its lines say it: a table that is computed while the module is imported is no import."""
    (ledger,) = ledgers(job(MAIN, FIND, LOAD, OWN).session())
    assert times(ledger)["imports"] == 2 * S
    assert times(ledger)["building"] >= 7 * S - 50 * MS


def test_a_library_that_a_module_of_the_users_imports_is_one() -> None:
    """Its line waits for it."""
    (ledger,) = ledgers(job(MAIN, FIND, LOAD, OWN, FIND, LOAD, LIBRARY).session())
    assert abs(times(ledger)["imports"] - 6 * S) <= 50 * MS


@pytest.mark.parametrize("seconds", [0.05, 0.5])
def test_short_ones_stay_with_what_is_built(seconds: float) -> None:
    """A sample or two may be chance."""
    (ledger,) = ledgers(job(*PYTHON_MODULE, seconds=seconds).session())
    assert times(ledger)["imports"] == 2 * S


def test_imports_after_the_first_step_are_time_between_steps() -> None:
    """Whoever imports in a loop waits there."""
    made = job(MAIN)
    made.samples(range(15 * S, 18 * S, 50 * MS), *PYTHON_MODULE)
    made.call(Kind.APPLY, "optimizer step", role="optimizer", call_file=SCRIPT, call_line=12).every(
        20 * MS, 200, dur=0, start=18 * S
    )
    made.event(ProcessEnded(at=22 * S))
    made.ended_ns = 22 * S
    (ledger,) = ledgers(made.session())
    assert times(ledger)["imports"] == 2 * S


def test_a_sample_after_an_import_that_was_not_sampled_is_not_its_place() -> None:
    """Stacks are taken once a framework is there: a first sample stands for itself, not for all the time before it."""
    made = Job()
    made.framework("jax", at=2900 * MS, dur=2280 * MS)
    made.framework("numpy", at=2920 * MS, dur=40 * MS)
    made.samples([2900 * MS], Frame(SCRIPT, "init", 6), FIND, LOAD)
    made.event(ProcessEnded(at=4 * S))
    made.ended_ns = 4 * S
    (ledger,) = ledgers(made.session())
    part = next(part for part in ledger.parts if part.phase == "imports")
    assert Spots(ledger).of(part) == ()


def test_the_place_is_the_import_that_takes_most() -> None:
    """The line of a framework's import waits from its begin on, although stacks are taken later."""
    made = Job()
    made.framework("torch", at=7 * S, dur=6 * S)
    made.samples(range(5 * S, 7 * S, 50 * MS), Frame(SCRIPT, "<module>", 1), FIND, LOAD)
    made.samples(range(7 * S, 10 * S, 50 * MS), Frame(SCRIPT, "<module>", 16), FIND, LOAD)
    made.event(ProcessEnded(at=14 * S))
    made.ended_ns = 14 * S
    (ledger,) = ledgers(made.session())
    part = next(part for part in ledger.parts if part.phase == "imports")
    assert [spot.line for spot in Spots(ledger).of(part)] == [1, 16]
