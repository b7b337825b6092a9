"""Which signals a manifest names."""

from __future__ import annotations

from pathlib import Path

from stepscope.collector.recording import signals
from stepscope.detectors.base import Signal
from stepscope.wire.kinds import Kind


def test_names_are_those_of_the_detectors() -> None:
    """What the manifest calls a signal is what a detector needs by that name."""
    known = {signal.name.lower().replace("_", "-") for signal in Signal}
    assert {*signals.BY_KIND, *signals.BY_LINE, *signals.BY_TABLE} <= known


def test_signals_are_what_was_recorded(tmp_path: Path) -> None:
    """A kind of record, a type of line or a table makes a signal present; nothing else does."""
    assert signals.present(tmp_path, (), ()) == ()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "host-1-1.parquet").touch()
    (tmp_path / "tables" / "rival_names-1-1.parquet").touch()
    assert signals.present(tmp_path, (), ()) == ("host",)
    found = signals.present(tmp_path, {int(Kind.SESSION_RUN), int(Kind.GC)}, {"itermodel", "name"})
    assert found == ("host", "input-wait", "steps")
    assert "gpu" not in found
