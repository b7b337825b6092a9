"""Where the parts of a fleet can be read: in their folder, or in the user's cache, fetched once from elsewhere."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.fleet import schema
from stepscope.fleet.part_names import PartName, chosen
from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.tables.errors import TargetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepscope.sessions.gathering.target import Target

AT_ONCE = 16
"""Parts that are fetched at the same time: a store answers each after a round trip."""


class FoundParts(Struct, kw_only=True):
    """One readable part for each session."""

    folder: Path
    names: list[PartName]
    others: int
    """Further parts of the same sessions."""
    damaged: list[str] = field(default_factory=list)

    @property
    def newer(self) -> int:
        """Parts of a later version of the format."""
        return sum(name.version > schema.VERSION for name in self.names)

    def paths(self) -> Mapping[int, Sequence[str]]:
        """Files by version."""
        found: dict[int, list[str]] = {}
        for name in self.names:
            found.setdefault(name.version, []).append(str(self.folder / name.path))
        return found

    def leave_out_damaged(self) -> bool:
        """Compare each part with its name, and leave out those that differ; whether there were any."""
        whole = []
        for name in self.names:
            try:
                intact = name.is_of((self.folder / name.path).read_bytes())
            except OSError:
                intact = False
            if intact:
                whole.append(name)
            else:
                self.damaged.append(name.path)
        found = len(whole) < len(self.names)
        self.names = whole
        return found


def find(place: Target, url: str, since: str = "", until: str = "") -> FoundParts:
    """The parts at a place, of jobs that began on these days.

    Raises:
        TargetError: the place cannot be read.
        UsageError: it holds no part.
    """
    listed = place.names()
    names, others = chosen(listed, since, until)
    if not names:
        when = " of these days" if since or until else ""
        raise UsageError(
            f"{url} holds no part of a session{when}; parts come by: stepscope run --fleet {url} train.py, "
            f"or stepscope fleet add SESSION --to {url}"
        )
    if isinstance(place, FolderTarget):
        return FoundParts(folder=place.folder, names=names, others=others)
    cache = FolderTarget(_cache_folder(url))
    found = FoundParts(folder=cache.folder, names=names, others=others)
    _fetch(place, cache, found)
    _forget(cache, listed)
    return found


def _cache_folder(url: str) -> Path:
    """Source: XDG Base Directory Specification, XDG_CACHE_HOME."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(cache) if Path(cache).is_absolute() else Path("~/.cache").expanduser()
    return root / "stepscope" / "fleet" / hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _fetch(place: Target, cache: FolderTarget, found: FoundParts) -> None:
    """Fetch what is not in the cache; a part that is not what its name says is left out."""
    missing = [name for name in found.names if not (cache.folder / name.path).exists()]

    def fetch(name: PartName) -> bool:
        data = place.get(name.path)
        if name.is_of(data):
            cache.put(name.path, data)
            return True
        return False

    with ThreadPoolExecutor(AT_ONCE) as pool:
        arrived = list(pool.map(fetch, missing))
    damaged = {name for name, whole in zip(missing, arrived, strict=True) if not whole}
    found.damaged += sorted(name.path for name in damaged)
    found.names = [name for name in found.names if name not in damaged]


def _forget(cache: FolderTarget, listed: Iterable[str]) -> None:
    """Remove from the cache what was deleted at the place: somebody wanted it gone."""
    if cache.folder.is_dir():
        for name in set(cache.names()) - set(listed):
            (cache.folder / name).unlink(missing_ok=True)


def remove(place: Target, names: Sequence[PartName]) -> int:
    """Delete parts from a folder; return how many.

    Raises:
        UsageError: the place is no folder.
        TargetError: one cannot be deleted.
    """
    if not isinstance(place, FolderTarget):
        raise UsageError("parts are deleted in folders only; a store deletes by its own command (docs/fleet.md)")
    for name in names:
        try:
            (place.folder / name.path).unlink(missing_ok=True)
        except OSError as error:
            raise TargetError(f"{place.folder / name.path}: {error.strerror or error}") from error
    return len(names)
