"""Serialised ``tf.RunMetadata`` of a traced ``Session.run``."""

from __future__ import annotations

from stepscope.readers import run_metadata
from stepscope.readers.importers.base import Importer
from stepscope.readers.importers.nested import first_inner_tag, second_inner_tag

_DEV_STATS = 0x0A
_DEVICE_TAGS = frozenset({0x0A, 0x12, 0x1A})
"""Tags of a DeviceStepStats: its device, nodes, names of threads. A text in its place (HloProto) begins otherwise."""


def knows(head: bytes) -> bool:
    """Whether a message in field 1 (step_stats) begins with a message too (dev_stats), and that as a device's does."""
    return first_inner_tag(head) == _DEV_STATS and second_inner_tag(head) in _DEVICE_TAGS


IMPORTER = Importer(
    format=run_metadata.FORMAT, title="RunMetadata of a Session.run", knows=knows, read=run_metadata.read_file
)
