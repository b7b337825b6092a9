"""Rates are taken between samples that lie far enough apart for one, while the job runs."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, Job, S, filled

from stepscope.derive.machine import counters
from stepscope.derive.view import SessionView
from stepscope.model.session.session import Manifest, Session
from stepscope.report.sections import series
from stepscope.tables.records import DiskTable, LinkTable
from stepscope.timeline import series_tracks

TICK_NS = 10 * MS
CPUS = 4


def job(ended_ns: int, *more_ms: int) -> Session:
    """Twenty seconds of steps on two of four CPUs while others use half of one; then a sample each at ``more_ms``."""
    made = Job(ended_ns=20 * S)
    made.framework()
    made.loop().at(0, 20 * S)
    made.execution().every(20 * MS, 1000, dur=18 * MS)
    made.machine(20, cpus=CPUS, got=2.0, others=0.5)
    session = made.session()
    host = session.host
    rows = np.r_[np.arange(len(host)), [len(host) - 1] * len(more_ms)]
    host = host.take(rows)
    first = len(host) - len(more_ms)
    at, others = host.at_ns.copy(), host.others_cpu_ns.copy()
    for number, ms in enumerate(more_ms, first):
        at[number] = ms * MS
        others[number] = others[number - 1] + CPUS * TICK_NS  # what ran on its CPUs is counted when a tick comes
    host = replace(host, at_ns=at, others_cpu_ns=others)
    return replace(session, host=host, manifest=msgspec.structs.replace(session.manifest, ended_ns=ended_ns))


@pytest.mark.parametrize(
    ("at_ms", "kept"),
    [
        ([0, 1000, 2000], [0, 1, 2]),
        ([0, 1000, 2000, 2002], [0, 1, 3]),
        ([0, 2, 1000, 2000], [0, 2, 3]),
        ([0, 1000, 1100, 2000], [0, 1, 3]),
        ([0, 249], [0]),
        ([0, 250], [0, 1]),
        ([7], [0]),
        ([], []),
    ],
)
def test_short_intervals_are_part_of_their_neighbours(at_ms: list[int], kept: list[int]) -> None:
    """No interval is shorter than a rate needs, and what a counter grew by in one is kept."""
    assert counters.spaced(np.array(at_ms, np.int64) * MS).tolist() == kept


def test_a_short_last_interval_is_no_rate() -> None:
    """Ticks that are counted within the last 4 ms are not ten CPUs of four: neither in charts nor on the timeline."""
    session = job(21 * S, 20_004)
    columns = series.build(SessionView(session))
    assert max(columns["res:others_cores"]) == pytest.approx(0.5, abs=0.05)
    assert len(columns["res:others_cores"]) == len(columns["res_t"]) == len(columns["res:cpu_limit_cores"])
    others = next(track for track in series_tracks.tracks(session) if track.key == "cpu-others")
    assert others.held.value.max() == pytest.approx(0.5, abs=0.05)
    assert others.held.end[-1] == 20_004 * MS


def test_nothing_is_said_of_the_time_behind_the_job() -> None:
    """The job's last CPU time cannot be read once its processes have gone, so it is not given to others."""
    columns = series.build(SessionView(job(19_500 * MS, 21_000)))
    assert max(columns["res_t"]) == 19.0
    assert min(columns["res:cpu_cores"]) == pytest.approx(2.0)


def test_disks_and_wires_too() -> None:
    """A megabyte within the last two milliseconds is no rate of a disk or a network."""
    at = np.array([0, 1000, 2000, 3000, 3002], np.int64) * MS
    moved = np.array([0, 1, 2, 3, 4], np.int64) * 1_000_000
    disk = filled(DiskTable, 5, at_ns=at, whole=np.ones(5, np.int64), name=np.zeros(5, np.int64), read_bytes=moved)
    link = filled(LinkTable, 5, at_ns=at, name=np.ones(5, np.int64), rx_bytes=moved)
    session = Session(manifest=Manifest(), disks=disk, links=link, resource_names=["disk:vda", "net:eth0"])
    held = {track.key: track.held for track in series_tracks.tracks(session)}
    for key in ("disk-read", "net-in"):
        assert held[key].value.max() == pytest.approx(2e6, rel=0.01), key
        assert (held[key].value * (held[key].end - held[key].start)).sum() / S == pytest.approx(4e6)
