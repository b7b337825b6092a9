"""Errors that reach the user: one line each, with an exit code from the documented table.

A message says what happened, where, what was got, what was expected, and which command comes next.
"""

from __future__ import annotations


class StepscopeError(Exception):
    """Base of every error that is meant for the user.

    ``exit_code`` is API (docs/exit-codes.md); codes below 64 belong to the job that was run,
    except for ``check``, which runs none and exits as linters do.
    """

    exit_code = 70


class UsageError(StepscopeError):
    """The command line asks for something that cannot be done."""

    exit_code = 64


class CheckError(StepscopeError):
    """The checker cannot check: no such path, settings or baseline that cannot be read."""

    exit_code = 2


class SessionError(StepscopeError):
    """A session is missing, damaged or in use."""

    exit_code = 65


class DamagedError(SessionError):
    """Bytes of a packed session are not those that were packed: nothing that rests on them is shown.

    No wall that keeps one failure from stopping the rest may hold it back.
    """


class IncompatibleSessionError(SessionError):
    """A session was written by a newer stepscope, or by a version that cannot be read any more."""

    exit_code = 66


class FormatError(StepscopeError):
    """A file of another tool is damaged, or of no kind that is read here."""

    exit_code = 68


class TargetError(StepscopeError):
    """The program to run cannot be started."""

    exit_code = 67


class CaptureError(StepscopeError):
    """Nothing could be recorded: no space, no rights, no ring."""

    exit_code = 74
