"""Files as texts that can be edited and put back: encoding, byte-order mark and line endings stay as they are."""

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

from stepscope.checker.fixing.edits import CannotFixError, Edit, apply


class Content(Protocol):
    """What a file holds, as the one text that rules saw."""

    text: str

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
        CannotFixError: it cannot be decoded, or not be put back byte for byte.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            self.text = data.decode(self.encoding)
            same = self.text.encode(self.encoding) == data
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise CannotFixError("it cannot be decoded") from error
        if not same:
            raise CannotFixError(f"its encoding {self.encoding} does not give the file back as it was")

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The file's new bytes, in its own encoding."""
        try:
            return apply(self.text, edits).encode(self.encoding)
        except UnicodeError as error:
            raise CannotFixError(f"{self.encoding} has no such letters") from error


def write(path: Path, data: bytes, *, old: bytes) -> None:
    """Put new content into a file, all or nothing: mode and owner stay, links are followed.

    Raises:
        CannotFixError: it holds something else than ``old`` by now, or cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = ""
    try:
        if target.read_bytes() != old:
            raise CannotFixError("it has changed meanwhile")
        was = target.stat()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".stepscope")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            with contextlib.suppress(OSError):  # only root may give a file away; one's own stays one's own
                os.fchown(stream.fileno(), was.st_uid, was.st_gid)
            os.fchmod(stream.fileno(), stat.S_IMODE(was.st_mode))
        Path(temporary).replace(target)
    except OSError as error:
        raise CannotFixError(f"it cannot be written: {error.strerror or error}") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
