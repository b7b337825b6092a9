"""The steps that members traced alike are a track of the joint timeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sessions.joint_sessions import COUNT, FIRST, MS, capture, ends_of
from tests.sessions.member_sessions import change, changed_member, sessions
from tests.timeline.joint_timelines import opened

from stepscope.derive.cluster import clock
from stepscope.derive.cluster.clock import ClockOffset
from stepscope.model.api.timeline import Track
from stepscope.store.manifests import read_manifest
from stepscope.timeline.joint_steps import GROUP

AHEAD_NS = 100_000 * MS


def alike(folder: Path, parts: list[Path]) -> list[Track]:
    """The track, if there is one."""
    return [track for track in opened(folder, parts).index.timeline.tracks if track.group == GROUP]


@pytest.mark.parametrize(("bound_ns", "told"), [(MS // 10, True), (100 * MS, False)])
def test_steps_of_two_hosts_lie_where_the_leader_had_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound_ns: int, *, told: bool
) -> None:
    """The other host's clock is 100 s ahead, its task began a step earlier; a clock that is not known says nothing."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    ends = [ends_of(part) for part in parts]
    capture(parts[0], ends[0][FIRST : FIRST + COUNT + 1], leads=True)
    capture(parts[1], ends[1][FIRST - 1 : FIRST + COUNT])
    changed_member(parts[1], boot_id="another")
    change(parts[1], origin_monotonic_ns=read_manifest(parts[1]).origin_monotonic_ns + AHEAD_NS)
    offset, bound = np.array([-float(AHEAD_NS)]), np.array([float(bound_ns)])
    compared = ClockOffset(times_ns=np.zeros(1, np.int64), offset_ns=offset, bound_ns=bound)
    monkeypatch.setattr("stepscope.causes.cluster.members.clocks", lambda _: (clock.same(), compared))
    found = [(one.title, one.spans, one.begin_ns, one.end_ns) for one in alike(tmp_path, parts)]
    begin, end = int(ends[0][FIRST]), int(ends[0][FIRST + COUNT - 1])
    assert found == ([("the same steps of worker 0, worker 1", COUNT - 1, begin, end)] if told else [])


def test_tasks_that_do_not_step_together_have_no_track(tmp_path: Path) -> None:
    """Only the time is the same."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    ends = ends_of(parts[0])[FIRST : FIRST + COUNT + 1]
    capture(parts[0], ends, leads=True)
    capture(parts[1], ends + int(np.diff(ends).mean()) // 2)
    assert alike(tmp_path, parts) == []
