"""Names of parts: session, content and version in one, so that sending again changes nothing, and each is read once.

``fleet/2026-11-30/ID-HASH-v1.parquet``: the day on which the job began (UTC), the session, the begin of the SHA-256 of
the file's bytes, the version of the format. ``sessions.gathering`` has folders and stores for names of this form.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = "fleet"
HASH_DIGITS = 16
_NAME = re.compile(
    rf"{ROOT}/(?P<day>\d{{4}}-\d\d-\d\d)/(?P<session>[0-9A-Za-z_]{{1,64}})"
    rf"-(?P<hash>[0-9a-f]{{{HASH_DIGITS}}})-v(?P<version>[1-9]\d{{0,3}})\.parquet"
)


class PartName(Struct, frozen=True, order=True):
    """A name in its components. Of one session's, the greatest is the newest version's."""

    session: str
    version: int
    hash: str
    day: str

    @property
    def path(self) -> str:
        """The name in a folder or store."""
        return f"{ROOT}/{self.day}/{self.session}-{self.hash}-v{self.version}.parquet"

    def is_of(self, data: bytes) -> bool:
        """Whether these are the bytes that were named so."""
        return digest(data) == self.hash


def digest(data: bytes) -> str:
    """What stands in a name for the content."""
    return hashlib.sha256(data).hexdigest()[:HASH_DIGITS]


def parsed(path: str) -> PartName | None:
    """The name in a path below a folder or store; None: no part."""
    found = _NAME.fullmatch(path)
    if found is None:
        return None
    return PartName(session=found["session"], version=int(found["version"]), hash=found["hash"], day=found["day"])


def chosen(paths: Iterable[str], since: str = "", until: str = "") -> tuple[list[PartName], int]:
    """One part for each session, in the order of names; and how many others of the same sessions there are.

    Which of several is the same whatever order they are listed in. ``since``, ``until``: first and last day, ISO.
    """
    best: dict[str, PartName] = {}
    others = 0
    for name in filter(None, map(parsed, paths)):
        if (since and name.day < since) or (until and name.day > until):
            continue
        known = best.get(name.session)
        others += known is not None
        best[name.session] = name if known is None else max(known, name)
    return sorted(best.values()), others
