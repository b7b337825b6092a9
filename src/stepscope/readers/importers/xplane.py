"""XSpace files of TensorFlow's and JAX's profilers, and of Keras' TensorBoard callback."""

from __future__ import annotations

from stepscope.readers.importers.base import Importer
from stepscope.readers.importers.nested import first_inner_tag
from stepscope.readers.xplane import xspace

_PLANE_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x2A, 0x32})
"""Tags of an XPlane: its id, name, lines, kinds of events, names of stats, stats."""


def knows(head: bytes) -> bool:
    """Whether a message in field 1 (planes) begins as a plane does."""
    return first_inner_tag(head) in _PLANE_TAGS


IMPORTER = Importer(format="xplane", title="xplane.pb of TensorFlow or JAX", knows=knows, read=xspace.read_file)
