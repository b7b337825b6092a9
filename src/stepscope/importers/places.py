"""Which files a path stands for: a file for itself, a profile of TensorBoard's for its captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

_XPLANE = "*.xplane.pb"
_RUNS = "plugins/profile"


def files(path: Path) -> list[Path]:
    """The files to import for a path.

    A directory with ``*.xplane.pb`` in it is one run of TensorBoard's profiler, a file for each host. A log directory
    stands for its newest run. Caches that xprof leaves beside them are no captures.

    Raises:
        FormatError: there is nothing to import in a directory.
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
