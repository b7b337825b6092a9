"""Files of sampled stacks: perf script's text, folded stacks, pprof, speedscope. They are no op traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.stacks import detect

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.stacks import StackProfile


def knows(path: Path) -> bool:
    """Whether the file at ``path`` holds stacks, as far as its beginning tells; not, where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return detect.knows(stream.read(detect.HEAD_BYTES))
    except OSError:
        return False


def read(path: Path) -> tuple[StackProfile, ...]:
    """Its profiles, the one to show first in front.

    Raises:
        FormatError: the file is damaged.
    """
    return detect.read_file(path)
