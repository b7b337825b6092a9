"""Files as texts that can be edited and written back: encoding, byte-order mark and line endings are preserved."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stepscope.check.fixing.edits import CannotFixError, Edit, apply


class Content(Protocol):
    """The content of a file, as the single text that rules saw."""

    text: str

    def place(self, line: int) -> str:
        """A line of the text, as people find it."""
        ...

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The file's new bytes.

        Raises:
            CannotFixError: these edits cannot be made in this file.
        """
        ...


class PythonContent:
    """A Python file.

    Args:
        data: its bytes.

    Raises:
        CannotFixError: it cannot be decoded, or not written back byte for byte.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            self.text = data.decode(self.encoding)
            same = self.text.encode(self.encoding) == data
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise CannotFixError("it cannot be decoded") from error
        if not same:
            raise CannotFixError(f"its encoding {self.encoding} does not reproduce the file")

    def place(self, line: int) -> str:
        """The line itself."""
        return str(line)

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The file's new bytes, in its own encoding."""
        try:
            return apply(self.text, edits).encode(self.encoding)
        except UnicodeError as error:
            raise CannotFixError(f"{self.encoding} cannot encode the new text") from error


def write(path: Path, data: bytes, *, old: bytes) -> None:
    """Write new content to a file, all or nothing: mode and owner are preserved, links are followed.

    Raises:
        CannotFixError: its content is no longer ``old``, or it cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = ""
    try:
        if target.read_bytes() != old:
            raise CannotFixError("it has changed in the meantime")
        was = target.stat()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".stepscope")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            with contextlib.suppress(OSError):  # only root may change an owner; one's own file keeps its owner
                os.fchown(stream.fileno(), was.st_uid, was.st_gid)
            os.fchmod(stream.fileno(), stat.S_IMODE(was.st_mode))
        Path(temporary).replace(target)
    except OSError as error:
        raise CannotFixError(f"it cannot be written: {error.strerror or error}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
