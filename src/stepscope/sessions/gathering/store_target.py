"""Parts in an object store, or whatever else fsspec knows: s3://, gs://, az://, memory:// ..."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stepscope.sessions.gathering.target import MAX_NAMES, NAME, PART_BYTES, RefusedError, checked
from stepscope.tables.errors import TargetError

if TYPE_CHECKING:
    from types import TracebackType


FLAT = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss"})
"""Stores without folders: a client that is asked for one makes the bucket, also where its name has a typing error."""


class StoreTarget:
    """A prefix of a store. Writing an object is atomic in all of them, and their clients try again by themselves."""

    def __init__(self, url: str) -> None:
        """Nothing is sent yet.

        Raises:
            TargetError: fsspec, or what it needs for this store, is not installed or not set up.
        """
        self._url = url
        with self._explained("opened"):
            self._store, self._prefix = import_module("fsspec.core").url_to_fs(url)
        self._prefix = self._prefix.rstrip("/")
        self._flat = url.partition("://")[0] in FLAT

    def put(self, name: str, data: bytes) -> None:
        """Store a part."""
        path = f"{self._prefix}/{checked(name)}"
        with self._explained("written"):
            if not self._flat:
                self._store.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._store.pipe_file(path, data)

    def get(self, name: str) -> bytes:
        """The content of a part."""
        path = f"{self._prefix}/{checked(name)}"
        with self._explained("read"):
            known = self._store.info(path)["size"]
            data = bytes(self._store.cat_file(path)) if known is not None and known <= PART_BYTES else b""
        if known is None or max(known, len(data)) > PART_BYTES:
            raise TargetError(f"{self._url}/{name} is larger than a part")
        return data

    def names(self) -> list[str]:
        """The names of all parts."""
        with self._explained("listed"):
            found = [str(path)[len(self._prefix) + 1 :] for path in self._store.find(self._prefix)]
        if len(found) > MAX_NAMES:
            raise TargetError(f"{self._url} holds more than {MAX_NAMES:,} parts")
        return sorted(name for name in found if NAME.fullmatch(name))

    def _explained(self, what: str) -> _Explained:
        return _Explained(f"{self._url} cannot be {what}")


class _Explained:
    """Whatever a store's client raises, as an error of one line: clients have no common kind of error."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            why = " ".join(str(error).split())
            raise RefusedError(f"{self._what}: {type(error).__name__}: {why}") from error
