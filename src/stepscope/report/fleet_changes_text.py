"""Changes of many sessions for a terminal. Texts of sessions are untrusted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stepscope.report.words import printable
from stepscope.tables.units import format_ns, format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.model.api.fleet import FleetAnswer, FleetChange, FleetFollowed, FleetSlowHost

_SHOWN_ALSO = 3
_SHOWN_JOBS = 10
_COMMIT = 10
"""Digits of a commit that are shown."""
_KINDS = {"rose": "costs more", "fell": "costs less", "moved": "moved", "went-away": "went away"}
_MEASURES = {
    "wall": "a step",
    "cpu": "CPU time a step",
    "threads": "thread time a step",
    "ops": "op time a step",
    "saved": "a step by its remedy",
}


def lines(answer: FleetAnswer) -> Iterator[str]:
    """Each change in a few lines, then what was followed and what would have been seen."""
    if answer.by == "host":
        yield from _hosts(answer)
        return
    for one in answer.changes:
        yield from _change(one)
    since = f" since {printable(answer.since)}" if answer.since else ""
    if not answer.changes and any(one.tests for one in answer.followed):
        yield f"no change{since}"
    for job in answer.followed[:_SHOWN_JOBS]:
        yield _followed(job, since)
    if len(answer.followed) > _SHOWN_JOBS:
        more = format_number_of(str(len(answer.followed) - _SHOWN_JOBS), "further jobs")
        yield f"and {more}, with --format json"


def _change(one: FleetChange) -> Iterator[str]:
    yield f"{_KINDS[one.kind]:<10}  {_size(one):<24}  {_job(one)}: {printable(_what(one))}"
    share = ""
    if one.before_ratio is not None and one.after_ratio is not None:
        share = f", {format_ratio(one.before_ratio)} -> {format_ratio(one.after_ratio)} of it"
    more = f" · {format_ns(abs(one.hours) * 3.6e12)} {'more' if one.hours > 0 else 'less'} in all"
    hours = "" if one.kind == "moved" else more
    yield f"    {format_ns(one.before_ns)} -> {format_ns(one.after_ns)} {_MEASURES[one.measure]}{share}{hours}"
    commit = ""
    if one.commit_after and one.commit_after != one.commit_before:
        commit = f", commit {printable(one.commit_before)[:_COMMIT] or '?'} -> {printable(one.commit_after)[:_COMMIT]}"
    ended = "" if one.ended_unix_s is None else f", until {_time(one.ended_unix_s)}"
    hosts = ", on other hosts than before" if one.other_hosts else ""
    counts = f"{one.sessions_before} sessions before, {one.sessions_after} after"
    yield f"    from {_time(one.started_unix_s)} (session {printable(one.session)}{commit}){ended}{hosts} · {counts}"
    if one.also:
        more = f" and {len(one.also) - _SHOWN_ALSO} more" if len(one.also) > _SHOWN_ALSO else ""
        yield f"    by as much, then: {'; '.join(map(printable, one.also[:_SHOWN_ALSO]))}{more}"


_RESOURCES = {"cpu": "its CPU", "wait": "it waits, for a CPU, input or a network", "": "not known"}


def _hosts(answer: FleetAnswer) -> Iterator[str]:
    for one in answer.slow_hosts:
        size = f"{_percent(one.ratio)} ({_percent(one.low)} to {_percent(one.high)})"
        yield f"slower      {size}  host {printable(one.host)}, {_job(one)}: {_RESOURCES[one.resource]}"
        cpu = "" if one.cpu_ratio is None else f", CPU time {_percent(one.cpu_ratio)}"
        counts = f"{one.sessions} sessions there, {one.other_sessions} elsewhere"
        yield f"    a step {format_ns(one.step_ns)}, elsewhere {format_ns(one.other_step_ns)}{cpu} · {counts}"
    if not answer.compared_hosts:
        yield "cannot tell; expected a job with steps in 5 sessions or more, there and on other hosts"
    elif not answer.slow_hosts:
        yield f"no host is slower, of {answer.compared_hosts} compared"


def _percent(ratio: float) -> str:
    return f"{100 * ratio - 100:+.1f} %"


def _size(one: FleetChange) -> str:
    if one.ratio is None or one.low is None or one.high is None:
        return "new" if one.after_ns else "gone"
    return f"{100 * one.ratio - 100:+.1f} % ({100 * one.low - 100:.1f} to {100 * one.high - 100:.1f})"


def _job(one: FleetChange | FleetFollowed | FleetSlowHost) -> str:
    return printable(" ".join(filter(None, (one.project, one.program)))) or "not known"


def _what(one: FleetChange) -> str:
    if one.of in {"step", "cpu"}:
        return "the step" if one.of == "step" else "CPU time of the step"
    where = f"{one.file}:{one.line}" if one.line else one.file
    place = " ".join(filter(None, (one.name, one.words, where, one.function)))
    return f"{place} -> {one.to}" if one.to else place


def _followed(job: FleetFollowed, since: str) -> str:
    new = f", {job.new}{since}" if since else ""
    head = f"{_job(job)}: {format_number_of(str(job.sessions), 'sessions')}{new}"
    if not job.tests:
        return f"{head}: cannot tell; expected 5 or more before and after a change, with steps or lines"
    seen = [
        f"{words} {100 * value:.1f} %"
        for words, value in (
            ("the step", job.step_smallest),
            ("its CPU time", job.cpu_smallest),
            ("places of 10 % or more", job.large_smallest),
            ("of 1 to 10 %", job.middle_smallest),
            ("of less", job.small_smallest),
        )
        if value is not None
    ]
    listed = ", ".join(seen) or "none of any size, with so few sessions"
    runs = f"; {job.of_runs} not claimed: other numbers of steps, and as much a run" if job.of_runs else ""
    return f"{head}, {job.tests} compared{runs}; would have been seen in nine of ten cases: {listed}"


def _time(unix_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(0, unix_s)))
