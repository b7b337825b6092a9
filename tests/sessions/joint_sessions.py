"""Stored sessions of members with a joint capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from tests.sessions.member_sessions import change

from stepscope.derive.view import SessionView
from stepscope.model.session.session import CaptureInfo
from stepscope.sessions.bundle import open_session
from stepscope.store.manifests import read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

FIRST, COUNT = 20, 5
MS = 1_000_000


def ends_of(session: Path) -> npt.NDArray[np.int64]:
    """When the calls of its steps ended."""
    steps = SessionView(open_session(session)).steps
    assert steps is not None
    return steps.call_ends


def capture(session: Path, ends: npt.NDArray[np.int64], **fields: object) -> None:
    """Give a session a joint capture with these ends."""
    (worker,) = read_manifest(session).workers
    info = CaptureInfo(id=f"c-{session.stem}", joint="j", worker=worker.key, outcome="done", steps=len(ends) - 1)
    change(session, captures=(msgspec.structs.replace(info, ends_ns=tuple(ends.tolist()), **fields),))
