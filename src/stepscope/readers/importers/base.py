"""The definition of an importer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stepscope.tables.optrace import OpTrace

PROBE_BYTES = 4096
"""Number of bytes at a file's beginning that an importer sees."""


class Importer(Struct, frozen=True, kw_only=True):
    """Reader of one format."""

    format: str
    """Format as in ``TraceSource.format``, or its family."""
    title: str
    """Title for messages: "xplane.pb of TensorFlow or JAX"."""
    knows: Callable[[bytes], bool]
    """Predicate: a file that begins with these bytes is of the format, as far as they show."""
    read: Callable[[Path], OpTrace]
    """Function that reads a file; raises FormatError if it is damaged, or not of the format."""
