"""Where parts of sessions go: a shared folder, an object store, or a server of ``stepscope gather serve``.

Names of parts have three components, ``JOB/SESSION/PART``. To put a part that is there already is no error: it has the
same content, or replaces it.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from stepscope.clocks import settings
from stepscope.sessions.gathering import tls
from stepscope.tables.errors import TargetError, UsageError, install_command

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PART_BYTES = 8 << 20
"""Largest part."""
MAX_NAMES = 1_000_000
NAME = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z_.-]{0,119}(/[0-9A-Za-z_-][0-9A-Za-z_.-]{0,119}){2}")
"""Names of parts: nothing that leaves a folder, or is hidden in it."""
HTTP = frozenset({"http", "https"})


class RefusedError(TargetError):
    """The place does not take a part, or give one, and will not if it is asked again."""


class Target(Protocol):
    """A place for parts. Every method raises TargetError if the place does not do what it should."""

    def put(self, name: str, data: bytes) -> None:
        """Store a part, whole or not at all."""

    def get(self, name: str) -> bytes:
        """The content of a part."""

    def names(self) -> list[str]:
        """The names of all parts, sorted; other files there are left out."""


def check(url: str, key_file: Path | None, ca_file: Path | None = None) -> None:
    """Say before the job starts what could never be sent.

    Raises:
        UsageError: the address is none, the key is missing or cannot be used, the authorities cannot be read, or a
            package is not installed.
    """
    address = parsed(url)
    if ca_file is not None:
        if address.scheme != "https":
            raise UsageError(f"--ca-file with {url}; expected https://HOST:PORT")
        tls.context(ca_file)
    if address.scheme in HTTP:
        if key_file is None:
            raise UsageError(f"{url} without --key-file: the server takes parts only from who has its key")
        try:
            settings.key_of(key_file)
        except (OSError, ValueError) as error:
            raise UsageError(f"--key-file {key_file}: {error}") from error
        if not address.hostname or "@" in address.netloc:
            named = "a user" if address.hostname else "no host"
            raise UsageError(f"the address names {named}; expected {address.scheme}://HOST:PORT")
    elif address.scheme not in {"", "file"}:
        _check_store(url, address.scheme)


def authorities(url: str, ca_file: Path | None) -> Path | None:
    """The authorities for one of several addresses: those that are no server with a certificate have none."""
    return ca_file if url.lower().startswith("https:") else None


def _check_store(url: str, scheme: str) -> None:
    """Raise UsageError unless the package for a store is installed; nothing of it is loaded."""
    if find_spec("fsspec") is None:
        raise UsageError(f"{url}: fsspec is not installed; run: {install_command('fleet')}")
    registry = import_module("fsspec.registry")
    known = registry.known_implementations.get(scheme)
    if known is None and scheme not in registry.registry:
        raise UsageError(f"{url}: fsspec knows no {scheme}://; expected a folder, https://HOST:PORT, s3://, gs:// ...")
    package = known["class"].partition(".")[0] if known is not None else "fsspec"
    if find_spec(package) is None:
        raise UsageError(f"{url}: {package} is not installed; run: pip install {package}")


def checked(name: str) -> str:
    """A name of a part.

    Raises:
        TargetError: it is none.
    """
    if not NAME.fullmatch(name):
        raise TargetError(f"{name!r:.80} is no name of a part; expected JOB/SESSION/PART")
    return name


def parsed(url: str) -> SplitResult:
    """The parts of an address; without a scheme, a folder.

    Raises:
        UsageError: it is none.
    """
    try:
        address = urlsplit(url) if "://" in url else urlsplit("")
        _ = address.port, (address.hostname or "").encode("idna")
    except ValueError as error:
        raise UsageError(
            f"{url}: {error}; expected a folder, file://FOLDER, http://HOST:PORT or a store's URL"
        ) from error
    if address.scheme == "file" and address.netloc not in {"", "localhost"}:
        raise UsageError(f"{url} names a host; expected file:///FOLDER")
    return address
