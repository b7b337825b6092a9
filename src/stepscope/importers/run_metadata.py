"""Serialised ``tf.RunMetadata`` of a traced ``Session.run``."""

from __future__ import annotations

from stepscope.formats import run_metadata
from stepscope.importers.base import Importer
from stepscope.importers.nested import first_inner_tag

_DEV_STATS = 0x0A


def knows(head: bytes) -> bool:
    """Whether a message in field 1 (step_stats) begins with a message too (dev_stats)."""
    return first_inner_tag(head) == _DEV_STATS


IMPORTER = Importer(
    format=run_metadata.FORMAT, title="RunMetadata of a Session.run", knows=knows, read=run_metadata.read_file
)
