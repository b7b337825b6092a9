"""What an importer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stepscope.model.session.optrace import OpTrace

PROBE_BYTES = 64
"""How much of a file's beginning an importer is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Reads one format."""

    format: str
    """What ``TraceSource.format`` says, or the family of it."""
    title: str
    """For messages: "xplane.pb of TensorFlow or JAX"."""
    knows: Callable[[bytes], bool]
    """Whether a file that begins with these bytes is of the format, as far as they tell."""
    read: Callable[[Path], OpTrace]
    """Raises FormatError: the file is damaged, or none after all."""
