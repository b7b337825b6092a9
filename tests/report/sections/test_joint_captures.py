"""The report's part on joint captures, from stored sessions of a job's members."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sessions.joint_sessions import COUNT, FIRST, MS, capture, ends_of
from tests.sessions.member_sessions import change, changed_member, sessions

from stepscope.derive.cluster import clock
from stepscope.derive.cluster.clock import ClockOffset
from stepscope.model.report.cluster import JointCapture
from stepscope.report import text
from stepscope.sessions import analysis, merge
from stepscope.store.manifests import read_manifest


def joint_of(folder: Path, parts: list[Path]) -> tuple[JointCapture, str]:
    """The joint capture in the report of the members, and the report as text."""
    report = analysis.analyze(merge.merge(parts, folder / "job.stepscope"))
    assert report.cluster is not None
    (found,) = report.cluster.captures
    return found, text.render(report)


def test_the_same_steps_their_number_and_who_missed(tmp_path: Path) -> None:
    """One task began a step earlier, one failed, one has no capture."""
    parts = sessions(tmp_path, [[1.0], [31.0], [1.0], [1.0]])
    ends = [ends_of(part) for part in parts]
    capture(parts[0], ends[0][FIRST : FIRST + COUNT + 1], leads=True)
    capture(parts[1], ends[1][FIRST - 1 : FIRST + COUNT])
    capture(parts[2], ends[2][:0], outcome="failed", steps=0, text="no space")
    found, said = joint_of(tmp_path, parts)
    assert (found.steps, found.first_step) == (COUNT - 1, FIRST + 1)
    assert [(task.name, task.traced, task.apart) for task in found.tasks] == [
        ("worker 0", COUNT, False),
        ("worker 1", COUNT, False),
    ]
    assert found.missed == ("worker 2 (no space)", "worker 3 (no capture)")
    assert f"the same {COUNT - 1} steps of worker 0, worker 1, {FIRST + 1} to {FIRST + COUNT - 1} of the job" in said
    assert "missed: worker 2 (no space), worker 3 (no capture)" in said


@pytest.mark.parametrize(("bound_ns", "together"), [(MS // 10, True), (100 * MS, False)])
def test_hosts_with_clocks_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound_ns: int, *, together: bool
) -> None:
    """The second host's clock is 100 s ahead: by what was compared its steps are the same, if that was close enough."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    ends = [ends_of(part) for part in parts]
    capture(parts[0], ends[0][FIRST : FIRST + COUNT + 1], leads=True)
    capture(parts[1], ends[1][FIRST : FIRST + COUNT + 1])
    changed_member(parts[1], boot_id="another")
    ahead_ns = 100_000 * MS
    change(parts[1], origin_monotonic_ns=read_manifest(parts[1]).origin_monotonic_ns + ahead_ns)
    offset, bound = np.array([-float(ahead_ns)]), np.array([float(bound_ns)])
    compared = ClockOffset(times_ns=np.zeros(1, np.int64), offset_ns=offset, bound_ns=bound)
    monkeypatch.setattr("stepscope.causes.cluster.members.clocks", lambda _: (clock.same(), compared))
    found, said = joint_of(tmp_path, parts)
    assert found.steps == (COUNT if together else 0)
    assert (f"the same {COUNT} steps of worker 0, worker 1" in said) is together


def test_tasks_that_do_not_step_together_have_no_step_in_common(tmp_path: Path) -> None:
    """Only the time is the same, and no number is said."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    ends = ends_of(parts[0])[FIRST : FIRST + COUNT + 1]
    half = int(np.diff(ends).mean()) // 2
    capture(parts[0], ends, leads=True)
    capture(parts[1], ends + half)
    found, said = joint_of(tmp_path, parts)
    assert (found.steps, found.first_step) == (0, None)
    assert "op traces of the same time of worker 0, worker 1; no step is the same" in said
