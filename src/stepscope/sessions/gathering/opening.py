"""The place for parts that an address names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from stepscope.clocks import settings
from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.sessions.gathering.server_target import ServerTarget
from stepscope.sessions.gathering.store_target import StoreTarget
from stepscope.sessions.gathering.target import HTTP, check, parsed

if TYPE_CHECKING:
    from stepscope.sessions.gathering.target import Target


def opened(url: str, key_file: Path | None, ca_file: Path | None = None) -> Target:
    """The place at an address; nothing is connected yet.

    Raises:
        UsageError: as ``check``.
        TargetError: no such store is known.
    """
    check(url, key_file, ca_file)
    address = parsed(url)
    if address.scheme in HTTP and key_file is not None:
        return ServerTarget(address, settings.key_of(key_file), ca_file)
    if address.scheme in {"", "file"}:
        return FolderTarget(Path(unquote(address.path) if address.scheme else url))
    return StoreTarget(url)
