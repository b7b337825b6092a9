"""The end of a job whose sidecar is killed when its report stands."""

from __future__ import annotations

from pathlib import Path

from stepscope.launcher import launch
from stepscope.launcher.sidecar_process import SidecarProcess


def test_nobody_waits_for_a_sidecar_that_is_done(tmp_path: Path) -> None:
    """Its run folder is gone, so none can start again: the launcher ends, without a word if the report stands."""
    session = tmp_path / "w.stepscope"
    session.mkdir()
    (session / "report.json").write_text("{}")
    gone = SidecarProcess(tmp_path / "gone", session)
    outcome = launch._finish(3, session, gone, [])
    assert (outcome.exit_code, outcome.messages, gone.starts) == (3, (), 0)
    (session / "report.json").unlink()
    (said,) = launch._finish(3, session, gone, []).messages
    assert said.startswith("the report could not be written")
