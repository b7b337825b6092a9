"""The timeline of a joint session: every member's tracks on one time axis, and the links between members."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.derive.sessions import S, filled
from tests.sessions.member_sessions import change, changed_member, sessions
from tests.timeline.joint_timelines import opened

from stepscope.derive.view import SessionView
from stepscope.model.session.session import HostInfo, Manifest, Peers, Session
from stepscope.readers import run_metadata
from stepscope.store import optrace
from stepscope.store.manifests import read_manifest
from stepscope.store.span_cache import MappedCache
from stepscope.tables.network_tables import PacketTable, TcpTable
from stepscope.timeline import joint_tracks, link_tracks
from stepscope.timeline.joint_tracks import ShownSession
from stepscope.timeline.span_track import DistinctNames

LATER_NS = 3 * S
RUN = Path(__file__).parents[1] / "data" / "run-metadata-2.21" / "ps-worker.pb"


def begins(reader: MappedCache) -> dict[str, int]:
    """Begin of the steps of each member."""
    return {track.group: track.begin_ns for track in reader.index.timeline.tracks if track.kind == "steps"}


def test_members_of_one_clock_lie_where_they_were(tmp_path: Path) -> None:
    """A session that began three seconds later on the same clock is drawn three seconds later; keys stay apart."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    one, two = (begins(opened(tmp_path / name, parts)).values() for name in ("a", "b") if _later(parts[1], name))
    first, later = list(one), list(two)
    assert later[0] == first[0]
    assert later[1] - first[1] == LATER_NS


def _later(session: Path, name: str) -> bool:
    """Before the second look: it began later."""
    (session.parent / name).mkdir()
    if name == "b":
        origin = read_manifest(session).origin_monotonic_ns
        change(session, origin_monotonic_ns=origin + LATER_NS)
    return True


def test_groups_say_whose_they_are_and_what_is_not_known(tmp_path: Path) -> None:
    """Clocks of two hosts that were never compared are said to be so."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    changed_member(parts[1], boot_id="another")
    reader = opened(tmp_path, parts)
    groups = {track.group.partition(": ")[0] for track in reader.index.timeline.tracks}
    assert groups == {"worker 0", "worker 1 (clocks not compared)"}
    keys = [track.key for track in reader.index.timeline.tracks]
    assert len(set(keys)) == len(keys)
    assert {track.bound_ns for track in reader.index.timeline.tracks} == {0, None}


def connected(here: str, there: str, label: str, boot_id: str = "") -> ShownSession:
    """A member with one connection, that sends 1 MB each second and some of it again."""
    at = np.arange(1, 6, dtype=np.int64) * S
    rows = filled(
        TcpTable,
        5,
        at_ns=at,
        pid=np.ones(5, np.int64),
        connection=np.zeros(5, np.int64),
        acked_bytes=np.arange(5, dtype=np.int64) * 1_000_000,
        retrans_bytes=np.arange(5, dtype=np.int64) * 1_000,
    )
    packets = PacketTable(
        at_ns=np.array([3, 2], np.int64) * S,
        connection=np.zeros(2, np.int64),
        reason=np.array([1, -1]),
        arriving=np.zeros(2, np.int64),
    )
    session = Session(
        manifest=Manifest(host=HostInfo(boot_id=boot_id)),
        peers=Peers(tcp=rows, packets=packets),
        resource_names=(f"tcp:{here} {there}", "drop:QDISC_DROP"),
    )
    return ShownSession(view=SessionView(session), label=label, shift_ns=S)


def test_a_link_is_a_connection_to_another_member() -> None:
    """It has what was sent and what was sent again, at the times of the timeline; a connection to elsewhere, or on the
    loopback device of another host, is none.
    """
    one, two = "10.0.0.1:5000", "10.0.0.2:6000"
    parts = [connected(one, two, "worker 0"), connected(two, one, "worker 1"), connected("10.0.0.3:1", one, "worker 2")]
    found = joint_tracks.links(parts)
    assert {(track.title, track.held.value.max()) for track in found if track.title.startswith("worker 0")} == {
        ("worker 0 to worker 1", 1e6),
        ("worker 0 to worker 1, again", 1e3),
    }
    assert {int(track.held.start[0]) for track in found} == {2 * S}
    assert joint_tracks.links(parts[:1]) == []
    near, far = "127.0.0.1:5000", "127.0.0.1:6000"
    assert joint_tracks.links([connected(near, far, "worker 0", "a"), connected(far, near, "worker 1", "b")]) == []
    assert joint_tracks.links([connected(near, far, "worker 0", "a"), connected(far, near, "worker 1", "a")])


def test_what_was_lost_lies_on_the_lane_of_its_link() -> None:
    """In order, each with what happened to it, at the times of the timeline; a session alone names the other end."""
    one, two = "10.0.0.1:5000", "10.0.0.2:6000"
    names = DistinctNames()
    parts = [connected(one, two, "worker 0"), connected(two, "10.0.0.3:1", "worker 1")]
    (track,) = joint_tracks.lost(parts, names)
    assert track.title == "worker 0 to worker 1: lost"
    assert track.start.tolist() == [3 * S, 4 * S]
    assert [names.items[number].text for number in track.name.tolist()] == ["sent again", "dropped: QDISC_DROP"]
    (alone,) = joint_tracks.lost([connected(one, two, "")], DistinctNames())
    assert alone.title == f"to {two}: lost"


def test_a_transfer_is_linked_to_both_its_ends(tmp_path: Path) -> None:
    """Weights lie on the lane from the server to the worker; an arrow comes from the op that read them there, and goes
    to where the worker received them.
    """
    parts = sessions(tmp_path, [[1.0], [31.0]])
    optrace.write(parts[0], "ops-001", run_metadata.read_file(RUN), worker=read_manifest(parts[0]).workers[0].key)
    reader = opened(tmp_path, parts)
    (lane,) = (track for track in reader.index.timeline.tracks if track.title == "ps 0 to worker 0")
    assert lane.group == link_tracks.NETWORK

    def text(at: int, row: int) -> str:
        return reader.index.names[int(reader.base(at)["name"][row])].text

    found = {}
    for at in range(lane.first_lane, lane.first_lane + lane.lanes):
        for row in range(len(reader.base(at)["start"])):
            ends = [[text(*end[:2]) for end in reader.links(at, row, out=out)] for out in (False, True)]
            found[text(at, row)] = ends
    assert found["matmul_1/ReadVariableOp (4 MiB)"] == [["matmul_1/ReadVariableOp:ReadVariableOp"], ["RecvTensor"]]
    assert all(came == ["RecvTensor"] for _, came in found.values())


def test_traces_of_two_members_are_told_apart(tmp_path: Path) -> None:
    """Each member names its first trace ops-001: choosing one of them brings only its own lanes."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    for part in parts:
        optrace.write(part, "ops-001", run_metadata.read_file(RUN), worker=read_manifest(part).workers[0].key)
    timeline = opened(tmp_path, parts).index.timeline
    names = [trace.trace for trace in timeline.traces]
    assert len(set(names)) == len(names) == 2
    whose = [{track.group.partition(":")[0] for track in timeline.tracks if track.trace == name} for name in names]
    assert [found - {link_tracks.NETWORK} for found in whose] == [{"worker 0"}, {"worker 1"}]
