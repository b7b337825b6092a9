"""Whether a sidecar is started, or started again, in a control group that is nearly full."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.agent import always_on
from stepscope.agent.core import memory_limits

MIB = 1 << 20


@pytest.mark.parametrize(("used", "room"), [(500, True), (840, False)])
def test_none_is_started_without_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: int, *, room: bool
) -> None:
    """Page cache is room; without a limit there always is."""
    usage = tmp_path / "memory.usage_in_bytes"
    usage.write_text(str((used + 100) * MIB))
    (tmp_path / "memory.stat").write_text(f"total_cache {100 * MIB}\n")
    monkeypatch.setattr(memory_limits, "control_group", lambda: (850 * MIB, str(usage)))
    assert always_on.has_room() is room
    monkeypatch.setattr(memory_limits, "control_group", lambda: (0, ""))
    assert always_on.has_room()
