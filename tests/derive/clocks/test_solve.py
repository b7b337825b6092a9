"""Offsets of clocks: the truth lies within the bounds, always; estimates are as good as the path allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.clocks.links import MS, US, Clock, Path, S, link, probed, truth

from stepscope.derive.clocks import gates, host_clock, link_offset
from stepscope.derive.clocks.solve import Link, solve

REFERENCE = Clock()


def span(reference: Clock, seconds: float) -> tuple[float, float]:
    """The whole run by the clock of the reference."""
    first, last = reference.at(np.array([0.0, seconds * S]))
    return float(first), float(last)


@settings(max_examples=60, deadline=None)
@given(
    offset=st.floats(-1e15, 1e15),
    drift=st.floats(-5e-5, 5e-5),
    wander=st.floats(0, 4e-7),
    there=st.floats(0.02, 10),
    back=st.floats(0.02, 10),
    jitter=st.floats(0, 3),
    loss=st.floats(0, 0.5),
    seconds=st.floats(2, 1500),
    seed=st.integers(0, 1000),
)
def test_the_truth_is_within_the_bounds(
    offset: float,
    drift: float,
    wander: float,
    there: float,
    back: float,
    jitter: float,
    loss: float,
    seconds: float,
    seed: int,
) -> None:
    """Whatever the path's asymmetry, jitter and loss, and the clock's drift: no bound excludes the true offset."""
    other = Clock(offset_ns=offset, drift=drift, wander=wander)
    path = Path(there_ns=there * MS, back_ns=back * MS, jitter_ns=jitter * MS, loss=loss)
    model = solve(
        [link("a", REFERENCE, "b", other, path, seconds=seconds, seed=seed)], "a", span=span(REFERENCE, seconds)
    )
    at, true = truth(REFERENCE, other, seconds)
    low, high = model.clocks["b"].bounds(at)
    assert (low <= true).all()
    assert (true <= high).all()
    assert model.bent == model.conflicts == 0


NUMBERS = [
    pytest.param(Path(), 30 * US, id="no jitter: 30 us"),
    pytest.param(Path(there_ns=0.5 * MS, back_ns=0.5 * MS, jitter_ns=0.25 * MS), 50 * US, id="RTT of 1 ms: 50 us"),
    pytest.param(Path(there_ns=5 * MS, back_ns=5 * MS, jitter_ns=2 * MS), 300 * US, id="RTT of 10 ms: 300 us"),
]
"""Paths and the largest error at the 95th percentile (the numbers to beat)."""


@pytest.mark.parametrize(("path", "most"), NUMBERS)
def test_the_estimate_of_a_symmetric_path(path: Path, most: float) -> None:
    """With a drift of 50 ppm over ten minutes, errors stay within what is known to be reachable."""
    other = Clock(offset_ns=1e12, drift=5e-5)
    errors = []
    for seed in range(20):
        model = solve([link("a", REFERENCE, "b", other, path, seconds=600, seed=seed)], "a", span=span(REFERENCE, 600))
        at, true = truth(REFERENCE, other, 600)
        errors.append(np.abs(model.clocks["b"].offset(at) - true))
    assert np.percentile(errors, 95) <= most
    assert np.max(errors) <= most  # over the whole time as well


@pytest.mark.parametrize("path", [pytest.param(one.values[0], id=str(one.id)) for one in NUMBERS])
def test_bounds_are_half_the_round_trip_and_little_more(path: Path) -> None:
    """While probes go on, the bound is at most half of the shortest round trip and 50 us, and what jitter leaves."""
    other = Clock(offset_ns=-3e9, drift=-5e-5)
    quads = probed(REFERENCE, other, path, seconds=600)
    model = solve([Link(a="a", b="b", gates=gates.of_probes(quads))], "a", span=span(REFERENCE, 600))
    at = np.linspace(60, 540, 300) * S
    shortest = int((quads.returned_ns - quads.sent_ns - (quads.answered_ns - quads.received_ns)).min())
    assert model.clocks["b"].bound(at).max() <= shortest / 2 + 50 * US + path.jitter_ns / 20


def test_the_error_of_an_asymmetric_path_is_half_its_asymmetry() -> None:
    """No estimator sees it; the bounds hold all the same."""
    other = Clock(offset_ns=1e9)
    path = Path(there_ns=3 * MS, back_ns=7 * MS, jitter_ns=0.5 * MS)
    model = solve([link("a", REFERENCE, "b", other, path, seconds=300)], "a", span=span(REFERENCE, 300))
    at, true = truth(REFERENCE, other, 300)
    error = np.median(model.clocks["b"].offset(at) - true)
    assert error == pytest.approx(-2 * MS, abs=0.2 * MS)
    assert (model.clocks["b"].bound(at) >= 2 * MS).all()


def mesh(seed: int) -> tuple[dict[str, Clock], list[Link]]:
    """Six hosts and the links between any two, each with an asymmetry (standard deviation 100 us one way)."""
    rng = np.random.default_rng(seed)
    clocks = {
        f"h{n}": Clock(offset_ns=float(rng.uniform(-1e12, 1e12)), drift=float(rng.uniform(-5e-5, 5e-5)))
        for n in range(6)
    }
    links = []
    for number, (a, b) in enumerate(itertools.combinations(clocks, 2)):
        uneven = float(rng.normal(0, 100 * US))
        path = Path(there_ns=0.5 * MS + uneven / 2, back_ns=0.5 * MS - uneven / 2, jitter_ns=0.1 * MS)
        links.append(link(a, clocks[a], b, clocks[b], path, seconds=60, seed=100 * seed + number))
    return clocks, links


def test_many_links_average_their_asymmetries() -> None:
    """Least squares over all pairs of hosts are closer to the truth than the links to the reference alone."""
    errors: dict[str, list[float]] = {"all": [], "star": []}
    for seed in range(8):
        clocks, links = mesh(seed)
        star = [one for one in links if "h0" in {one.a, one.b}]
        for name, chosen in (("all", links), ("star", star)):
            model = solve(chosen, "h0", span=span(clocks["h0"], 60))
            for host in list(clocks)[1:]:
                at, true = truth(clocks["h0"], clocks[host], 60)
                low, high = model.clocks[host].bounds(at)
                assert ((low <= true) & (true <= high)).all()
                errors[name].append(float(np.abs(model.clocks[host].offset(at) - true).mean()))
    assert np.mean(errors["all"]) < 0.75 * np.mean(errors["star"])


def test_a_host_is_reached_over_others_and_an_apart_one_is_left_out() -> None:
    """Bounds add along the way; of a host without any link nothing is claimed."""
    middle, far = Clock(offset_ns=5e9, drift=2e-5), Clock(offset_ns=-7e14, drift=-3e-5)
    path = Path(there_ns=0.2 * MS, back_ns=0.2 * MS)
    links = [
        link("b", middle, "a", REFERENCE, path, seconds=90),
        link("b", middle, "c", far, path, seconds=90, seed=2),
        link("x", far, "y", middle, path, seconds=90, seed=3),
    ]
    model = solve(links, "a", span=span(REFERENCE, 90))
    assert set(model.clocks) == {"a", "b", "c"}
    at, true = truth(REFERENCE, far, 90)
    assert np.abs(model.clocks["c"].offset(at) - true).max() < 0.1 * MS
    assert model.clocks["c"].bound(at).min() > 0.3 * MS
    assert (model.clocks["a"].bound(at[1:-1]) <= 100 * US).all()


def test_a_jump_splits_what_is_known() -> None:
    """After a suspended host's clock jumped, exchanges before say nothing about after, and both sides stay right."""
    path = Path(there_ns=0.3 * MS, back_ns=0.3 * MS, jitter_ns=0.05 * MS)
    before, after = Clock(offset_ns=1e9), Clock(offset_ns=1e9 - 40 * S)
    quads = probed(REFERENCE, before, path, seconds=600)
    later = probed(REFERENCE, after, path, seconds=600, seed=2)
    late = quads.burst >= 10
    mixed = gates.FourStamps.concat([quads.take(~late), later.take(later.burst >= 10)])
    at_jump = 290 * S
    model = solve(
        [Link(a="a", b="b", gates=gates.of_probes(mixed))], "a", span=span(REFERENCE, 600), jumps={"a": [at_jump]}
    )
    clock = model.clocks["b"]
    at = np.array([10.0, 280, 300, 590]) * S
    assert np.abs(clock.offset(at) - [1e9, 1e9, 1e9 - 40 * S, 1e9 - 40 * S]).max() < 0.1 * MS
    assert clock.bound(at).max() < 1 * MS
    unseen = solve([Link(a="a", b="b", gates=gates.of_probes(mixed))], "a", span=span(REFERENCE, 600))
    assert unseen.bent > 0  # that no line passes through all gates is counted


def test_a_drift_that_changes_is_followed() -> None:
    """A clock whose rate changes by 30 ppm in the middle: no line passes through all gates, fewer do."""
    path = Path(there_ns=0.3 * MS, back_ns=0.3 * MS)
    fast = Clock(drift=3e-5)
    slow = Clock(offset_ns=float(fast.at(np.array([300 * S]))[0]) - 300 * S)
    first, second = probed(REFERENCE, fast, path, seconds=600), probed(REFERENCE, slow, path, seconds=600, seed=5)
    both = gates.FourStamps.concat([first.take(first.sent_ns < 300 * S), second.take(second.sent_ns >= 300 * S)])
    model = solve([Link(a="a", b="b", gates=gates.of_probes(both))], "a", span=span(REFERENCE, 600))
    at, true = truth(REFERENCE, fast, 600)
    true = np.where(at < 300 * S, true, truth(REFERENCE, slow, 600)[1])
    low, high = model.clocks["b"].bounds(at)
    away = np.abs(at - 300 * S) > 60 * S
    assert ((low <= true) & (true <= high))[away].all()
    assert model.bent > 0


def collectives(a: Clock, b: Clock, seconds: float, delay_ns: float, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Entries and exits of two workers in collectives, ten a second, each by its own clock; A, then B."""
    rng = np.random.default_rng(seed)
    ready = np.sort(rng.uniform(0, seconds * S, int(10 * seconds)))
    enter_a, enter_b = ready + rng.exponential(2 * MS, len(ready)), ready + rng.exponential(2 * MS, len(ready))
    leave = np.maximum(enter_a, enter_b) + delay_ns
    leave_a, leave_b = leave + rng.exponential(MS, len(ready)), leave + rng.exponential(MS, len(ready))
    stamps = (a.at(enter_a), a.at(leave_a), b.at(enter_b), b.at(leave_b))
    return tuple(np.rint(one).astype(np.int64) for one in stamps)


def test_collectives_alone_bound_the_offset() -> None:
    """Where nobody probed, entering and leaving collectives says what the offset can be."""
    other = Clock(offset_ns=3e11, drift=2e-5)
    causal = gates.of_collectives(*collectives(REFERENCE, other, 60, 0.5 * MS))
    model = solve([Link(a="a", b="b", gates=causal)], "a", span=span(REFERENCE, 60))
    at, true = truth(REFERENCE, other, 60)
    low, high = model.clocks["b"].bounds(at)
    assert ((low <= true) & (true <= high)).all()
    assert model.clocks["b"].bound(at).max() < 5 * MS


def test_collectives_that_contradict_the_probes_are_counted_and_left_out() -> None:
    """Steps paired with the wrong ones exclude each other; they do not move the offset."""
    other = Clock(offset_ns=3e11)
    path = Path(there_ns=0.3 * MS, back_ns=0.3 * MS)
    enter_a, leave_a, enter_b, leave_b = collectives(REFERENCE, other, 60, 0.5 * MS)
    wrong = gates.of_collectives(enter_a[:-1], leave_a[:-1], enter_b[1:], leave_b[1:])
    right = gates.of_collectives(enter_a, leave_a, enter_b, leave_b)
    probes = link("a", REFERENCE, "b", other, path, seconds=60)
    at, true = truth(REFERENCE, other, 60)
    for causal, some in ((wrong, True), (right, False)):
        model = solve([probes, Link(a="a", b="b", gates=causal)], "a", span=span(REFERENCE, 60))
        assert (model.contradictions > len(enter_a) // 2) == some
        assert np.abs(model.clocks["b"].offset(at) - true).max() < 0.1 * MS


def test_links_that_contradict_each_other_are_counted() -> None:
    """Three hosts whose offsets do not add up: the narrowest links hold, and it is said."""
    other = Clock(offset_ns=1e9)
    path = Path(there_ns=0.2 * MS, back_ns=0.2 * MS)
    good = [link("a", REFERENCE, "b", other, path, seconds=60), link("b", other, "c", other, path, seconds=60, seed=2)]
    bad = link("a", REFERENCE, "c", Clock(offset_ns=1.1e9), replace(path, there_ns=MS), seconds=60, seed=3)
    model = solve([*good, bad], "a", span=span(REFERENCE, 60))
    assert model.conflicts > 0
    assert model.clocks["c"].offset(np.array([30 * S]))[0] == pytest.approx(1e9, abs=0.1 * MS)


def test_stamps_that_cannot_be_are_left_out() -> None:
    """An exchange that was answered before it was received bounds nothing."""
    quads = probed(REFERENCE, REFERENCE, Path(), seconds=2)
    broken = replace(quads, returned_ns=quads.sent_ns - 1)
    assert len(gates.of_probes(broken)) == 0
    assert len(gates.of_probes(quads)) == 1


def test_jumps_of_the_wall_clock() -> None:
    """A step of the clock shows as a jump between two readings; a slow correction does not."""
    at = np.arange(10) * int(S)
    real = np.full(10, 5_000) + np.arange(10)
    assert gates.jumps(at, real).tolist() == []
    real[6:] += 2_000_000
    assert gates.jumps(at, real).tolist() == [5_500_000_000]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [(0, 99, "unknown"), (0, 100, "unknown"), (0, 101, "before"), (101, 0, "after"), (5, 5, "unknown")],
)
def test_no_order_is_claimed_within_the_bounds(a: int, b: int, said: str) -> None:
    """A before B needs a distance of more than both bounds together."""
    assert host_clock.order(a, 60, b, 40) == said


def test_stamps_of_a_host_become_times_of_the_reference() -> None:
    """And back: what the host's clock showed at that time is the stamp."""
    other = Clock(offset_ns=1e14, drift=4e-5)
    model = solve([link("a", REFERENCE, "b", other, Path(), seconds=300)], "a", span=span(REFERENCE, 300))
    true = np.linspace(5, 295, 50) * S
    found, bound = model.clocks["b"].to_reference(other.at(true))
    assert np.abs(found - true).max() < 50 * US
    assert (np.abs(found - true) <= bound).all()


def test_one_gate_is_enough() -> None:
    """The bound grows by the largest drift with the distance from the only exchange."""
    only = gates.of_probes(probed(REFERENCE, REFERENCE, Path(), seconds=2))
    near, far = only.at_ns[0] + np.array([0.0, 10 * S])
    offsets = link_offset.at(only, np.array([near, far]))
    width = offsets.high_ns - offsets.low_ns
    assert width[0] < 0.2 * MS
    assert width[1] == pytest.approx(width[0] + 2 * gates.RATE_MAX * 10 * S, rel=0.02)
