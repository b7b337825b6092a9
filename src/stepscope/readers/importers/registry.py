"""All importers, and the choice of one for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.readers.importers import nested, run_metadata, trace_events, xplane
from stepscope.readers.importers.base import PROBE_BYTES
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.readers.importers.base import Importer
    from stepscope.tables.optrace import OpTrace

ALL: tuple[Importer, ...] = (trace_events.IMPORTER, xplane.IMPORTER, run_metadata.IMPORTER)
"""Importers in the order of asking: the beginning of JSON is rarely that of a protocol buffer, but not vice versa."""
XPLANE_ENDING = ".xplane.pb"


def read(path: Path) -> OpTrace:
    """The op trace of a file of any known format.

    Raises:
        FormatError: the file cannot be read, is empty, of no known format, or damaged.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(PROBE_BYTES)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}; expected {expected()}") from error
    if nested.perfetto(head):
        raise FormatError(
            f"{path}: a trace of Perfetto; expected {expected()}: traceconv json {path.name} trace.json, of Perfetto's "
            "tools, makes Chrome's JSON of it"
        )
    importer = next((one for one in ALL if one.knows(head)), None)
    if importer is None and path.name.endswith(XPLANE_ENDING):
        importer = xplane.IMPORTER  # gives the best message about the file
    if importer is None:
        what = f"begins with {head[:8]!r}" if head else "empty"
        raise FormatError(f"{path}: {what}; expected {expected()}")
    return importer.read(path)


def expected() -> str:
    """The formats, for messages."""
    return ", ".join(one.title for one in ALL)
