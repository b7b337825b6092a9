"""Whether a run that failed says that it lacked the network."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

END_BYTES = 8_192
"""Length of the end of the output in which a failure is looked for: what a program dies of, it prints last."""
_FAILURES = re.compile(
    rb"name or service not known|name resolution|nodename nor servname|no address associated|gaierror|getaddrinfo"
    rb"|(?:couldn't|could not|cannot|can't|unable to|failed to) (?:resolve|connect|reach)|network is unreachable"
    rb"|no route to host|connection (?:refused|reset|timed out|aborted)|connection ?error"
    rb"|failed to establish a new connection|urlerror|max retries exceeded|offline mode"
    rb"|error executing an http request",
    re.IGNORECASE,
)
"""How the C library, Python, requests, curl, gRPC and the hubs of models and data speak of it."""


def failed_network(log: Path) -> bool:
    """Whether the end of a run's output speaks of names that were not resolved, or of connections that failed."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - END_BYTES))
            return _FAILURES.search(file.read()) is not None
    except OSError:
        return False
