"""Tables of a session that came from elsewhere may hold any numbers: its report is made all the same."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.derive.view import SessionView
from stepscope.model.session.session import HostInfo, Manifest, Peers, Session
from stepscope.report.sections.machine import clocks, links
from stepscope.tables.network_tables import ClockProbeTable, TcpTable
from stepscope.tables.records import Table
from stepscope.timeline import series_tracks

NAMES = ("clock:00 a:1", "clock:11 b:2", "tcp:1.1.1.1:1 2.2.2.2:2", "tcp:", "clock:", "tcp:x y", "net:eth0")
NUMBERS = st.one_of(st.integers(-(2**62), 2**62), st.integers(-3, 10), st.integers(0, 10**10))


@st.composite
def tables(draw: st.DrawFn, kind: type[Table]) -> Table:
    """A table of any numbers."""
    rows = draw(st.integers(0, 6))
    columns = {
        name: np.array(draw(st.lists(NUMBERS, min_size=rows, max_size=rows)), np.int64)
        for name in kind.__struct_fields__
    }
    return kind(**columns)


@settings(max_examples=60, deadline=None)
@given(tables(ClockProbeTable), tables(TcpTable), NUMBERS, NUMBERS)
def test_any_numbers(probes: Table, tcp: Table, origin: int, ended: int) -> None:
    """Nothing fails, and what is said is finite."""
    assert isinstance(probes, ClockProbeTable)
    assert isinstance(tcp, TcpTable)
    manifest = Manifest(host=HostInfo(boot_id="x"), origin_monotonic_ns=origin, ended_ns=ended)
    view = SessionView(Session(manifest=manifest, peers=Peers(clock_probes=probes, tcp=tcp), resource_names=NAMES))
    with np.errstate(all="ignore"):
        for link in links.build(view):
            assert all(math.isfinite(value) for value in (link.busy_ratio, link.lost_ratio, link.delivery_bytes_s))
        for clock in clocks.build(view):
            assert math.isfinite(clock.drift_ratio)
        series_tracks.tracks(view.session)
