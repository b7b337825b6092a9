"""``stepscope merge``: what belongs together, what is refused, and what the joint session says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.detectors.member_jobs import PERIOD, STEPS, MemberJob, exchanging, member, synchronous
from tests.sessions.member_sessions import change, changed_member, sessions
from tests.web.recorded import write

from stepscope.model.report.report import Report
from stepscope.model.session import clock_domain
from stepscope.model.session.session import Manifest
from stepscope.report import text
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.sessions import analysis, merge, redacting
from stepscope.sessions.bundle import open_session, pack, unpack
from stepscope.store.manifests import read_manifest
from stepscope.store.writer import SessionWriter
from stepscope.tables import layout
from stepscope.tables.errors import SessionError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.units import format_ratio


def report_of(session: Path) -> Report:
    """Its report."""
    return analysis.analyze(session)


def test_one_report_of_all(tmp_path: Path) -> None:
    """The head has the batch and the rate of all; the straggler comes first, then the members' findings."""
    parts = sessions(tmp_path, [[1.0], [31.0], [1.0]], samples=(64, 64, 64))
    joint = merge.merge(parts, tmp_path / "job.stepscope")
    report = report_of(joint)
    assert report.findings[0].code == "DST001"
    assert report.findings[0].cost.ratio == pytest.approx(0.3, abs=0.01)
    assert report.cluster is not None
    assert (report.cluster.tasks, report.cluster.missing, report.cluster.global_batch) == (3, (), 192.0)
    assert report.session.throughput.samples_per_s == pytest.approx(1920, rel=0.01)
    assert report.session.throughput.steps_per_s == pytest.approx(10, rel=0.01)
    rows = {row.name: row for row in report.cluster.members}
    assert list(rows) == ["worker 0", "worker 1", "worker 2"]
    gain, other = rows["worker 1"].gain, rows["worker 0"].gain
    assert gain is not None
    assert other is not None
    assert (round(gain.ratio, 2), other.high) == (0.3, 0.0)
    assert rows["worker 0"].waits_ns == pytest.approx(30e6, rel=0.01)
    assert "worker 1: 640 samples/s" in text.render(report)
    assert {"DST001": "found", "DST002": "clear"}.items() <= {c.detector: c.outcome for c in report.checked}.items()


def test_the_stages_are_those_of_the_mean_step(tmp_path: Path) -> None:
    """A joint report has the stages: the mean of what its members measured; what none measured is not measured."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    report = report_of(merge.merge(parts, tmp_path / "job.stepscope"))
    alone = [{stage.stage: stage for stage in report_of(part).stages} for part in parts]
    assert [stage.stage for stage in report.stages] == list(alone[0])
    for stage in report.stages:
        shares = [one[stage.stage].ratio for one in alone]
        known = [share for share in shares if share is not None]
        assert stage.ratio == (pytest.approx(sum(known) / len(known)) if known else None)
    assert len({one["output-processing"].ratio for one in alone}) == len(alone)
    ends = sorted(one["output-processing"].ratio or 0.0 for one in alone)
    (output,) = (stage for stage in report.stages if stage.stage == "output-processing")
    assert f"mean of 2 members ({format_ratio(ends[0])} to {format_ratio(ends[1])}); " in output.basis
    assert "stages      raw input" in text.render(report)


def test_members_stay_whole(tmp_path: Path) -> None:
    """Each opens by itself in the joint session, whose files are those of the member; packed, it says the same."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    joint = merge.merge(parts, tmp_path / "job.stepscope")
    for index, part in enumerate(parts):
        inside = joint / layout.MEMBERS / f"worker-{index}.stepscope"
        assert read_manifest(inside).id == read_manifest(part).id
        assert len(open_session(inside).workers[0].records) == len(open_session(part).workers[0].records)
    packed, _ = pack(joint)
    assert report_of(packed).cluster == report_of(joint).cluster


def test_a_joint_session_stands_for_its_members(tmp_path: Path) -> None:
    """Who comes later is merged with what is joined already."""
    one, two, three = sessions(tmp_path, [[1.0], [31.0], [1.0]])
    first = merge.merge([one, two], tmp_path / "two.stepscope")
    assert [d.code for d in read_manifest(first).diagnostics] == ["DX191"]
    assert "worker 2" in read_manifest(first).diagnostics[0].text
    found = report_of(first).cluster
    assert found is not None
    assert found.missing == ("worker 2",)
    every = read_manifest(merge.merge([first, three], tmp_path / "three.stepscope"))
    assert [entry.name for entry in every.members] == ["worker 0", "worker 1", "worker 2"]
    assert every.diagnostics == ()


def test_who_died_before_it_was_known_is_left_out(tmp_path: Path) -> None:
    """The others are joined, the task is missing, and which session was left out is said; who ended well is refused."""
    one, two, three = sessions(tmp_path, [[1.0], [31.0], [1.0]])
    change(three, workers=(), exit_code=-9)
    joint = read_manifest(merge.merge([one, two, three], tmp_path / "job.stepscope"))
    assert [entry.name for entry in joint.members] == ["worker 0", "worker 1"]
    texts = {d.code: d.text for d in joint.diagnostics}
    assert texts["DX191"].startswith("worker 2 of")
    assert texts["DX198"] == (
        f"left out: {three} was ended by SIGKILL before any of its processes was known as a task of a cluster"
    )
    change(two, workers=(), exit_code=None, state="recovered")
    alone = read_manifest(merge.merge([one, two, three], tmp_path / "alone.stepscope"))
    assert [entry.name for entry in alone.members] == ["worker 0"]
    with pytest.raises(SessionError, match="before any of its processes was known"):
        merge.merge([two, three], tmp_path / "none.stepscope")
    change(three, exit_code=0)
    with pytest.raises(SessionError, match="none of its processes is known as a task"):
        merge.merge([one, three], tmp_path / "none.stepscope")


def test_a_host_that_died_is_told(tmp_path: Path) -> None:
    """When it died only its newest record says."""
    one, two = sessions(tmp_path, [[1.0], [31.0]])
    (worker,) = read_manifest(two).workers
    ended_ns = read_manifest(two).ended_ns - 2_000_000_000
    dead = msgspec.structs.replace(worker, clean_exit=False)
    change(two, workers=(dead,), exit_code=None, state="recovered", ended_ns=ended_ns)
    joint = read_manifest(merge.merge([one, two], tmp_path / "job.stepscope"))
    assert [(d.code, d.text) for d in joint.diagnostics] == [
        ("DX194", "worker 1 did not end by itself: nothing was recorded of the last 2 s of the others")
    ]


def test_who_is_killed_as_the_last_is_named(tmp_path: Path) -> None:
    """Where the others ended well; a job that was ended as a whole has no last one."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    change(parts[1], exit_code=-9)
    change(parts[0], exit_code=0)
    joint = read_manifest(merge.merge(parts, tmp_path / "job.stepscope"))
    assert [d.text for d in joint.diagnostics] == ["worker 1 was ended by SIGKILL, when the others had ended"]
    change(parts[0], exit_code=-9)
    assert read_manifest(merge.merge(parts, tmp_path / "all.stepscope")).diagnostics == ()


def test_a_server_that_is_killed_when_all_is_done_is_no_failure(tmp_path: Path) -> None:
    """Parameter servers serve until they are killed; one that dies before the others is named."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    changed_member(parts[1], role="ps", jobs={"worker": 1, "ps": 1}, index=0, rank=-1)
    changed_member(parts[0], jobs={"worker": 1, "ps": 1})
    change(parts[0], exit_code=0)
    change(parts[1], exit_code=-15)
    joint = read_manifest(merge.merge(parts, tmp_path / "job.stepscope"))
    assert [d.text for d in joint.diagnostics if d.code == "DX194"] == []
    change(parts[1], ended_ns=read_manifest(parts[1]).ended_ns - 2_000_000_000)
    joint = read_manifest(merge.merge(parts, tmp_path / "early.stepscope"))
    assert [d.code for d in joint.diagnostics].count("DX194") == 1


def test_clocks_that_another_collector_of_the_host_compared_are_no_problem(tmp_path: Path) -> None:
    """Each member's own report says that it compared none; the joint one knows all of them."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    note = Diagnostic(code="DX190", text="clocks were not compared: another collector may have it")
    change(parts[1], diagnostics=(note,))
    joint = merge.merge(parts, tmp_path / "job.stepscope")
    assert note.text not in {d.text.partition(": ")[2] for d in analysis.analyze(joint).diagnostics}
    (worker,) = read_manifest(parts[1]).workers
    assert worker.member is not None
    changed_member(parts[1], boot_id="another")
    apart = merge.merge(parts, tmp_path / "apart.stepscope")
    assert any(note.text in d.text for d in analysis.analyze(apart).diagnostics)


def test_packed_members_are_unpacked(tmp_path: Path) -> None:
    """Sessions that came by mail."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    joint = merge.merge([pack(part)[0] for part in parts], tmp_path / "job.stepscope")
    assert report_of(joint).findings[0].code == "DST001"
    roles = {brief.name: brief.role for brief in SessionCatalogue([tmp_path]).briefs()}
    assert roles["job"] == "2 tasks"


def test_clocks_that_are_not_known_to_be_one(tmp_path: Path) -> None:
    """Members on two hosts: paired by their rhythm, or nothing is said of waits, and why."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    changed_member(parts[1], boot_id="another")
    found = report_of(merge.merge(parts, tmp_path / "job.stepscope")).cluster
    assert found is not None
    assert [row.paired_by for row in found.members] == ["clock", "count"]
    gain = found.members[1].gain
    assert gain is not None
    assert gain.ratio == pytest.approx(0.3, abs=0.01)


def test_partners_in_the_folder_are_offered(tmp_path: Path) -> None:
    """Who ends last sees the others, in order; sessions of other jobs, and joint ones, are no partners."""
    parts = sessions(tmp_path, [[1.0], [31.0], [1.0]])
    changed_member(parts[2], job_id="other")
    line = f"2 of the job's 3 tasks have a session here: stepscope merge {parts[0]} {parts[1]}"
    assert merge.offer(parts[1]) == merge.offer(parts[0]) == line
    assert merge.offer(parts[2]) == ""
    joint = merge.merge(parts[:2], tmp_path / "job.stepscope")
    assert merge.offer(parts[0]) == line
    assert merge.offer(joint) == ""
    change(parts[1], state="running")
    assert merge.offer(parts[0]) == ""


def incarnations(folder: Path, own_ms: Sequence[Sequence[float]]) -> list[Path]:
    """The sessions of members, the last of which was started again in the middle, two steps later."""
    job = synchronous(own_ms)
    assert isinstance(job, MemberJob)
    last = job.others[-1]
    cut = STEPS // 2 * PERIOD
    begin = cut + 2 * PERIOD
    before = [r for r in last.records if r.start_ns + r.dur_ns <= cut]
    after = [r._replace(start_ns=r.start_ns - begin) for r in last.records if r.start_ns >= begin]
    found = []
    for index, one in enumerate([job, *job.others[:-1]]):
        alone = replace(one, others=[], ended_ns=job.ended_ns)
        alone.framework()
        found.append(write(alone.session(), folder / f"w{index}.stepscope").path)
    for number, records, ended_ns in ((1, before, cut), (2, after, job.ended_ns - begin)):
        alone = replace(last, records=records, others=[], ended_ns=ended_ns)
        alone.framework()
        found.append(write(alone.session(), folder / f"again-{number}.stepscope").path)
    manifest = read_manifest(found[-1])
    origin_ns, unix_ns = manifest.origin_monotonic_ns + begin, manifest.started_unix_ns + begin
    change(found[-1], origin_monotonic_ns=origin_ns, started_unix_ns=unix_ns)
    change(found[-2], exit_code=-9)
    return found


def test_a_worker_that_was_started_again(tmp_path: Path) -> None:
    """Its sessions are one task: its steps are counted together, and it is blamed for both parts of its time."""
    report = report_of(merge.merge(incarnations(tmp_path, [[1.0], [1.0], [31.0]]), tmp_path / "job.stepscope"))
    assert report.cluster is not None
    assert (report.cluster.tasks, report.cluster.missing) == (3, ())
    rows = {row.name: row for row in report.cluster.members}
    assert list(rows) == ["worker 0", "worker 1", "worker 2"]
    again = rows["worker 2"]
    assert again.folders == ("worker-2.stepscope", "worker-2-2.stepscope")
    assert (again.incarnations, again.steps, again.synchronous) == (2, STEPS - 2, True)
    assert report.cluster.common_steps > STEPS - 20
    assert report.findings[0].code == "DST001"
    assert report.findings[0].cost.ratio == pytest.approx(0.3, abs=0.02)
    assert "worker 2 (started 2 times): step" in text.render(report)
    assert {d.code: d.text for d in report.diagnostics}["DX194"].startswith(
        "worker 2 was ended by SIGKILL, 6.1 s before"
    )


def test_a_restart_is_no_straggler(tmp_path: Path) -> None:
    """Members that do the same alone hold none back, whichever was started again."""
    report = report_of(merge.merge(incarnations(tmp_path, [[1.0], [1.0]]), tmp_path / "job.stepscope"))
    assert report.cluster is not None
    assert report.cluster.common_steps > STEPS - 20
    assert [f.code for f in report.findings if f.code.startswith("DST")] == []


def test_an_elastic_job_changes_its_size(tmp_path: Path) -> None:
    """Members of one id belong together; what is missing is what the newest says."""
    parts = incarnations(tmp_path, [[1.0], [1.0]])
    changed_member(parts[-1], jobs={"worker": 3}, tasks=3, size=3)
    report = report_of(merge.merge(parts, tmp_path / "job.stepscope"))
    assert report.cluster is not None
    assert (report.cluster.tasks, report.cluster.missing) == (3, ("worker 2",))


def refused(parts: Sequence[Path], target: Path) -> str:
    """The one line that says why sessions are not joined; nothing is left behind."""
    with pytest.raises(SessionError) as caught:
        merge.merge(parts, target)
    assert not target.exists()
    assert not list(target.parent.glob(".*.tmp"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_refused(tmp_path: Path) -> None:
    """Another job, another time, the same task twice, no task, one session alone, one that is being written."""
    target = tmp_path / "job.stepscope"
    one, two, three = sessions(tmp_path, [[1.0], [1.0], [1.0]])
    assert "alone" in refused([one], target)
    assert "no such session" in refused([one, tmp_path / "none.stepscope"], target)
    changed_member(two, job_id="other")
    assert f"{two} belongs to another job than {one}" in refused([one, two], target)
    changed_member(two, job_id="job", index=0)
    assert "are both worker 0, at the same time" in refused([one, two], target)
    changed_member(two, index=1)
    change(two, started_unix_ns=1_870_000_000_000_000_000)
    assert "ran at another time" in refused([one, two], target)
    (worker,) = read_manifest(three).workers
    change(three, workers=(msgspec.structs.replace(worker, member=None),))
    assert "none of its processes is known as a task of a cluster" in refused([one, three], target)
    change(two, started_unix_ns=read_manifest(one).started_unix_ns)
    target.mkdir()
    with pytest.raises(SessionError, match="already exists"):
        merge.merge([one, two], target)


def test_no_folder_leaves_the_session(tmp_path: Path) -> None:
    """Names of members come from anywhere: a manifest that points elsewhere loses that member, and says so."""
    joint = merge.merge(sessions(tmp_path, [[1.0], [31.0]]), tmp_path / "job.stepscope")
    manifest = read_manifest(joint)
    bad = msgspec.structs.replace(manifest.members[1], folder="../../w1.stepscope")
    change(joint, members=(manifest.members[0], bad))
    session = open_session(joint)
    assert [stored.folder for stored in session.peers.members] == ["worker-0.stepscope"]
    assert "DX106" in [d.code for d in session.manifest.diagnostics]
    with pytest.raises(SessionError, match="leaves the session"):
        merge.merge([joint], tmp_path / "again.stepscope")


def test_a_joint_session_is_redacted(tmp_path: Path) -> None:
    """The copy says of the job and of each task what the session said, and links name its own hosts' clocks."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    hosts = [msgspec.structs.replace(read_manifest(part).host, boot_id=f"b007{n}") for n, part in enumerate(parts)]
    for part, host in zip(parts, hosts, strict=True):
        change(part, host=host)
    link = f"clock:{clock_domain.key(hosts[1].boot_id, hosts[1].time_namespace)}"
    SessionWriter(parts[0]).write_resource_names(1, [f"{link} zebra.example:7332"])
    said = Diagnostic(code="DX198", text="left out: /home/ann/zebra.stepscope")
    joint = merge.merge(parts, tmp_path / "zebra.stepscope", joined_by="run", notes=[said])
    packed, _, _ = redacting.pack(joint, tmp_path / "packed.stepscope.zip")
    before, after = report_of(joint), report_of(unpack(packed))
    found = [[(f.code, f.severity, f.cost) for f in report.findings] for report in (before, after)]
    assert found[0] == found[1]
    assert before.cluster is not None
    assert after.cluster is not None
    rows = [[(row.name, row.gain, row.waits_ns) for row in one.members] for one in (before.cluster, after.cluster)]
    assert rows[0] == rows[1]
    copy = read_manifest(unpack(packed, tmp_path / "copy.stepscope"))
    assert copy.joined_by == "run"
    assert [(d.code, "zebra" in d.text, "ann" in d.text) for d in copy.diagnostics] == [("DX198", False, False)]
    first, second = (open_session(folder) for folder in sorted((tmp_path / "copy.stepscope/members").iterdir()))
    copied = clock_domain.key(second.manifest.host.boot_id, second.manifest.host.time_namespace)
    assert f"clock:{copied}" in {name.partition(" ")[0] for name in first.resource_names}


def test_a_job_without_an_id(tmp_path: Path) -> None:
    """Launchers that give none: joined by numbers and times, with a diagnostic."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    for part in parts:
        changed_member(part, job_id="")
    manifest: Manifest = read_manifest(merge.merge(parts, tmp_path / "job.stepscope"))
    assert [d.code for d in manifest.diagnostics] == ["DX190"]


def test_a_members_question_is_answered(tmp_path: Path) -> None:
    """Alone a member asks for the others' sessions; together they do not."""
    parts = []
    for index in range(2):
        job = exchanging(0.6)
        assert isinstance(job, MemberJob)
        job.info = member(index, 2)
        parts.append(write(replace(job, resources={}).session(), tmp_path / f"w{index}.stepscope").path)
    report = report_of(merge.merge(parts, tmp_path / "job.stepscope"))
    assert "DST004" not in [finding.code for finding in report.findings]
