"""The user's files of a running job, for detectors that look at source text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stepscope.collector.recording import sources
from stepscope.native import user_files


class Sources(Mapping[str, str]):
    """The user's files as they lie on disk, read when a detector asks for one."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._texts:
            if len(self._texts) >= sources.MAX_FILES or not user_files.is_user_file(path):
                raise KeyError(path)
            try:
                with Path(path).open("rb") as stream:
                    self._texts[path] = stream.read(sources.MAX_BYTES).decode("utf-8", "replace")
            except OSError as error:
                raise KeyError(path) from error
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
