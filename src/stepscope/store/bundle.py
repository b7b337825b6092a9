"""One file of a session directory, and back: a zip file whose entries are stored, not compressed.

Parquet is compressed already, and stored entries can be read in place. An entry ``DIGEST`` comes first and holds
the SHA-256 of every other one. A packed file is hostile until checked: names may not leave the session, sizes and
counts are bounded, what is compressed or linked is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from stepscope.errors import SessionError
from stepscope.store import layout

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

DIGEST = "DIGEST"
MAX_ENTRIES = 200_000
MAX_FILE_BYTES = 4 << 30
MAX_TOTAL_BYTES = 64 << 30
_COPY_BYTES = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NOT_PORTABLE = {"derived"}


class Files(Protocol):
    """The files of a session, wherever they lie. Names are relative, with slashes."""

    where: str

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a file of at most ``limit``."""

    def names(self, folder: str) -> list[str]:
        """The file names in a folder; none if there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """The folder names in a folder."""


class DirectoryFiles:
    """The files of a session directory. Links are not followed out of it."""

    def __init__(self, root: Path) -> None:
        """Files below ``root``."""
        self.root = root
        self.where = str(root)

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a regular file of at most ``limit``."""
        path = self.root / name
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise ValueError("not a regular file")
        if info.st_size > limit:
            raise ValueError(f"{info.st_size} bytes; at most {limit} are read")
        return path.read_bytes()

    def names(self, folder: str) -> list[str]:
        """The file names in a folder."""
        path = self.root / folder
        return [p.name for p in path.iterdir() if p.is_file()] if path.is_dir() else []

    def folders(self, folder: str) -> list[str]:
        """The folder names in a folder."""
        path = self.root / folder
        return [p.name for p in path.iterdir() if p.is_dir()] if path.is_dir() else []


class PackedFiles:
    """The files of a packed session, read in place."""

    def __init__(self, path: Path) -> None:
        """Open and check the packed file at ``path``.

        Raises:
            SessionError: it is no packed session, or one that is not safe to read.
        """
        self.where = str(path)
        self._zip, self._entries = _open_checked(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of an entry of at most ``limit``."""
        entry = self._entries.get(name)
        if entry is None:
            raise FileNotFoundError(name)
        if entry.file_size > limit:
            raise ValueError(f"{entry.file_size} bytes; at most {limit} are read")
        try:
            return self._zip.read(entry)
        except (zipfile.BadZipFile, EOFError) as error:
            raise ValueError(str(error)) from error

    def names(self, folder: str) -> list[str]:
        """The names of entries directly in a folder."""
        prefix = folder + "/"
        return [n[len(prefix) :] for n in self._entries if n.startswith(prefix) and "/" not in n[len(prefix) :]]

    def folders(self, folder: str) -> list[str]:
        """The names of folders that have entries."""
        prefix = folder + "/"
        found = (n[len(prefix) :].split("/", 1) for n in self._entries if n.startswith(prefix))
        return sorted({parts[0] for parts in found if len(parts) > 1})


def _open_checked(path: Path) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise SessionError(f"{path}: no packed session ({error}); expected what `stepscope pack` writes") from error
    try:
        entries = _checked_entries(path, archive)
    except SessionError:
        archive.close()
        raise
    return archive, entries


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise SessionError(f"{path}: {len(infos)} entries; at most {MAX_ENTRIES} are read")
    entries: dict[str, zipfile.ZipInfo] = {}
    total = 0
    size = path.stat().st_size
    for info in infos:
        name = info.filename
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or str(pure) != name:
            raise SessionError(f"{path}: the entry {name!r} leaves the session; nothing was read")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise SessionError(f"{path}: the entry {name!r} is no regular file; nothing was read")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise SessionError(f"{path}: the entry {name!r} is compressed or encrypted; expected a stored one")
        if info.file_size != info.compress_size or info.file_size > min(MAX_FILE_BYTES, size):
            raise SessionError(f"{path}: the entry {name!r} claims {info.file_size} bytes; the file has {size}")
        if name in entries:
            raise SessionError(f"{path}: two entries are named {name!r}; nothing was read")
        total += info.file_size
        entries[name] = info
    if total > min(MAX_TOTAL_BYTES, size):
        raise SessionError(f"{path}: its entries claim {total} bytes; the file has {size}")
    if layout.MANIFEST not in entries:
        raise SessionError(f"{path}: no {layout.MANIFEST} in it; expected what `stepscope pack` writes")
    return entries


def pack(session: Path, target: Path) -> int:
    """Write the session directory as one file; returns its size in bytes. Caches are left out.

    Raises:
        SessionError: there is no session, or the target exists.
        OSError: no space, or no rights.
    """
    if not layout.is_session(session):
        raise SessionError(f"{session}: no session; expected a directory with a {layout.MANIFEST}")
    names = _portable_names(session)
    digests = {name: _digest_of(session / name) for name in names}
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_entry(DIGEST), json.dumps({"sha256": digests}, indent=0))
            for name in names:
                with (session / name).open("rb") as source, archive.open(_entry(name), "w", force_zip64=True) as sink:
                    shutil.copyfileobj(source, sink, _COPY_BYTES)
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise SessionError(f"{target} exists already; choose another name with --output") from None
        except OSError:  # a file system without links
            if target.exists():
                raise SessionError(f"{target} exists already; choose another name with --output") from None
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target.stat().st_size


def _portable_names(session: Path) -> list[str]:
    names = []
    for folder, folders, files in os.walk(session):
        relative = Path(folder).relative_to(session)
        if relative == Path():
            folders[:] = [f for f in folders if f not in _NOT_PORTABLE]
        for file in files:
            path = Path(folder) / file
            if not file.startswith(".") and path.is_file() and not path.is_symlink():
                names.append((relative / file).as_posix())
    return sorted(names)


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while data := stream.read(_COPY_BYTES):
            digest.update(data)
    return digest.hexdigest()


def unpack(packed: Path, target: Path) -> Path:
    """Write a packed session as a directory; returns it. Every file is checked against its digest.

    Raises:
        SessionError: no packed session, a hostile one, a damaged one, or the target exists.
        OSError: no space, or no rights.
    """
    archive, entries = _open_checked(packed)
    with archive:
        digests = _stored_digests(packed, archive, entries)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        if target.exists():
            raise SessionError(f"{target} exists already; choose another name with --output")
        temporary.mkdir()
        try:
            for name, info in entries.items():
                if name != DIGEST:
                    _extract(packed, archive, info, temporary / name, digests[name])
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return target


def _stored_digests(packed: Path, archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, str]:
    try:
        digests = json.loads(archive.read(DIGEST))["sha256"]
        stored = {str(name): str(value) for name, value in digests.items()}
    except (KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise SessionError(f"{packed}: no digests in it; expected what `stepscope pack` writes") from error
    if stored.keys() != entries.keys() - {DIGEST}:
        raise SessionError(f"{packed}: its list of digests does not match its entries; it was altered or cut")
    return stored


def _extract(packed: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, expected: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with archive.open(info) as source, path.open("xb") as sink:
            while data := source.read(_COPY_BYTES):
                digest.update(data)
                sink.write(data)
    except (zipfile.BadZipFile, EOFError) as error:
        raise SessionError(f"{packed}: the entry {info.filename!r} is damaged ({error})") from error
    if digest.hexdigest() != expected:
        raise SessionError(f"{packed}: the entry {info.filename!r} does not match its digest; it was altered")
