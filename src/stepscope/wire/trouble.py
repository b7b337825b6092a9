"""Lines about processes that could not be armed or measured: the only trace of them in a report.

Such a process has no log. The payload's sitecustomize writes the same form by itself, because it must work even if this
package cannot be imported.
"""

from __future__ import annotations

import json
import os

from stepscope.wire.env import MAX_TROUBLE_BYTES, TROUBLE_NAME

MAX_TEXT = 500


def tell(run: str, where: str, error: BaseException) -> bool:
    """Append one line; return whether that was possible. Never raises."""
    text = "%s: %s" % (type(error).__name__, error)
    return write(run, where, text)


def write(run: str, where: str, text: str) -> bool:
    """Append one line with our text; return whether that was possible. Never raises."""
    try:
        line = json.dumps({"pid": os.getpid(), "where": where, "text": text[:MAX_TEXT]})
        fd = os.open(os.path.join(run, TROUBLE_NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size >= MAX_TROUBLE_BYTES:
                return False
            os.write(fd, line.encode("utf-8", "replace") + b"\n")
        finally:
            os.close(fd)
    except (OSError, ValueError):  # the run directory is gone or full: the error cannot be reported
        return False
    return True


def read(run: str) -> list[tuple[int, str, str]]:
    """(pid, where, text) of every line; a damaged one is omitted."""
    try:
        with open(os.path.join(run, TROUBLE_NAME), "rb") as stream:
            lines = stream.read(2 * MAX_TROUBLE_BYTES).splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
            found.append((int(entry["pid"]), str(entry["where"])[:MAX_TEXT], str(entry["text"])[:MAX_TEXT]))
        except (ValueError, KeyError, TypeError):
            continue
    return found
