"""What a TLB miss costs comes into a session: known, measured, or said to be missing."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec
import pytest
from tests.derive.memory_looks import GOOD_WALKS

from stepscope.collector.recorder import Recording
from stepscope.machine import calibration
from stepscope.native.memory import page_walks
from stepscope.sidecar import translation_cost
from stepscope.store import page_walks as stored
from stepscope.tables import layout
from stepscope.tables.page_walks import PageWalks

WHOLE = msgspec.structs.replace(GOOD_WALKS, complete=True)


class Ended:
    """A recording of a job that has ended."""

    def __init__(self, folder: Path, *, looked: bool = True) -> None:
        self.session = folder / "job.stepscope"
        (self.session / layout.MEMORY if looked else self.session).mkdir(parents=True)
        self.notes: list[str] = []

    def note(self, code: str, text: str) -> None:
        self.notes.append(f"{code} {text}")

    def write_notes(self) -> None:
        self.notes.append("written")

    @property
    def walks(self) -> PageWalks | None:
        """What the session holds."""
        path = self.session / layout.PAGE_WALKS
        return stored.decode(path.read_bytes()) if path.exists() else None


@pytest.fixture(name="measured")
def _measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PageWalks]:
    """What measurements give, in turn; a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    given: list[PageWalks] = []
    monkeypatch.setattr(page_walks, "run", lambda: given.pop(0))
    return given


def store(recording: Ended) -> Ended:
    """Store it."""
    translation_cost.store(cast("Recording", recording))
    return recording


def test_it_is_measured_once(tmp_path: Path, measured: list[PageWalks]) -> None:
    """The first session has what was measured; the second has the same without a measurement."""
    measured.append(WHOLE)
    assert store(Ended(tmp_path / "first")).walks == WHOLE
    assert store(Ended(tmp_path / "second")).walks == WHOLE


def test_what_is_incomplete_is_not_kept(tmp_path: Path, measured: list[PageWalks]) -> None:
    """A machine that was busy once is measured again after the next job."""
    measured += [GOOD_WALKS, WHOLE]
    assert store(Ended(tmp_path / "first")).walks == GOOD_WALKS
    assert calibration.load_page_walks() is None
    assert store(Ended(tmp_path / "second")).walks == WHOLE


def test_a_job_whose_memory_was_not_looked_at_costs_nothing(tmp_path: Path, measured: list[PageWalks]) -> None:
    """Nothing is measured where nothing asks for it."""
    recording = store(Ended(tmp_path, looked=False))
    assert (recording.walks, recording.notes, measured) == (None, [], [])


def test_what_failed_is_said(tmp_path: Path, measured: list[PageWalks]) -> None:
    """The session says why, and what to do; nothing is stored."""
    measured.append(PageWalks(problem="no huge pages"))
    recording = store(Ended(tmp_path))
    assert recording.walks is None
    assert recording.notes[0].startswith(
        "DX181 the cost of TLB misses was not measured: no huge pages; to measure it: stepscope doctor"
    )
    assert recording.notes[1:] == ["written"]
