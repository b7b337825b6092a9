"""What a run of ``member_kills`` has left: sessions against the programs' counts, steps, codes, the joint report."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from _member_runs import STEPSCOPE, WORKERS, Run
from stepscope import store
from stepscope.derive.clocks import session_links
from stepscope.derive.steps import gaps
from stepscope.report import json_report
from stepscope.sessions import bundle, merge
from stepscope.tables import layout
from stepscope.tables.errors import StepscopeError
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _whole_hosts import WholeHost
    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Session
    from stepscope.tables.records import I64

ROW = struct.Struct("<qqqq")
FIRST = 5
"""Steps in which workers still connect."""
DEAD = ("worker", "bare", "host", "all")
"""Kinds whose victim's program ends."""
LOST_MS = {"host": 5_000.0}
"""What the session of a victim may lack, where it may lack anything: what was not yet on its host's disk."""
MOMENTS = 50
SIGKILL_CODE = 137
"""Exit code of a shell whose command was ended by SIGKILL."""
TOLD = ("DX101", "DX109", "DX191", "DX194", "DX198")
"""Diagnostics that say what is missing."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run, judged."""

    tree: str
    kind: str
    number: int
    at_s: float
    victim: int
    whole: bool
    """Whether the others' sessions have all spans that their programs counted."""
    codes_right: bool
    left: tuple[str, ...]
    """Processes and run folders that are still there."""
    opens: bool
    """Whether every session and the joint one open."""
    named: bool
    """Whether the joint report says who died, or who is missing, and names nobody else."""
    lost_ms: float
    """From the end of the oldest span that the victim's session lacks to the kill."""
    longest_step_ms: float
    """Of the others."""
    longest_own_ms: float
    """The same of their own work, a sleep of 4 ms."""
    counted: int
    clocks: int
    """Hosts whose clocks were compared, all within their bounds."""
    said: str
    problems: tuple[str, ...]
    took_s: float = 0.0


@dataclass(slots=True)
class _Verdict:
    problems: list[str] = field(default_factory=list)
    joint: Path | None = None
    report: Report | None = None

    def says(self, problem: str) -> bool:
        """Note a problem."""
        self.problems.append(problem)
        return False


def judged(one: Run, *, tree: str, number: int, at_s: float, ended: bool) -> Row:
    """Judge a run whose workers have ended."""
    verdict = _Verdict()
    others = [host for host in one.hosts[:WORKERS] if one.kind not in DEAD or host.host.index != one.victim]
    counts = {host.host.index: counted(host) for host in one.hosts[:WORKERS]}
    steps = np.concatenate([counts[host.host.index][FIRST:] for host in others])
    if not ended:
        verdict.says("did not end")
    codes = _codes(one, others, verdict)
    if one.kind != "bare":
        _reopened(one, verdict)
        _join(one, others, verdict)
    measured = one.kind != "bare"
    found = [_whole(host, counts[host.host.index], verdict) for host in others if measured]
    left = tuple(text for host in others for text in host.left("worker")) if measured else ()
    if left:
        verdict.says(f"left: {left}")
    return Row(
        tree=tree,
        kind=f"{one.kind}{'+' if one.gathered else ''}",
        number=number,
        at_s=at_s,
        victim=one.victim,
        whole=all(found),
        codes_right=codes,
        left=left,
        opens=not measured or _opens(one, verdict),
        named=not measured or _named(one, verdict),
        lost_ms=_lost_ms(one, counts[one.victim], verdict) if measured else 0.0,
        longest_step_ms=float((steps[:, 3] - steps[:, 1]).max(initial=0)) / 1e6,
        longest_own_ms=float((steps[:, 2] - steps[:, 1]).max(initial=0)) / 1e6,
        counted=sum(len(rows) for rows in counts.values()),
        clocks=_clocks(one, verdict) if measured else 0,
        said=" | ".join(_said(one, verdict)),
        problems=tuple(verdict.problems),
    )


def counted(host: WholeHost) -> I64:
    """Rows of the program on a host."""
    file = host.disk / "count"
    data = file.read_bytes() if file.exists() else b""
    rows = np.frombuffer(data[: len(data) // ROW.size * ROW.size], dtype="<i8").reshape(-1, 4)
    return rows[rows[:, 0] > 0].astype(np.int64)


def _codes(one: Run, others: Sequence[WholeHost], verdict: _Verdict) -> bool:
    """Whether hosts ended with the exit codes of their programs."""
    wrong = [host.host.index for host in others if one.jobs[host.host.index].returncode != 0]
    if one.kind in ("worker", "bare") and one.jobs[one.victim].returncode != SIGKILL_CODE:
        wrong.append(one.victim)
    codes = [job.returncode for job in one.jobs]
    return not wrong or verdict.says(f"exit codes {codes}, wrong of {wrong}")


def _reopened(one: Run, verdict: _Verdict) -> None:
    """The victim's host, before sessions are joined: it boots, or somebody asks for the report there."""
    host = one.hosts[one.victim]
    if one.kind == "host":
        host.reboot()
    if one.kind == "all" and layout.is_session(host.session):
        _on(host, "again", "report", str(host.session))
        left = host.left("again")
        if left:
            verdict.says(f"left by the dead host: {left}")


def _on(host: WholeHost, name: str, *words: str) -> str:
    """Run a command of ours on a host; what it said if it failed."""
    code = host.started([str(STEPSCOPE), *words], name, dict(os.environ)).wait()
    return host.out(name).read_text(errors="replace") if code else ""


def _join(one: Run, others: Sequence[WholeHost], verdict: _Verdict) -> None:
    """Join what there is, as the user would."""
    target = one.folder / f"job{layout.SUFFIX}"
    try:
        if one.gathered:
            _send_again(one, others, verdict)
            merge.gathered(str(one.folder / "gathered"), None, target)
        else:
            there = [host.session for host in one.hosts[:WORKERS] if layout.is_session(host.session)]
            merge.merge(there, target)
        merge.reported(target, color=False, width=120)
    except (StepscopeError, OSError) as error:
        verdict.says(f"no joint report: {error}")
        return
    verdict.joint = target
    verdict.report = json_report.decode((target / merge.REPORT).read_bytes())


def _send_again(one: Run, others: Sequence[WholeHost], verdict: _Verdict) -> None:
    """Do what the lines "not gathered" say, with a new server if the first was killed."""
    waiting = [host for host in others if "not gathered" in host.out("worker").read_text(errors="replace")]
    if not waiting:
        return
    if one.kind not in ("server", "link", "cut"):
        verdict.says(f"not gathered, and the server lived: {[host.host.index for host in waiting]}")
    if one.kind == "server":
        one.start_server()
    for host in waiting:
        said = _on(host, "send", "gather", "send", str(host.session), "--to", one.url, "--key-file", str(one.key))
        if said:
            verdict.says(f"sending later: {said[-300:]}")


def _session_of(host: WholeHost, verdict: _Verdict) -> Path:
    """A worker's session as whoever reads the joint report has it."""
    inside = verdict.joint / layout.MEMBERS / f"worker-{host.host.index}{layout.SUFFIX}" if verdict.joint else None
    return inside if inside is not None and inside.is_dir() else host.session


def _stored(session: Session) -> int:
    return sum(
        int((w.with_gaps().kind == Kind.SPAN).sum()) + int(gaps.counted(w.gaps, Kind.SPAN).calls.sum())
        for w in session.workers
    )


def _whole(host: WholeHost, rows: I64, verdict: _Verdict) -> bool:
    try:
        stored = _stored(store.open_session(_session_of(host, verdict)))
    except StepscopeError as error:
        return verdict.says(f"worker {host.host.index} does not open: {error}")
    if stored != len(rows):
        return verdict.says(f"worker {host.host.index}: {stored} spans of {len(rows)}")
    return True


def _opens(one: Run, verdict: _Verdict) -> bool:
    """Whether the joint session and the victim's own open."""
    host = one.hosts[one.victim]
    if not layout.is_session(host.session):
        return verdict.joint is not None
    try:
        manifest = bundle.open_session(host.session).manifest
    except StepscopeError as error:
        return verdict.says(f"the victim's session does not open: {error}")
    expected = "recovered" if one.kind in ("host", "all") else "finished"
    if manifest.state != expected and not _had_ended(one):
        return verdict.says(f"the victim's session is {manifest.state}")
    return verdict.joint is not None


def _had_ended(one: Run) -> bool:
    """Whether the victim's program had ended by itself before the kill."""
    return b"\ndone " in one.hosts[one.victim].out("worker").read_bytes()


def _lost_ms(one: Run, rows: I64, verdict: _Verdict) -> float:
    """What the victim's session lacks."""
    host = one.hosts[one.victim]
    if not layout.is_session(host.session) or not len(rows):
        return 0.0
    stored = _stored(store.open_session(host.session))
    if stored >= len(rows):
        return 0.0
    killed_ns = one.killed_ns + host.host.skew_s * 1_000_000_000
    lost_ms = max(0.0, float(killed_ns - int(rows[stored, 3])) / 1e6)
    if lost_ms > LOST_MS.get(one.kind, 0.0):
        verdict.says(f"the victim's session lacks {len(rows) - stored} of {len(rows)} spans, {lost_ms:.0f} ms")
    return lost_ms


def _named(one: Run, verdict: _Verdict) -> bool:
    """Whether the joint report says who died or is missing, and of nobody else."""
    report = verdict.report
    if report is None or report.cluster is None:
        return report is not None and verdict.says("the joint report has no members")
    name = f"worker {one.victim}"
    missing = set(report.cluster.missing)
    broken = [d.text for d in report.diagnostics if d.code == merge.BROKEN_OFF]
    innocent = [text for text in broken if not text.startswith(f"{name} ")] + sorted(missing - {name})
    if innocent:
        return verdict.says(f"named, and did not die: {innocent}")
    wanted = one.kind in ("worker", "host", "all") and not (_had_ended(one) and not missing)
    if bool(missing or broken) != wanted:
        return verdict.says(f"{name} is {'not ' if wanted else ''}named")
    if one.kind == "worker" and broken and "SIGKILL" not in broken[0]:
        return verdict.says(f"how {name} ended is not said: {broken}")
    return one.kind != "collector" or _restart_is_told(one, report, verdict)


def _restart_is_told(one: Run, report: Report, verdict: _Verdict) -> bool:
    starts = store.open_session(one.hosts[one.victim].session).manifest.sidecar_starts
    told = any("sidecar died" in d.text for d in report.diagnostics)
    return told == (starts > 1) or verdict.says(f"the collector's death is not told: {starts} starts")


def _clocks(one: Run, verdict: _Verdict) -> int:
    """Hosts whose clocks were compared with another's; the truth has to be within the bounds."""
    sessions = {}
    for host in one.hosts[:WORKERS]:
        try:
            sessions[host.host.index] = store.open_session(_session_of(host, verdict))
        except StepscopeError:
            continue
    try:
        model = session_links.model_of(list(sessions.values())) if sessions else None
    except StepscopeError as error:
        verdict.says(f"clocks: {error}")
        return 0
    if model is None:
        return 0
    skews = {session_links.domain(s): one.hosts[index].host.skew_s for index, s in sessions.items()}
    origin = next(s for s in sessions.values() if session_links.domain(s) == model.reference).manifest
    at = np.linspace(origin.origin_monotonic_ns, origin.origin_monotonic_ns + max(origin.ended_ns, 1), MOMENTS)
    compared = 0
    for domain, clock in model.clocks.items():
        if domain in skews and domain != model.reference:
            truth = (skews[domain] - skews[model.reference]) * 1e9
            if bool((np.abs(clock.offset(at) - truth) > clock.bound(at)).any()):
                verdict.says(f"the truth is outside of the bounds of host {skews[domain]}")
            compared += 1
    return compared


def _said(one: Run, verdict: _Verdict) -> Iterator[str]:
    """What the user reads of it."""
    if verdict.report is not None:
        yield from (f"{d.code} {d.text[:120]}" for d in verdict.report.diagnostics if d.code in TOLD)
    for host in one.hosts[:WORKERS]:
        file = host.out("worker")
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        yield from (f"{host.host.index}: {line[:120]}" for line in lines if "not gathered" in line)
        yield from (f"{host.host.index}: {line[:160]}" for line in lines if line.startswith("stepscope: "))
