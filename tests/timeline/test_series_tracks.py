"""What the machine did, on the timeline: rates between looks, closer looks in their place, sums over processes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.derive.sessions import MS, Job, S, filled
from tests.web.timeline_sessions import LOOK, MB, SPIKE_AT, session

from stepscope.tables.records import GpuTable, HostTable, ProcessTable
from stepscope.timeline import series_tracks
from stepscope.timeline.series_tracks import SeriesTrack


def by_key(job: Job) -> dict[str, SeriesTrack]:
    """The series of a job."""
    return {track.key: track for track in series_tracks.tracks(job.session())}


def test_resources_that_moved_are_there() -> None:
    """With their units; what never moved is not."""
    found = {track.key: track for track in series_tracks.tracks(session())}
    assert {key: track.unit for key, track in found.items()} == {
        "cpu": "cores",
        "net-in": "bytes/s",
        "disk-written": "bytes/s",
    }
    assert found["disk-written"].held.value == pytest.approx([MB] * 4)
    assert found["disk-written"].about.endswith("sda")


def test_a_burst_stands_in_place_of_the_seconds_mean() -> None:
    """Its spike is there in full, and the area of the second is what the second counted."""
    held = next(track for track in series_tracks.tracks(session()) if track.key == "net-in").held
    spike = held.value.argmax()
    assert (held.start[spike], held.end[spike]) == (SPIKE_AT, SPIKE_AT + LOOK)
    assert held.value[spike] == pytest.approx(300 * MB)
    assert (held.value * (held.end - held.start)).sum() / S == pytest.approx(9.3 * MB)
    assert (held.start[1:] == held.end[:-1]).all()


def test_what_a_burst_did_not_see_is_spread_over_the_rest() -> None:
    """Of a second with 10 MB, 4 of them seen within its first fifth."""
    at = np.array([0, S], np.int64)
    coarse = series_tracks.rates(at, np.array([0, 10 * MB]))
    looks = np.arange(11, dtype=np.int64) * 20 * MS
    held = series_tracks.closer(coarse, looks, np.arange(11, dtype=np.int64) * 4 * MB // 10)
    assert held.value[:10] == pytest.approx([20 * MB] * 10)
    assert held.value[10:] == pytest.approx([7.5 * MB])


def test_memory_adds_up_processes_that_come_and_go() -> None:
    """Each counts from its first look to its last one."""
    job = Job(ended_ns=10 * S)
    at = np.array([0, S, 2 * S, S, 2 * S, 3 * S], np.int64)
    pid = np.array([1, 1, 1, 2, 2, 2], np.int64)
    rss = np.array([10, 20, 30, 5, 5, 5], np.int64)
    job.processes = filled(ProcessTable, 6, at_ns=at, pid=pid, rss_bytes=rss)
    held = by_key(job)["memory"].held
    assert held.start.tolist() == [0, S, 2 * S, 3 * S]
    assert held.value.tolist() == [10, 25, 35, 5]
    assert held.end[-1] == 4 * S


def test_gpus_by_their_number() -> None:
    """How busy holds for the time before a look; what the driver did not tell has no value."""
    job = Job(ended_ns=10 * S)
    at = np.arange(4, dtype=np.int64) * S
    job.resources["resource_names"] = ("gpu:0 A", "gpu:1 B")
    name = np.repeat(np.array([0, 1], np.int64), 4)
    busy = np.array([7, 50, -1, 100, 0, 0, 0, 0], np.int64)
    table = filled(GpuTable, 8, at_ns=np.tile(at, 2), name=name, busy_percent=busy, reserved_bytes=name * MB)
    job.resources["gpus"] = table
    found = by_key(job)
    assert set(found) == {"gpu0-busy", "gpu1-memory"}
    assert found["gpu0-busy"].held.start.tolist() == [0, 2 * S]
    assert found["gpu0-busy"].held.value.tolist() == [0.5, 1.0]
    assert found["gpu1-memory"].title == "GPU 1 memory"


def test_damaged_tables_make_no_wrong_order() -> None:
    """Times that go back and times out of bounds are left out, whatever they are."""
    job = Job(ended_ns=10 * S)
    at = np.array([0, S, -(1 << 62), 3 * S, 2 * S, 4 * S, (1 << 62)], np.int64)
    cpu = np.array([0, S, 2 * S, 3 * S, 4 * S, 5 * S, 6 * S], np.int64)
    job.hosts = filled(HostTable, 7, at_ns=at, job_cpu_ns=cpu)
    held = by_key(job)["cpu"].held
    assert (held.end > held.start).all()
    assert (held.start[1:] >= held.end[:-1]).all()
    assert np.abs(held.end).max() <= 1 << 53
    assert np.isfinite(held.value).all()
