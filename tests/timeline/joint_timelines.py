"""The timeline of a joint session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.server.timelines import timeline_build
from stepscope.sessions import merge
from stepscope.store.span_cache import MappedCache

if TYPE_CHECKING:
    from pathlib import Path


def opened(folder: Path, parts: list[Path]) -> MappedCache:
    """The timeline of their joint session."""
    joint = merge.merge(parts, folder / "job.stepscope")
    timeline_build.build(joint, folder / "cache", lambda _ratio, _words: None)
    return MappedCache(folder / "cache")
