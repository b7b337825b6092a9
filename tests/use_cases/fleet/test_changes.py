"""Changes that were planted in sessions over time are named, and called what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fleet import made_history
from tests.fleet.made_history import Planted

from stepscope.fleet.questions import Asked
from stepscope.model.api.fleet import ChangesBy, FleetAnswer, FleetChange
from stepscope.sessions.fleet.sending import Destination
from stepscope.use_cases.fleet import changes
from stepscope.use_cases.fleet.asking import Scope

AT = 60
"""Session at which changes begin."""


def ask(folder: Path, by: ChangesBy = "function", since: str = "") -> FleetAnswer:
    """The answer for all that lies in a folder."""
    return changes.changes(Scope(place=Destination(url=str(folder)), asked=Asked(limit=100)), by, since)


def named(answer: FleetAnswer) -> dict[str, FleetChange]:
    """Changes by function, or by what they are of."""
    return {one.function or one.of: one for one in answer.changes}


@pytest.mark.parametrize("by", ["function", "line"])
def test_a_place_that_costs_more(tmp_path: Path, by: ChangesBy) -> None:
    """5 % of a step 20 % slower: the place, when, by how much, and no other, not even those whose share fell."""
    made_history.write(tmp_path, 1, Planted(AT, augment=1.2))
    answer = ask(tmp_path, by)
    (one,) = answer.changes
    assert (one.kind, one.function, one.line, one.session) == ("rose", "augment", 50 if by == "line" else 0, "train060")
    assert one.ratio == pytest.approx(1.2, abs=0.03)
    assert one.low is not None
    assert one.high is not None
    assert one.low < 1.2 < one.high
    assert (one.measure, one.sessions_before, one.sessions_after) == ("cpu", AT, 100 - AT)
    assert one.before_ns == pytest.approx(4.35e6, rel=0.02)
    assert one.before_ratio == pytest.approx(0.05, abs=0.003)
    assert one.hours > 0
    assert one.smallest_ratio is not None
    assert one.smallest_ratio < 0.2
    assert changes.exit_code(answer) == 1


def test_nothing_changed(tmp_path: Path) -> None:
    """Nothing is claimed, and what would have been seen is said, the less the rarer a place is."""
    made_history.write(tmp_path, 2)
    answer = ask(tmp_path)
    assert answer.changes == ()
    (job,) = answer.followed
    assert (job.sessions, job.measure) == (100, "cpu")
    assert job.large_smallest is not None
    assert job.middle_smallest is not None
    assert job.small_smallest is not None
    assert job.large_smallest < job.middle_smallest < job.small_smallest
    assert changes.exit_code(answer) == 0


def test_moved(tmp_path: Path) -> None:
    """What one function costs less and another more, with the sum unchanged, is one change."""
    made_history.write(tmp_path, 3, Planted(AT, encode=1 / 3, decode=3.0))
    answer = ask(tmp_path)
    (one,) = answer.changes
    assert (one.kind, one.function, one.to) == ("moved", "encode", "train.py decode")
    assert changes.exit_code(answer) == 0


def test_not_moved_if_the_sum_rose(tmp_path: Path) -> None:
    """A function that lost less than another gained: both are named."""
    made_history.write(tmp_path, 3, Planted(AT, encode=0.8, decode=4.0))
    found = named(ask(tmp_path))
    assert {name: one.kind for name, one in found.items()} == {"encode": "fell", "decode": "rose"}


def test_went_away(tmp_path: Path) -> None:
    """A change that was undone is called so, with both of its ends."""
    made_history.write(tmp_path, 4, Planted(40, AT, resize=1.3))
    (one,) = ask(tmp_path).changes
    assert (one.kind, one.function, one.session) == ("went-away", "resize", "train040")
    assert one.ended_unix_s == made_history.FIRST_S + AT * made_history.EVERY_S
    assert one.ratio == pytest.approx(1.3, abs=0.04)


def test_everything_slower_is_the_step(tmp_path: Path) -> None:
    """Where shares stay as they are, only the job itself changed."""
    factors = dict.fromkeys(made_history.COSTS_MS, 1.1)
    made_history.write(tmp_path, 5, Planted(AT, None, **factors))
    assert set(named(ask(tmp_path))) == {"step", "cpu"}


def test_callers_stand_with_what_they_call(tmp_path: Path) -> None:
    """Half of a step three times as slow: the function first, its caller as one that changed by as much."""
    made_history.write(tmp_path, 6, Planted(AT, forward=1.5))
    found = named(ask(tmp_path))
    assert found["forward"].also in {(), ("train.py main",)}
    assert "main" not in found


def test_more_steps_are_no_change(tmp_path: Path) -> None:
    """Twice as many steps: neither the functions of steps, nor the start that each run has once."""
    made_history.write(tmp_path, 7, more_steps_from=AT)
    answer = ask(tmp_path)
    assert answer.changes == ()
    assert answer.followed[0].of_runs >= 1


def test_a_slow_host_is_no_change(tmp_path: Path) -> None:
    """One host of four 30 % slower throughout."""
    made_history.write(tmp_path, 8, slow_host=1.3)
    assert ask(tmp_path).changes == ()


def test_a_slow_host_is_named(tmp_path: Path) -> None:
    """One host of four, whose sessions wait: its CPU time is that of the others. Equal hosts are not."""
    made_history.write(tmp_path / "slow", 8, slow_host=1.3)
    answer = ask(tmp_path / "slow", "host")
    (one,) = answer.slow_hosts
    assert (one.host, one.resource, answer.compared_hosts, changes.exit_code(answer)) == ("host0", "wait", 4, 1)
    assert one.low < 1.3 < one.high
    assert one.cpu_ratio == pytest.approx(1.0, abs=0.03)
    made_history.write(tmp_path / "equal", 8)
    answer = ask(tmp_path / "equal", "host")
    assert (answer.slow_hosts, answer.compared_hosts, changes.exit_code(answer)) == ((), 4, 0)


def test_a_host_with_a_slower_cpu(tmp_path: Path) -> None:
    """Its CPU time of a step is longer as well."""
    made_history.write(tmp_path, 8, slow_host=1.3, slow_cpu=True)
    (one,) = ask(tmp_path, "host").slow_hosts
    assert (one.host, one.resource) == ("host0", "cpu")


def test_since(tmp_path: Path) -> None:
    """Changes of the asked days only; too few sessions since then cannot tell."""
    made_history.write(tmp_path, 9, Planted(20, augment=1.2), Planted(90, load=1.2))
    assert set(named(ask(tmp_path))) == {"augment", "load"}
    day = made_history.day_of(88)
    answer = ask(tmp_path, since=day)
    assert set(named(answer)) == {"load"}
    assert answer.followed[0].new == sum(made_history.day_of(number) >= day for number in range(100))
    nothing = ask(tmp_path, since=made_history.day_of(99))
    assert (nothing.changes, changes.exit_code(nothing)) == ((), 3)


def test_jobs_are_followed_apart(tmp_path: Path) -> None:
    """Two programs: the change of one is no change of the other."""
    made_history.write(tmp_path, 10, Planted(AT, augment=1.2))
    made_history.write(tmp_path, 11, program="eval.py")
    answer = ask(tmp_path)
    assert [(one.program, one.function) for one in answer.changes] == [("train.py", "augment")]
    assert {one.program: one.sessions for one in answer.followed} == {"train.py": 100, "eval.py": 100}


def test_parts_of_two_versions(tmp_path: Path) -> None:
    """Version 1 has no CPU time of samples: with many such sessions thread times are compared, with few they go."""
    made_history.write(tmp_path / "old", 12, Planted(AT, augment=1.2), version=1)
    (one,) = ask(tmp_path / "old").changes
    assert (one.function, one.measure) == ("augment", "threads")
    for name, kept in (("few", 5), ("many", 50)):
        folder = tmp_path / name
        made_history.write(folder, 13, Planted(AT, augment=1.2))
        parts = sorted(folder.rglob("*.parquet"))[:kept]
        made_history.write(folder / "old", 13, Planted(AT, augment=1.2), version=1)
        for part in parts:
            (older,) = (folder / "old").rglob(f"{part.name[:8]}-*.parquet")
            older.rename(part.with_name(older.name))
            part.unlink()
        (one,) = ask(folder).changes
        assert (one.function, one.measure) == ("augment", "cpu" if name == "few" else "threads")
        assert one.sessions_before == (AT - kept if name == "few" else AT)


def test_few_sessions_cannot_tell(tmp_path: Path) -> None:
    """With four before and four after nothing is compared."""
    made_history.write(tmp_path, 14, Planted(4, augment=3.0), sessions=8)
    answer = ask(tmp_path)
    assert (answer.changes, answer.followed[0].tests, changes.exit_code(answer)) == ((), 0, 3)
