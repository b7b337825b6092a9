"""The session on disk: the files written while the job runs, and reading them back.

- ``tables``: Parquet files and numpy columns, both ways.
- ``writer``: durable segments, each written whole or not at all.
- ``manifests``: the manifest alone (names of files: ``tables.layout``).
- ``reader``: a directory or a packed file as ``model.session.session.Session``.
- ``optrace``: op traces, each in a folder; ``stacks``: stack profiles, each in a file.
- ``bundle``: one file of a session, and back.

The format is documented in docs/session-format.md; its reasons are in docs/decisions/0001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.session.session import Session


def open_session(path: str | Path) -> Session:
    """Read a session, from its directory or from one packed file.

    Damage is tolerated: what can be read is returned, and ``manifest.diagnostics`` lists what is missing.

    Raises:
        SessionError: there is no session at ``path``, or nothing of it can be read.
        IncompatibleSessionError: a newer stepscope wrote it.
    """
    from stepscope.store.reader import read  # noqa: PLC0415 - numpy and pyarrow load with the first session

    return read(path)
