"""Horovod's timeline: exchanges, the wait for all ranks, and who came last where the file shows it."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.readers.chrome import horovod, trace_events
from stepscope.tables.optrace import Category

DATA = Path(__file__).parents[2] / "data" / "horovod-0.28.1"


def note(name: str) -> str:
    """What is said of a file."""
    (said,) = [one.text for one in trace_events.read_file(DATA / name).diagnostics if one.code == horovod.NOTE]
    return said


def test_exchanges_and_the_time_of_the_file() -> None:
    """Negotiations and exchanges are communication; rank 0's clock says when the timeline began."""
    trace = trace_events.read_file(DATA / "cached.json")
    named = dict(zip((trace.strings[i] for i in trace.metas.name), trace.metas.category.tolist(), strict=True))
    exchanges = ("NEGOTIATE_ALLREDUCE", "ALLREDUCE", "GLOO_ALLREDUCE", "NEGOTIATE_BROADCAST", "GLOO_BCAST")
    assert {named[name] for name in exchanges} == {Category.COLLECTIVE}
    (stamp,) = [one["args"] for one in json.loads((DATA / "cached.json").read_text()) if "epoch" in str(one)]
    assert 0 < trace.source.started_unix_ns / 1000 - stamp["start_time_since_epoch_in_micros"] < 60e6


def test_a_cache_hides_who_came_last() -> None:
    """Only the first exchanges show ranks: their order, that of the start, is not said of all."""
    assert "HOROVOD_CACHE_CAPACITY=0 shows all" in note("cached.json")
    assert "came last in" not in note("cached.json")


def test_without_the_cache_the_slow_rank_is_named() -> None:
    """Rank 1 slept 30 ms in each step."""
    assert "rank 1 came last in" in note("uncached.json")
    assert "waits 3" in note("uncached.json")


def test_a_stamp_that_is_no_number() -> None:
    """It is a trace without a time."""
    stamp = b'{"name": "process_name", "ph": "M", "args": {"start_time_since_epoch_in_micros": "x"}}'
    event = b'{"name": "a", "ph": "X", "ts": 1, "dur": 1}'
    assert trace_events.read_bytes(b"[" + stamp + b"," + event + b"]", "t.json").source.started_unix_ns == 0
