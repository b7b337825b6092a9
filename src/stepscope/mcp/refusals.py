"""What is answered instead: one line in words of ours, and the error's message, which may quote the job, fenced."""

from __future__ import annotations

import msgspec

from stepscope.mcp import fence
from stepscope.mcp.fitting import encode
from stepscope.tables.errors import StepscopeError

NOT_ALLOWED = (
    "this server was started without --allow-run, so it runs no command; "
    "the user can start it as: stepscope mcp --allow-run"
)
ENDED = "the server is being ended"
NO_TOOL = "there is no such tool"
ARGUMENTS = "the arguments are not as the tool's schema says"
SAID = {
    "CaptureError": "nothing could be recorded",
    "CheckError": "the check could not run",
    "DamagedError": "the session is damaged",
    "IncompatibleSessionError": "the session was written by another version of stepscope",
    "RunFailedError": "the command ended without a result",
    "SessionError": "the session is missing or damaged",
    "TargetError": "the command cannot be started",
    "UsageError": "the request asks for something that cannot be done",
}
"""By the class of an error."""
OTHER = "it could not be answered"
MOST_DETAIL = 400
"""Most characters of an error's message."""


class RefusedError(StepscopeError):
    """A request that is refused, in words of ours alone."""


class RunFailedError(StepscopeError):
    """A command that was run for a request did not do what it was to."""


def said(error: StepscopeError | msgspec.ValidationError) -> bytes:
    """The answer to a request that failed."""
    if isinstance(error, RefusedError):
        return encode({"error": str(error)})
    known = ARGUMENTS if isinstance(error, msgspec.ValidationError) else SAID.get(type(error).__name__, OTHER)
    detail = fence.escaped(str(error), MOST_DETAIL)
    return encode({"error": known, **({"untrusted_detail": detail} if detail else {})})
