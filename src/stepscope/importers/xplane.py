"""XSpace files of TensorFlow's and JAX's profilers, and of Keras' TensorBoard callback."""

from __future__ import annotations

from stepscope.formats.xplane import xspace
from stepscope.importers.base import Importer
from stepscope.importers.nested import first_inner_tag

_DEV_STATS = 0x0A


def knows(head: bytes) -> bool:
    """Whether a message in field 1 (planes) has a first field that is not a message: a RunMetadata's is."""
    inner = first_inner_tag(head)
    return inner is not None and inner != _DEV_STATS


IMPORTER = Importer(format="xplane", title="xplane.pb of TensorFlow or JAX", knows=knows, read=xspace.read_file)
