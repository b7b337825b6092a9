"""Known defects of TensorFlow and Keras whose calls can be seen in source code, of those in ``tables.advisories``."""

from __future__ import annotations

from msgspec import Struct

from stepscope.tables import advisories

NEWEST = (99, 0)


class Advisory(Struct, frozen=True, kw_only=True):
    """A known defect."""

    calls: frozenset[str]
    """Qualified names whose repeated call shows the defect."""
    first: tuple[int, int]
    fixed: tuple[int, int]
    what: str
    """Predicate of the message, after the name of the call."""
    remedy: str
    source: str


def _pair(version: str, default: tuple[int, int]) -> tuple[int, int]:
    major, minor, *_ = (*advisories.parsed(version), *default)
    return (major, minor) if version else default


ALL: tuple[Advisory, ...] = tuple(
    Advisory(
        calls=frozenset(one.calls),
        first=_pair(one.packages["tensorflow"][0], (0, 0)),
        fixed=_pair(one.packages["tensorflow"][1], NEWEST),
        what=one.what,
        remedy=one.remedy,
        source=one.source,
    )
    for one in advisories.everything()
    if one.calls and "tensorflow" in one.packages
)
