"""Clocks of members on several hosts, by what their collectors exchanged."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.clocks.links import MS, Clock, Path, S, probed

from stepscope.causes.cluster import members
from stepscope.causes.cluster.member import Member
from stepscope.derive.view import SessionView
from stepscope.model.session import clock_domain
from stepscope.model.session.member import MemberInfo
from stepscope.model.session.session import HostInfo, Manifest, Peers, Session
from stepscope.tables.network_tables import ClockProbeTable

ORIGIN, AHEAD = 5_000_000_000_000, 700_000_000_000_000
SECONDS = 90


def member(boot_id: str, session: Session) -> Member:
    """A member on a host."""
    manifest = replace_host(session.manifest, boot_id)
    view = SessionView(replace(session, manifest=manifest))
    return Member(
        info=MemberInfo(launcher="TF_CONFIG", role="worker", boot_id=boot_id),
        folder="",
        pid=1,
        host=boot_id,
        open=lambda: view,
        calls=(),
        steps=0,
        step_ns=0.0,
        samples=0.0,
        components={},
        computes_ns=None,
    )


def replace_host(manifest: Manifest, boot_id: str) -> Manifest:
    """The manifest of a session on another host."""
    return Manifest(
        host=HostInfo(boot_id=boot_id), origin_monotonic_ns=manifest.origin_monotonic_ns, ended_ns=manifest.ended_ns
    )


def exchanged() -> Session:
    """A session whose collector exchanged stamps with a host whose clock is ahead."""
    quads = probed(
        Clock(offset_ns=ORIGIN), Clock(offset_ns=AHEAD), Path(there_ns=0.3 * MS, back_ns=0.3 * MS), seconds=SECONDS
    )
    real = np.full(len(quads), 1_700_000_000 * int(S))
    table = ClockProbeTable(
        sent_ns=quads.sent_ns - ORIGIN,
        peer=np.zeros(len(quads), np.int64),
        burst=quads.burst,
        received_ns=quads.received_ns,
        answered_ns=quads.answered_ns,
        returned_ns=quads.returned_ns - ORIGIN,
        real_ns=real,
        peer_real_ns=real,
    )
    name = f"clock:{clock_domain.key('theirs', '')} node-2:7331"
    manifest = Manifest(origin_monotonic_ns=ORIGIN, ended_ns=SECONDS * int(S))
    return Session(manifest=manifest, peers=Peers(clock_probes=table), resource_names=(name,))


def test_a_member_of_another_host_is_compared_by_exchanges() -> None:
    """Times of its clock become times of the first one's, within the bound."""
    alone = Session(manifest=Manifest(origin_monotonic_ns=AHEAD, ended_ns=SECONDS * int(S)))
    same, other = members.clocks([member("ours", exchanged()), member("theirs", alone)])
    assert same is not None
    assert same.widest_ns == 0
    assert other is not None
    stamps = AHEAD + np.array([10, 50, 80]) * int(S)
    offset, bound = other.at(stamps)
    assert offset == pytest.approx(ORIGIN - AHEAD, abs=float(bound.max()))
    assert 0.25 * MS < bound.min() <= bound.max() < 0.7 * MS


def test_members_that_exchanged_nothing_are_not_compared() -> None:
    """Nothing is known of the other clock: no order of events is claimed."""
    alone = Session(manifest=Manifest(origin_monotonic_ns=AHEAD, ended_ns=SECONDS * int(S)))
    found = members.clocks([member("ours", alone), member("theirs", alone), member("ours", alone)])
    assert [one is None for one in found] == [False, True, False]
