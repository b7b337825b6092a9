"""JSON that is nested too deeply is damaged like any other: its reader need not know of Python's limit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def bounded() -> Iterator[None]:
    """Around code, or a function, that decodes JSON from elsewhere.

    Raises:
        msgspec.DecodeError: it is nested too deeply.
    """
    try:
        yield
    except RecursionError as error:
        raise msgspec.DecodeError("JSON is nested too deeply") from error
