"""The report's distance to the limit of memory, and the batch that would fit."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from tests.derive.sessions import S
from tests.detectors.death_jobs import MB, looked, stepping
from tests.detectors.trend_jobs import leaking

from stepscope.model.log.memory import MemoryHeld
from stepscope.model.report.machine.memory_room import MemoryRoom
from stepscope.report.memory import room_words
from stepscope.report.sections.memory import room as memory_room


def room(peak: int, limit: int = 8000) -> MemoryRoom:
    """Of a job whose step keeps 10 MiB of each of its 256 samples, and that ends well after ``peak`` MiB."""
    job = stepping()
    job.exit_code, job.memory_killed = 0, False
    job.events = [e for e in job.events if not isinstance(e, MemoryHeld)]
    looked(job, 0, 300 * MB, limit=limit * MB)
    looked(job, 9 * S, peak * MB, limit=limit * MB)
    found = memory_room.build(job.view())
    assert found is not None
    return found


def test_the_batch_that_fits_is_scaled_by_what_was_measured() -> None:
    """The step's measured growth over that of its shapes scales it; what the limit has left at the peak is used."""
    found = room(2860)
    assert found.batch == 256
    assert found.scale == pytest.approx(1.0)
    assert found.sample_bytes == 10 * MB
    assert found.batch_fits == 256 + int((0.97 * 8000 - 2960) / 10)


def test_growth_that_is_not_the_steps_does_not_scale() -> None:
    """Far less, or far more, than the shapes say was something else: a usual work space is assumed."""
    assert room(400).scale is None
    assert room(400).batch_fits == 256 + int((0.97 * 8000 - 500) / 12.5)


def test_no_room_is_no_larger_batch() -> None:
    """At the limit the batch stays as it is."""
    assert room(2860, limit=2970).batch_fits == 256


def test_memory_that_rises_reaches_its_limit() -> None:
    """A leak has a rate, and a time until its limit."""
    job = leaking(20 * MB)
    looked(job, S, 500 * MB)
    found = memory_room.build(job.view())
    assert found is not None
    assert found.bytes_per_second == pytest.approx(200 * MB, rel=0.05)
    assert found.seconds_left is not None
    assert "at this rate" in " ".join(room_words.items(found))


@pytest.mark.parametrize(
    ("batch", "fits", "said"),
    [
        (128, 268, "x2.1 of this batch fits: 268 samples (modelled)"),
        (128, 129, "no batch much larger than 128 samples fits (modelled)"),
        (1, 1000, "more than x100 of this batch fits (modelled)"),
        (0, 0, ""),
    ],
)
def test_words(batch: int, fits: int, said: str) -> None:
    """A factor that can be used, or that there is none."""
    found = MemoryRoom(limit="host", limit_bytes=1000, used_bytes=10, peak_bytes=20, batch=batch, batch_fits=fits)
    assert " ".join(room_words.batch(found)) == said


@pytest.mark.parametrize(("peak", "shown"), [(10, False), (600, True)])
def test_the_hosts_memory_is_said_where_it_is_half_used(peak: int, shown: bool) -> None:
    """Any other limit is always said."""
    host = MemoryRoom(limit="host", limit_bytes=1000, used_bytes=10, peak_bytes=peak)
    assert bool(room_words.items(host)) == shown
    assert room_words.items(msgspec.structs.replace(host, limit="control group"))
    assert room_words.items(None) == []


@pytest.mark.parametrize(
    ("limit", "whose"),
    [("host", "host"), ("control group", "all its processes"), ("address space", "process"), ("device", "this job's")],
)
def test_the_row_says_whose_memory_it_is(
    limit: Literal["host", "control group", "address space", "device"], whose: str
) -> None:
    """Each limit bounds the memory of somebody else; what rises is the process."""
    room = MemoryRoom(limit=limit, limit_bytes=1000, used_bytes=10, peak_bytes=600, seconds_left=60.0)
    peak, rises = room_words.items(room)
    assert whose in peak
    assert rises == "the process grows: the limit of 1000 B is reached in 60 s at this rate"
