"""Stored sessions of a job's members, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from tests.detectors.member_jobs import MemberJob, synchronous
from tests.web.recorded import write

from stepscope.store.manifests import read_manifest
from stepscope.tables import layout


def sessions(folder: Path, own_ms: Sequence[Sequence[float]], samples: Sequence[int] = ()) -> list[Path]:
    """The sessions of members, each by itself."""
    job = synchronous(own_ms, samples)
    assert isinstance(job, MemberJob)
    found = []
    for index, one in enumerate([job, *job.others]):
        alone = replace(one, others=[], ended_ns=job.ended_ns)
        alone.framework()
        found.append(write(alone.session(), folder / f"w{index}.stepscope").path)
    return found


def change(session: Path, **fields: object) -> None:
    """Change a manifest."""
    manifest = msgspec.structs.replace(read_manifest(session), **fields)
    (session / layout.MANIFEST).write_bytes(msgspec.json.encode(manifest))


def changed_member(session: Path, **fields: object) -> None:
    """Change what the process of a session is."""
    (worker,) = read_manifest(session).workers
    assert worker.member is not None
    info = msgspec.structs.replace(worker.member, **fields)
    change(session, workers=(msgspec.structs.replace(worker, member=info),))
