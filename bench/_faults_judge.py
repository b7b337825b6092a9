"""Compares a run under stepscope with the same fault without it, and reads what its report says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from _faults_data import Run
from _faults_table import FAULTS

if TYPE_CHECKING:
    from _faults_data import About, Ran
    from _faults_table import Fault


def differences(plain: Ran, ours: Ran, fault: Fault) -> list[str]:
    """In what the job ended differently, and what was left behind; empty: in nothing."""
    found = []
    if fault.exit_code and plain.code != ours.code:
        found.append(f"exit code {ours.code}, without {plain.code}")
    if plain.happened != ours.happened:
        found.append(f"the fault happened: {ours.happened}, without {plain.happened}")
    if plain.stdout != ours.stdout:
        found.append("output: " + _first_difference(plain.stdout, ours.stdout))
    both = sorted({*plain.files, *ours.files})
    changed = [name for name in both if plain.files.get(name) != ours.files.get(name)]
    found += [f"file {name}: {_kind(ours.files.get(name))}, without {_kind(plain.files.get(name))}" for name in changed]
    left = [text for text in ours.left if text.rpartition("/")[2] not in _waiting(ours)]
    found += [f"left: {text}" for text in left if _plain_name(text) not in map(_plain_name, plain.left)]
    found += [f"mount left: {point}" for point in ours.mounts]
    return found


def _waiting(ours: Ran) -> set[str]:
    """Names of run directories that stay on purpose: records wait there for room on the session's disk, as is said."""
    return set(re.findall(r"records are waiting in \S*/([^/;\s]+);", ours.stderr))


def _plain_name(text: str) -> str:
    """A name without its number, or the letters that tempfile draws."""
    return re.sub(r"[0-9]+", "N", re.sub(r"[a-z0-9_]{8}(?=\.\w+$|$)", "X", text))


def _first_difference(one: str, other: str) -> str:
    lines, others = one.splitlines(), other.splitlines()
    for number, (a, b) in enumerate(zip(lines, others, strict=False), 1):
        if a != b:
            return f"line {number} is {b[:120]!r}, without {a[:120]!r}"
    return f"{len(others)} lines, without {len(lines)}"


def _kind(about: About | None) -> str:
    return "not there" if about is None else f"{about.size} bytes, mode {about.mode:o}, {about.digest[:8]}"


def silent(plain: Ran, ours: Ran, fault: Fault) -> str:
    """Why the report does not say what happened; "": it does."""
    said = [line for session in ours.sessions for line in session.said]
    if says := fault.says.replace("CODE", str(plain.code)):
        if re.search(says, "\n".join([*said, ours.stderr])):
            return ""
        return f"{says!r} is nowhere; said: {said[:6]}, {ours.stderr[-300:]!r}"
    problems = [session.problem for session in ours.sessions if session.problem]
    if problems or not ours.sessions:
        return f"no report: {problems}, {ours.stderr[-300:]!r}"
    if not any(session.processes for session in ours.sessions) and not fault.unmeasured:
        return f"no process was measured: {said[:6]}"
    return ""


def unused(plain: Ran) -> bool:
    """Whether the run without stepscope shows that the program ended before its first line of output."""
    return not (plain.stdout or plain.happened or plain.reached or plain.files)


def judged(fault: str, program: str, number: int, plain: Ran, ours: Ran) -> Run:
    """The row that is kept."""
    about = FAULTS[fault]
    return Run(
        fault=fault,
        program=program,
        round=number,
        differences=differences(plain, ours, about),
        silent=silent(plain, ours, about),
        code=ours.code,
        said=[line for session in ours.sessions for line in session.said][:12],
        cpu_s=ours.cpu_s,
    )
