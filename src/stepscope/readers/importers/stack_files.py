"""Files of sampled stacks: perf's, text or binary, folded stacks, pprof, speedscope. They are not op traces.

perf converts the binary data of ``perf record`` to text: it knows all versions of its format, and the symbols.
``--no-inline`` stops it from starting a process per library, which takes minutes with TensorFlow's.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from stepscope.readers.stacks import detect
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.tables.stacks import StackProfile

_PERF = b"PERFILE2"
_FIELDS = ("-F", "comm,pid,tid,time,event,period,ip,sym,dso")
_MAX_WORDS = 200
_NEWER = "a newer perf may have written it: make its text there, perf script --no-inline -i FILE > stacks.txt"


def knows(path: Path) -> bool:
    """Whether the file at ``path`` holds stacks, as far as its beginning shows; False if it cannot be read."""
    head = _head(path, detect.HEAD_BYTES)
    return head.startswith(_PERF) or detect.knows(head)


def read(path: Path) -> tuple[StackProfile, ...]:
    """The profiles of a file, with the one to show first in front.

    Raises:
        FormatError: the file is damaged, or binary and there is no perf.
    """
    if _head(path, len(_PERF)) == _PERF:
        return _through_perf(path)
    return detect.read_file(path)


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _through_perf(path: Path) -> tuple[StackProfile, ...]:
    """The profiles of the file at ``path``, one for each event.

    Raises:
        FormatError: perf is not installed, or cannot read it and says why.
    """
    program = shutil.which("perf")
    if program is None:
        raise FormatError(
            f"{path}: binary data of perf record, but perf is not installed here; expected {detect.KINDS}. "
            f"Where perf is installed, run perf script --no-inline -i {path.name} > stacks.txt"
        )
    with tempfile.TemporaryFile() as text:
        for fields in (_FIELDS, ()):  # without fields: for a recording that lacks one of them
            text.seek(0)
            text.truncate()
            words = [program, "script", "--no-inline", "-i", str(path), *fields]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.PIPE, check=False)
            if done.returncode == 0:
                break
        else:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[:_MAX_WORDS]
            hint = f"; {_NEWER}" if "incompatible file format" in said else ""
            raise FormatError(f"{path}: perf script cannot read it: {said}; expected a file of perf record -g{hint}")
        if text.tell() > detect.MAX_BYTES:
            raise FormatError(f"{path}: more than {detect.MAX_BYTES >> 30} GiB of text; record a shorter window")
        text.seek(0)
        return detect.read(text.read(), where=str(path))
