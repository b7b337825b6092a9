"""The interface of the recorder for its parts: captures and looks at memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.recording.drain import Drainer
    from stepscope.collector.recording.sampling import Sampling
    from stepscope.launcher.rundir import JobFacts
    from stepscope.model.session.session import CaptureInfo, Manifest
    from stepscope.store.writer import SessionWriter


class RecorderInterface(Protocol):
    """The recorder (``collector.recorder``)."""

    session: Path
    manifest: Manifest
    writer: SessionWriter
    job: JobFacts | None
    """Job of the run; None until the launcher has written it."""
    drainer: Drainer
    sampling: Sampling

    def note(self, code: str, text: str) -> None:
        """Add a diagnostic to the manifest, once."""

    def add_capture(self, capture: CaptureInfo) -> None:
        """Enter a capture into the manifest, which is written with the next flush."""
