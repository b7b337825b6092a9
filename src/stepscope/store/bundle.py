"""Packing a session directory into one file, and unpacking it: a zip file whose entries are stored, not compressed.

Parquet is already compressed, and stored entries can be read in place. An entry ``DIGEST`` comes first and holds the
SHA-256 of every other one; each entry is checked against it when it is read, so that the time to open depends only on
what is requested. A packed file is hostile until checked: names may not leave the session, sizes and counts are
bounded, compressed and linked entries are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Protocol

from stepscope.tables import layout, nesting
from stepscope.tables.errors import DamagedError, SessionError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

DIGEST = "DIGEST"
MAX_ENTRIES = 200_000
MAX_FILE_BYTES = 4 << 30
MAX_TOTAL_BYTES = 64 << 30
MAX_DIGEST_BYTES = 64 << 20
_COPY_BYTES = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NOT_PORTABLE = {"derived"}
_MAGIC = b"PK\x03\x04"
_NAME_AT = 30
"""Bytes before the name in the header of a zip file's entry (APPNOTE.TXT 4.3.7)."""
_UNREADABLE = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error, struct.error)
"""Errors that ``zipfile`` raises for altered bytes."""


class Files(Protocol):
    """The files of a session, wherever they are. Names are relative, with slashes."""

    where: str
    """Path of the directory or of the packed file."""
    inside: str
    """Folder in it that the names are relative to, "" or with a slash at its end."""

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a file of at most ``limit``."""

    def names(self, folder: str) -> list[str]:
        """The file names in a folder; none if there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """The folder names in a folder."""


class FilesInside:
    """The files in a folder of others: a member of a joint session."""

    def __init__(self, files: Files, folder: str) -> None:
        """``folder``: relative, without a slash at its end."""
        self._files = files
        self.where = files.where
        self.inside = f"{files.inside}{folder}/"
        self._folder = folder

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a file of at most ``limit``."""
        return self._files.read(f"{self._folder}/{name}", limit)

    def names(self, folder: str) -> list[str]:
        """The file names in a folder."""
        return self._files.names(f"{self._folder}/{folder}" if folder else self._folder)

    def folders(self, folder: str) -> list[str]:
        """The folder names in a folder."""
        return self._files.folders(f"{self._folder}/{folder}" if folder else self._folder)


class DirectoryFiles:
    """The files of a session directory. Links in it, to files or folders, are not followed."""

    inside = ""

    def __init__(self, root: Path) -> None:
        """Use the files below ``root``."""
        self.root = root
        self.where = str(root)

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a regular file of at most ``limit``."""
        path = self.root / name
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode) or not self._holds(path.parent):
            raise ValueError("not a regular file")
        if info.st_size > limit:
            raise ValueError(f"{info.st_size} bytes; at most {limit} are read")
        return path.read_bytes()

    def names(self, folder: str) -> list[str]:
        """The file names in a folder."""
        path = self.root / folder
        return [p.name for p in path.iterdir() if p.is_file()] if self._holds(path) else []

    def folders(self, folder: str) -> list[str]:
        """The folder names in a folder."""
        path = self.root / folder
        return [p.name for p in path.iterdir() if p.is_dir()] if self._holds(path) else []

    def _holds(self, folder: Path) -> bool:
        """Whether a folder is one of the session's own: neither it nor one above it, up to ``root``, is a link."""
        parts = [folder, *folder.parents]
        return folder.is_dir() and not any(part.is_symlink() for part in parts[: parts.index(self.root)])


class PackedFiles:
    """The files of a packed session, read in place."""

    inside = ""

    def __init__(self, path: Path) -> None:
        """Open the packed file at ``path``; no entry is read yet.

        Raises:
            SessionError: it is not a packed session, or is unsafe to read.
        """
        self.where = str(path)
        self._path = path
        self._zip, self._entries = _open_checked(path)
        self._digests: dict[str, str] | None = None
        self._whole: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of an entry of at most ``limit``, as they were packed.

        Raises:
            DamagedError: the bytes were altered.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise FileNotFoundError(name)
        if entry.file_size > limit:
            raise ValueError(f"{entry.file_size} bytes; at most {limit} are read")
        expected = self._expected(name)
        try:
            data = self._zip.read(entry)
        except _UNREADABLE as error:
            raise _unreadable(self._path, name, error) from error
        if name not in self._whole:
            _compare(self._path, name, hashlib.sha256(data).hexdigest(), expected)
            self._whole.add(name)
        return data

    def check(self) -> None:
        """Read every entry and compare it with its digest. Cost: the size of the file.

        Raises:
            DamagedError: the bytes of an entry were altered.
        """
        for name, entry in self._entries.items():
            if name != DIGEST:
                _copy(self._path, self._zip, entry, None, self._expected(name))

    def _expected(self, name: str) -> str:
        if self._digests is None:
            self._digests = _stored_digests(self._path, self._zip, self._entries)
        return self._digests[name]

    def names(self, folder: str) -> list[str]:
        """The names of entries directly in a folder."""
        prefix = folder + "/"
        return [n[len(prefix) :] for n in self._entries if n.startswith(prefix) and "/" not in n[len(prefix) :]]

    def folders(self, folder: str) -> list[str]:
        """The names of folders that have entries."""
        prefix = folder + "/"
        found = (n[len(prefix) :].split("/", 1) for n in self._entries if n.startswith(prefix))
        return sorted({parts[0] for parts in found if len(parts) > 1})


def is_packed(path: Path) -> bool:
    """Whether a file is meant to be a packed session, by its name, its beginning or its end."""
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(_MAGIC)) == _MAGIC
        return begins or path.name.endswith(layout.PACKED_SUFFIX) or zipfile.is_zipfile(path)
    except OSError:
        return False


def begins_as_packed(path: Path) -> bool:
    """Whether a file begins as ``pack`` writes it: a zip file whose first entry is the digests. Reads 36 bytes."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_NAME_AT + len(DIGEST))
    except OSError:
        return False
    return head.startswith(_MAGIC) and head[_NAME_AT:] == DIGEST.encode()


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(f"damaged: {path}: {what}; copy it again from its origin, or pack the session again")


def _unreadable(path: Path, name: str, error: Exception) -> DamagedError:
    why = "its CRC-32 is another than was packed" if str(error).startswith("Bad CRC-32") else str(error)
    return _damaged(path, f"the entry {name!r} cannot be read: {why}")


def _compare(path: Path, name: str, got: str, expected: str) -> None:
    if got != expected:
        text = f"the entry {name!r} was altered: its SHA-256 is {got[:16]}..., expected {expected[:16]}..."
        raise _damaged(path, text)


def _open_checked(path: Path) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise SessionError(f"{path}: cannot be read ({error}); expected a file written by `stepscope pack`") from error
    except _UNREADABLE as error:
        if is_packed(path):
            raise _damaged(path, f"its list of entries, at its end, was cut off or altered ({error})") from error
        raise SessionError(
            f"{path}: not a packed session ({error}); expected a file written by `stepscope pack`"
        ) from error
    try:
        entries = _checked_entries(path, archive)
    except SessionError:
        archive.close()
        raise
    return archive, entries


def _checked_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise _damaged(path, f"it has {len(infos)} entries; at most {MAX_ENTRIES} are read")
    entries: dict[str, zipfile.ZipInfo] = {}
    total = 0
    size = path.stat().st_size
    for info in infos:
        name = info.filename
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or str(pure) != name:
            raise _damaged(path, f"the entry {name!r} leaves the session; nothing was read")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise _damaged(path, f"the entry {name!r} is no regular file; nothing was read")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise _damaged(path, f"the entry {name!r} is compressed or encrypted; expected a stored one")
        if info.file_size != info.compress_size or info.file_size > min(MAX_FILE_BYTES, size):
            raise _damaged(path, f"the entry {name!r} claims {info.file_size} bytes; the file has {size}")
        if name in entries:
            raise _damaged(path, f"two entries are named {name!r}; nothing was read")
        total += info.file_size
        entries[name] = info
    if total > min(MAX_TOTAL_BYTES, size):
        raise _damaged(path, f"its entries claim {total} bytes; the file has {size}")
    if layout.MANIFEST not in entries:
        raise _without_manifest(path, packed=DIGEST in entries)
    return entries


def _without_manifest(path: Path, *, packed: bool) -> SessionError:
    text = f"no {layout.MANIFEST} in it; expected what `stepscope pack` writes"
    return _damaged(path, text) if packed else SessionError(f"{path}: {text}")


def pack(session: Path, target: Path) -> int:
    """Write the session directory as one file; return its size in bytes. Caches are omitted.

    Raises:
        SessionError: there is no session, or the target exists.
        OSError: no space, or no rights.
    """
    if not layout.is_session(session):
        raise SessionError(f"{session}: not a session; expected a directory with a {layout.MANIFEST}")
    names = portable_names(session)
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
            raise SessionError(f"{target} already exists; choose another name with --output") from None
        except OSError:  # a file system without links
            if target.exists():
                raise SessionError(f"{target} already exists; choose another name with --output") from None
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target.stat().st_size


def portable_names(session: Path) -> list[str]:
    """The names of all files that belong to a session: no caches, no links."""
    names = []
    for folder, folders, files in os.walk(session):
        relative = Path(folder).relative_to(session)
        if relative == Path() or relative.name.endswith(layout.SUFFIX):
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
    """Write a packed session as a directory and return it. Every file is checked against its digest.

    Raises:
        SessionError: it is not a packed session, is hostile or damaged, or the target exists.
        OSError: no space, or no rights.
    """
    archive, entries = _open_checked(packed)
    with archive:
        digests = _stored_digests(packed, archive, entries)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        if target.exists():
            raise SessionError(f"{target} already exists; choose another name with --output")
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
        size = archive.getinfo(DIGEST).file_size
        if size > MAX_DIGEST_BYTES:
            raise ValueError(f"{size} bytes of them; at most {MAX_DIGEST_BYTES} are read")
        with nesting.bounded():
            digests = json.loads(archive.read(DIGEST))["sha256"]
        stored = {str(name): str(value) for name, value in digests.items()}
    except (KeyError, TypeError, AttributeError, *_UNREADABLE) as error:
        text = f"no digests in it that can be read ({error}); expected what `stepscope pack` writes"
        raise _damaged(packed, text) from error
    if stored.keys() != entries.keys() - {DIGEST}:
        raise _damaged(packed, "its list of digests does not match its entries: it was altered or cut")
    return stored


def _extract(packed: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, expected: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as sink:
        _copy(packed, archive, info, sink, expected)


def _copy(packed: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, sink: IO[bytes] | None, expected: str) -> None:
    """Read an entry, write it to the sink if there is one, and compare it with its digest."""
    digest = hashlib.sha256()
    try:
        with archive.open(info) as source:
            while data := source.read(_COPY_BYTES):
                digest.update(data)
                if sink is not None:
                    sink.write(data)
    except _UNREADABLE as error:
        raise _unreadable(packed, info.filename, error) from error
    _compare(packed, info.filename, digest.hexdigest(), expected)
