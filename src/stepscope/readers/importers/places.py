"""The files that a path stands for: a file for itself, a TensorBoard profile for its captures, a folder of PyTorch's
traces for all of them.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

_XPLANE = "*.xplane.pb"
_RUNS = "plugins/profile"
_TRACES = ("*.json", "*.json.gz")
_MARKS = (b'"schemaVersion"', b'"traceEvents"')
"""What a trace of PyTorch's profiler has in its beginning, and other JSON has not."""
_HEAD_BYTES, _TEXT_BYTES = 4096, 65536


def files(path: Path) -> list[Path]:
    """The files to import for a path.

    A directory that contains ``*.xplane.pb`` is one run of TensorBoard's profiler, with a file per host. A log
    directory stands for its newest run, or for the traces of PyTorch's profiler in it. xprof's cache files are not
    captures.

    Raises:
        FormatError: a directory contains nothing to import.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(_XPLANE))
    if found:
        return found
    runs = sorted({file.parent for file in path.glob(f"**/{_RUNS}/*/{_XPLANE}")}, key=lambda run: run.name)
    if runs:
        return sorted(runs[-1].glob(_XPLANE))
    traces = sorted(file for pattern in _TRACES for file in path.glob(pattern) if _is_trace(file))
    if not traces:
        raise FormatError(
            f"{path}: it has no {_XPLANE} and no trace of PyTorch's profiler ({', '.join(_TRACES)}), and there is no "
            f"{_RUNS}/ below it; expected a file or a profile's directory"
        )
    return traces


def _is_trace(file: Path) -> bool:
    """Whether a JSON file, gzipped or not, begins as a trace of PyTorch's profiler."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if file.suffix == ".gz":
            head = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, _TEXT_BYTES)
    except (OSError, zlib.error):
        return False
    return any(mark in head for mark in _MARKS)
