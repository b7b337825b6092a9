"""Copies of the sources that a run has seen."""

from __future__ import annotations

from pathlib import Path

from stepscope.collector.recording.sources import SourceCopies
from stepscope.store.writer import SessionWriter


def test_a_file_that_the_job_saw_with_another_content_is_copied_as_the_job_saw_it(tmp_path: Path) -> None:
    """Also where it was named by a link."""
    real, link, edited = tmp_path / "real.py", tmp_path / "train.py", tmp_path / "content-1"
    real.write_text("x = 1\n")
    link.symlink_to(real)
    edited.write_text("x = 2\n")
    session = tmp_path / "a.stepscope"
    session.mkdir()
    SourceCopies(SessionWriter(session), {str(real): str(edited)}).store([str(link), str(real)], str(tmp_path))
    copies = sorted(path.read_text() for path in session.rglob("*.py"))
    assert copies == ["x = 2\n", "x = 2\n"]
