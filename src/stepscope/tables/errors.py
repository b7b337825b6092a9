"""Errors that reach the user: one line each, with an exit code from the documented table.

A message says what happened, where, what was found, what was expected, and which command to run next.
"""

from __future__ import annotations

EXTRAS = {
    "fleet": ("fsspec", "duckdb"),
    "otlp": ("opentelemetry-proto",),
    "gpu": ("nvidia-ml-py",),
    "lsp": ("pygls",),
    "mcp": ("mcp",),
    "ui": ("starlette", "uvicorn", "prometheus-client"),
}
"""Packages of each extra. stepscope is on no package index, so naming an extra there would install nothing of it."""
UPDATE = "update stepscope: git pull in its clone, then pip install ."
"""What helps where a newer version wrote something."""


def install_command(extra: str) -> str:
    """The command that installs what an extra needs, wherever stepscope itself came from."""
    return f"pip install {' '.join(EXTRAS[extra])}"


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
    """The checker cannot run: a path does not exist, or settings or a baseline cannot be read."""

    exit_code = 2


class SessionError(StepscopeError):
    """A session is missing, in use, or so damaged that nothing can be read."""

    exit_code = 65


class DamagedError(SessionError):
    """The bytes of a packed session differ from those that were packed, so nothing derived from them is shown.

    Handlers that isolate one failure from the others must let this error through.
    """


class IncompatibleSessionError(SessionError):
    """A session was written by a newer stepscope, or by a version that is no longer supported."""

    exit_code = 66


class FormatError(StepscopeError):
    """A file of another tool is damaged, or of an unsupported kind."""

    exit_code = 68


class TargetError(StepscopeError):
    """The program to run cannot be started."""

    exit_code = 67


class CaptureError(StepscopeError):
    """Nothing could be recorded: no space, no rights, no ring."""

    exit_code = 74


class NotCaughtError(CaptureError):
    """What a capture was to hold did not happen while it was waited for."""

    exit_code = 75
