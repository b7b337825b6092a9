"""What a process does at this moment, told in its ring."""

from __future__ import annotations

from pathlib import Path

from stepscope.collector.agent_files.ring import RingReader
from stepscope.wire.doing import CurrentActivity, Doing
from stepscope.wire.ring import RingWriter


def test_the_innermost_call_is_told_and_read(tmp_path: Path) -> None:
    """An evaluation inside a fit; after it, the fit again."""
    ring = RingWriter(str(tmp_path / "ring"), 8192)
    reader = RingReader(str(tmp_path / "ring"))
    told = CurrentActivity()
    told.word = ring.doing
    fit = told.begin(Doing.TRAINING)
    inner = told.begin(Doing.EVALUATING)
    assert reader.doing() == Doing.EVALUATING
    told.end(inner)
    assert reader.doing() == Doing.TRAINING
    told.end(fit)
    assert reader.doing() == Doing.NOTHING


def test_a_child_does_not_tell_in_the_ring_of_its_parent(tmp_path: Path) -> None:
    """It has no ring until its first record."""
    ring = RingWriter(str(tmp_path / "ring"), 8192)
    told = CurrentActivity()
    told.word = ring.doing
    told.leave()
    told.begin(Doing.SAVING)
    assert ring.doing[0] == Doing.NOTHING


def test_nothing_raises_in_the_call_of_the_job(tmp_path: Path) -> None:
    """Neither a word that was released, as at exit, nor a value that is none."""
    told = CurrentActivity()
    assert told.begin(-1) == 0
    told.word.release()
    told.end(told.begin(Doing.SAVING))
