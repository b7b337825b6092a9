"""Runs a job as without stepscope: it takes this process's place."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING, NoReturn

from stepscope.tables.errors import TargetError

if TYPE_CHECKING:
    from collections.abc import Sequence

_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these two in itself, and a program would inherit that."""


def become(argv: Sequence[str]) -> NoReturn:
    """Become the job.

    Raises:
        TargetError: its program cannot be started.
    """
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # no "#!": a shell would run it as a shell script
            os.execvp("sh", ["sh", *argv])
        raise TargetError(f"cannot start {argv[0]}: {error.strerror}") from error
