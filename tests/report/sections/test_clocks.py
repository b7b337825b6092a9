"""The report's clocks of other hosts."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.clocks.links import MS, US, Clock, Path, S, probed
from tests.report import samples

from stepscope.derive.view import SessionView
from stepscope.model.session import clock_domain
from stepscope.model.session.session import HostInfo, Manifest, Peers, Session
from stepscope.report.document.machine import links as link_lines
from stepscope.report.sections.machine import clocks
from stepscope.tables.network_tables import ClockProbeTable

ORIGIN = 5_000_000_000_000
HERE = Clock(offset_ns=ORIGIN)


def session(other: Clock, ahead_ns: int, *, seconds: float = 90) -> Session:
    """A session whose collector exchanged stamps with a host of that clock, whose wall clock is ahead by so much."""
    quads = probed(HERE, other, Path(there_ns=0.3 * MS, back_ns=0.3 * MS), seconds=seconds)
    real = np.full(len(quads), 1_700_000_000 * int(S) - ORIGIN)
    table = ClockProbeTable(
        sent_ns=quads.sent_ns - ORIGIN,
        peer=np.zeros(len(quads), np.int64),
        burst=quads.burst,
        received_ns=quads.received_ns,
        answered_ns=quads.answered_ns,
        returned_ns=quads.returned_ns - ORIGIN,
        real_ns=real,
        peer_real_ns=real + ORIGIN - int(other.offset_ns) + ahead_ns,
    )
    there = clock_domain.key("theirs", "")
    manifest = Manifest(
        host=HostInfo(boot_id="ours"), origin_monotonic_ns=ORIGIN, ended_ns=int(seconds * S), started_unix_ns=0
    )
    return Session(manifest=manifest, peers=Peers(clock_probes=table), resource_names=(f"clock:{there} node-2:7331",))


@pytest.mark.parametrize(("ahead_ns", "said"), [(3_000_000, "3 ms ahead"), (-3_000_000, "3 ms behind"), (0, "as here")])
def test_a_clock_is_ahead_or_behind(ahead_ns: int, said: str) -> None:
    """The wall clock's offset with its bound; none is claimed within the bound."""
    other = Clock(offset_ns=7e14)
    (found,) = clocks.build(SessionView(session(other, ahead_ns)))
    assert found.host == "node-2:7331"
    assert found.offset_ns == pytest.approx(7e14 - ORIGIN, abs=found.bound_ns)
    assert found.wall_offset_ns == pytest.approx(ahead_ns, abs=found.bound_ns)
    assert 250 * US < found.bound_ns < 400 * US
    assert found.round_trip_ns >= 600 * US
    report = msgspec.structs.replace(samples.no_steps(), clocks=(found,))
    (line,) = link_lines.clocks(report)
    assert said in line.replace("2.99 ms", "3 ms").replace("3.01 ms", "3 ms")


def test_drift() -> None:
    """A rate of 40 ppm is seen over a minute and a half; one burst shows none."""
    other = Clock(offset_ns=7e14, drift=4e-5)
    (found,) = clocks.build(SessionView(session(other, 0)))
    assert found.drift_ratio == pytest.approx(4e-5, abs=2e-6)
    (once,) = clocks.build(SessionView(session(other, 0, seconds=2)))
    assert once.drift_ratio == 0


def test_without_exchanges_there_are_no_clocks() -> None:
    """Most jobs run on one host; names that are none are passed over."""
    assert clocks.build(SessionView(Session(manifest=Manifest()))) == ()
    odd = replace(session(Clock(), 0), resource_names=("net:eth0",))
    assert clocks.build(SessionView(odd)) == ()
