"""Which sessions belong to a side: sessions, packed sessions, folders of sessions, patterns of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.store import bundle
from stepscope.tables import layout
from stepscope.tables.errors import SessionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def sessions(given: Sequence[Path], side: str) -> tuple[Path, ...]:
    """The sessions that ``given`` names, each once, in order. ``side``: A or B, for messages.

    Raises:
        SessionError: a path does not exist, or is neither a session nor a folder that holds any.
    """
    found = [session for path in given for session in _of(path, side)]
    return tuple({path.resolve(): path for path in found}.values())


def check_apart(before: Sequence[Path], after: Sequence[Path]) -> None:
    """Refuse a session that is on both sides.

    Raises:
        UsageError: there is one.
    """
    both = {path.resolve() for path in before} & {path.resolve() for path in after}
    if both:
        raise UsageError(f"{min(both)} is on both sides; expected different sessions in A and B")


def _of(path: Path, side: str) -> list[Path]:
    if path.is_file() or (path.is_dir() and layout.is_session(path)):
        return [path]
    if path.is_dir():
        inside = sorted(child for child in path.iterdir() if _is_session(child))
        if inside:
            return inside
        raise SessionError(
            f"{side}: {path} holds no session; expected NAME{layout.SUFFIX} folders or packed files in it"
        )
    named = sorted(path.parent.glob(path.name)) if path.name else []
    matching = [match for match in named if match.is_dir() or _is_session(match)]  # not the logs that lie with them
    if not matching:
        raise SessionError(f"{side}: {path}: no such session; expected a session, a folder of sessions, or a pattern")
    return [session for match in matching for session in _of(match, side)]


def _is_session(path: Path) -> bool:
    packed = path.name.endswith(layout.PACKED_SUFFIX) and path.is_file()
    packed = packed or (path.suffix == layout.ZIP_SUFFIX and bundle.begins_as_packed(path))
    return packed or (path.is_dir() and layout.is_session(path))
