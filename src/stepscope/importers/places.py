"""The files that a path stands for: a file for itself, a TensorBoard profile for its captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

_XPLANE = "*.xplane.pb"
_RUNS = "plugins/profile"


def files(path: Path) -> list[Path]:
    """The files to import for a path.

    A directory that contains ``*.xplane.pb`` is one run of TensorBoard's profiler, with a file per host. A log
    directory stands for its newest run. xprof's cache files in it are not captures.

    Raises:
        FormatError: a directory contains nothing to import.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(_XPLANE))
    if found:
        return found
    runs = sorted({file.parent for file in path.glob(f"**/{_RUNS}/*/{_XPLANE}")}, key=lambda run: run.name)
    if not runs:
        raise FormatError(
            f"{path}: it has no {_XPLANE}, and neither has {_RUNS}/ below it; expected a file or a profile's directory"
        )
    return sorted(runs[-1].glob(_XPLANE))
