"""Takes the sessions of the newest job from where they were gathered, each checked, as packed files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from stepscope.sessions.gathering.gathered import COMPLETE, GatheredSession
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.sessions.gathering.target import Target

NEAR_NS = 60_000_000_000
"""By how much the wall clocks of two hosts of a run may differ."""


class FetchedSessions(Struct, frozen=True, kw_only=True):
    """Packed sessions of one run of a job."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...]
    """Lines for the user: what is not whole, and what was left out."""


class _Run(Struct):
    """Sessions of a job that overlap in time."""

    began_ns: int
    ended_ns: int
    stems: dict[str, GatheredSession] = field(default_factory=dict)


def fetch(place: Target, folder: Path) -> FetchedSessions:
    """Take the sessions of the run that ended last.

    Raises:
        SessionError: there is none, or one is not what was sent.
        TargetError: the place cannot be read.
    """
    whole, broken = _sessions(place)
    runs = _runs(whole)
    if not runs:
        raise SessionError(f"no whole session was gathered there{f' ({broken[0]})' if broken else ''}")
    newest = max(runs, key=lambda run: run.ended_ns)
    jobs = {about.job for about in newest.stems.values()}
    notes = [f"{stem} was not sent whole" for stem in broken if stem.partition("/")[0] in jobs]
    if len(runs) > 1:
        rest = sum(len(run.stems) for run in runs) - len(newest.stems)
        notes.append(f"{rest} sessions of {len(runs) - 1} earlier runs, or of other jobs, are left out")
    paths = [_taken(place, stem, about, folder) for stem, about in sorted(newest.stems.items())]
    return FetchedSessions(paths=tuple(paths), notes=tuple(notes))


def _sessions(place: Target) -> tuple[dict[str, GatheredSession], list[str]]:
    """The whole sessions by JOB/SESSION, and those that are not whole."""
    folders: dict[str, set[str]] = {}
    for name in place.names():
        stem, _, part = name.rpartition("/")
        folders.setdefault(stem, set()).add(part)
    whole: dict[str, GatheredSession] = {}
    broken: list[str] = []
    for stem, parts in folders.items():
        if COMPLETE not in parts:
            broken.append(stem)
            continue
        try:
            about = msgspec.json.decode(place.get(f"{stem}/{COMPLETE}"), type=GatheredSession)
        except msgspec.DecodeError:
            broken.append(stem)
            continue
        if all(part.name in parts for part in about.parts):
            whole[stem] = about
        else:
            broken.append(stem)
    return whole, broken


def _runs(sessions: dict[str, GatheredSession]) -> list[_Run]:
    """The sessions by job and time."""
    found: list[_Run] = []
    for stem, about in sorted(sessions.items(), key=lambda pair: (pair[1].job, pair[1].started_unix_ns)):
        end_ns = about.started_unix_ns + about.ended_ns
        last = found[-1] if found else None
        same = last is not None and next(iter(last.stems.values())).job == about.job
        if last is None or not same or about.started_unix_ns > last.ended_ns + NEAR_NS:
            last = _Run(about.started_unix_ns, end_ns)
            found.append(last)
        last.stems[stem] = about
        last.ended_ns = max(last.ended_ns, end_ns)
    return found


def _taken(place: Target, stem: str, about: GatheredSession, folder: Path) -> Path:
    """A session as a packed file.

    Raises:
        SessionError: it is not what was sent.
    """
    path = folder / f"{stem.replace('/', '-')}{layout.PACKED_SUFFIX}"
    whole = hashlib.sha256()
    with path.open("wb") as stream:
        for part in about.parts:
            data = place.get(f"{stem}/{part.name}")
            if hashlib.sha256(data).hexdigest() != part.sha256:
                raise SessionError(f"{stem}/{part.name} is not what was sent; is it being sent again?")
            whole.update(data)
            stream.write(data)
    if whole.hexdigest() != about.sha256:
        raise SessionError(f"{stem} is not what was sent")
    return path
