"""Op traces on the collector's side: ended early, begun by the process itself, read later."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from stepscope.collector.captures import capture_files
from stepscope.collector.captures.asked import CaptureExtent
from stepscope.collector.captures.op_captures import SERIES, YOUNG_NS, OpCaptures
from stepscope.collector.captures.reason import FIRST, USER
from stepscope.model.log.events import CaptureTaken
from stepscope.model.log.look import LookTaken
from stepscope.model.session.session import CaptureInfo, Manifest
from stepscope.tables.records import Gaps, RecordTable
from stepscope.wire import commands
from stepscope.wire.commands import COMMANDS_NAME, Inbox

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

KEY = "10-1"


def test_who_has_enough_tells_the_process(tmp_path: Path) -> None:
    """By the id of what goes on; nobody is told where nothing does, and a process that is gone is no error."""
    worker = SimpleNamespace(key=KEY, pid=10, closed=False, folder=tmp_path, answers={}, looks={})
    recording = SimpleNamespace(drainer=SimpleNamespace(workers={KEY: worker}))
    captures = OpCaptures(cast("Recording", recording))
    inbox = commands.Inbox(str(tmp_path / commands.COMMANDS_NAME))
    captures.enough()
    assert inbox.take() == ([], [])
    identity = captures.begin(CaptureExtent(by=USER, worker=KEY, steps=1, seconds=3.0), 1)
    captures.enough()
    sent = {command["kind"]: command for command in inbox.take()[0]}  # ids of one millisecond have no order
    assert [sent["ops"][name] for name in ("seconds", "margin", "anchors")] == [3.0, 0, []]
    assert sent[commands.ENOUGH]["capture"] == identity
    shutil.rmtree(tmp_path / commands.COMMANDS_NAME)
    captures.enough()


class Recorded:
    """A recording of one process, as far as ``OpCaptures`` looks at it."""

    def __init__(self, session: Path) -> None:
        self.session = session
        self.manifest = Manifest(origin_monotonic_ns=0)
        self.job = None
        self.notes: list[str] = []
        recent = SimpleNamespace(observed=lambda: (RecordTable.empty(), Gaps.empty()), counts={})
        self.worker = SimpleNamespace(
            key=KEY, pid=10, closed=False, folder=session, answers={}, looks={}, recent=recent
        )
        self.drainer = SimpleNamespace(workers={KEY: self.worker})
        self.captures = OpCaptures(cast("Recording", self))

    def note(self, _code: str, text: str) -> None:
        """A diagnostic."""
        self.notes.append(text)

    def add_capture(self, capture: CaptureInfo) -> None:
        """Enter one."""
        self.manifest = msgspec.structs.replace(self.manifest, captures=(*self.manifest.captures, capture))

    def look(self, **fields: object) -> None:
        """The process says that it begins a look, or why not."""
        line = LookTaken(at=1, id="l", begun=True, role="train", work="training", steps=3, anchors=((2, 7),))
        self.worker.looks["l"] = msgspec.structs.replace(line, **fields)

    def answer(self, **fields: object) -> None:
        """The process says what became of it."""
        line = CaptureTaken(at=1, id="l", outcome="done", asked_by="first-look", steps=3, anchors=[(2, 7)], cpu_ns=9)
        self.worker.answers["l"] = msgspec.structs.replace(line, **fields)


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """One whose captures have files that can be read."""
    monkeypatch.setattr(capture_files, "take", lambda *_: ("a.xplane.pb",))
    monkeypatch.setattr(capture_files, "read", lambda *_, **__: ("optraces/ops-001",))
    return Recorded(tmp_path)


S = 1_000_000_000


def finished(recording: Recorded, at_ns: int) -> CaptureInfo | None:
    """What has finished by then."""
    recording.captures.poll(at_ns)
    return recording.captures.poll(at_ns + 9 * S)


def test_a_look_is_a_capture_from_its_first_line_on(recording: Recorded) -> None:
    """Nothing else begins beside it, and what the process said of its steps is kept."""
    assert recording.captures.poll(1 * S) is None
    assert not recording.captures.busy
    recording.look()
    assert recording.captures.poll(2 * S) is None
    assert recording.captures.busy
    recording.answer()
    done = finished(recording, 3 * S)
    assert done is not None
    assert (done.asked_by, done.title, done.work, done.steps) == ("first-look", "Keras fit", "training", 3)
    assert not recording.captures.busy


def test_untraced_steps_are_not_waited_for_where_other_calls_come_instead(recording: Recorded) -> None:
    """A few of them are an evaluation; a step among them shows that the steps go on."""
    counts = recording.worker.recent.counts
    recording.look()
    recording.answer(recorded_ns=3 * S)
    assert recording.captures.poll(2 * S) is None
    counts.update({(2, 7): 1, (6, 8): SERIES})
    assert recording.captures.poll(3 * S) is None
    counts.pop((2, 7))
    counts[6, 8] = SERIES - 1
    assert recording.captures.poll(3 * S) is None
    counts[6, 8] = SERIES
    assert recording.captures.poll(3 * S) is not None


def test_a_capture_that_begins_at_once_waits_for_no_untraced_steps(recording: Recorded, tmp_path: Path) -> None:
    """Its command says so; any other leaves that to the process."""
    inbox = Inbox(str(tmp_path / COMMANDS_NAME))
    for at_once in (True, False):
        asked = CaptureExtent(by=FIRST, worker=KEY, steps=3, anchors=((2, 7),), at_once=at_once)
        recording.captures.begin(asked, 1 * S)
        recording.answer(id="l", outcome="failed")
        ((fields,), _) = inbox.take()
        assert fields.get("before") == (0 if at_once else None)
        recording.worker.answers[str(fields["id"])] = recording.worker.answers["l"]
        assert recording.captures.poll(2 * S) is not None


def test_a_young_job_s_look_is_read_when_it_has_ended(recording: Recorded) -> None:
    """It is finished before, for whoever asks; its files enter the manifest at the job's end."""
    recording.look()
    recording.answer()
    done = finished(recording, 3 * S)
    assert done is not None
    assert (done.outcome, done.files, recording.manifest.captures) == ("done", (), ())
    assert recording.captures.poll(14 * S) is None
    assert recording.captures.read_due(YOUNG_NS - 1) == 0
    recording.captures.close(20 * S)
    assert [capture.files for capture in recording.manifest.captures] == [("optraces/ops-001",)]


def test_what_could_wait_is_read_when_the_job_is_no_longer_young(recording: Recorded) -> None:
    """Once, and the cost of reading is told."""
    recording.look()
    recording.answer()
    finished(recording, 3 * S)
    assert recording.captures.read_due(YOUNG_NS) > 0
    assert recording.captures.read_due(YOUNG_NS) == 0
    (capture,) = recording.manifest.captures
    assert (capture.id, capture.files) == ("l", ("optraces/ops-001",))
    assert capture.cost_ns >= capture.read_cpu_ns > 0
    assert recording.captures.poll(40 * S) is None


def test_who_asks_has_their_capture_read_at_once(recording: Recorded) -> None:
    """Somebody waits for it."""
    recording.answer(asked_by="user")
    done = finished(recording, 3 * S)
    assert done is not None
    assert done.files == ("optraces/ops-001",)


def test_a_restarted_sidecar_takes_the_look_up_again(recording: Recorded) -> None:
    """From the same lines; what is in the manifest already is not taken twice."""
    recording.look()
    recording.answer()
    finished(recording, 3 * S)
    recording.captures = OpCaptures(cast("Recording", recording))
    recording.captures.close(9 * S)
    recording.captures = OpCaptures(cast("Recording", recording))
    recording.captures.close(9 * S)
    assert [capture.id for capture in recording.manifest.captures] == ["l"]


def test_a_restarted_sidecar_knows_what_a_capture_is_part_of(recording: Recorded) -> None:
    """The answer says it, so a collector that was killed in a joint capture takes nothing out of it."""
    recording.answer(asked_by="user", request="r", joint="j")
    done = finished(recording, 3 * S)
    assert done is not None
    assert (done.request, done.joint) == ("r", "j")


def test_a_look_that_the_job_s_end_cut_off_is_told_of(recording: Recorded) -> None:
    """It has a place among the captures, with the reason; so has one that was too dear, as a note."""
    recording.look()
    recording.captures.close(5 * S)
    (capture,) = recording.manifest.captures
    assert (capture.outcome, capture.text) == ("failed", "the process ended first")
    recording.look(begun=False, problem="no automatic op trace: too dear")
    recording.captures.close(6 * S)
    assert recording.notes == ["no automatic op trace: too dear"]
