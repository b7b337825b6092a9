"""Commands: small JSON files that one process leaves in a folder for another process of the same user.

``RUN/requests/`` holds requests to the sidecar, ``RUN/procs/KEY/commands/`` the sidecar's requests to a measured
process. A command appears complete, under its id, and its receiver deletes it; the answer takes another way (the log,
the live status). A folder without new commands costs its reader one ``stat`` per look.

The content is hostile until checked: only regular files of bounded size that belong to the reader's user, or to root,
are read, and at most so many at a time; the rest is deleted and reported.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time

REQUESTS_NAME = "requests"
COMMANDS_NAME = "commands"
STACKS = "stacks"
"""Kind of the command that makes a process sample its Python stacks at ``hz`` for ``seconds``."""
ENOUGH = "enough"
"""Kind of the command that ends the op trace whose id is ``capture``, with what has been traced."""
HELD = "held"
"""Kind of the command that makes a process log what its variables hold."""
LEAVE = "leave"
"""Kind of the command that makes a process stop recording for good."""
MAX_BYTES = 8_192
MAX_FILES = 16
"""Maximum number of commands taken in one look; the rest are taken in the next."""
GRAIN_NS = 100_000_000
"""Granularity of a folder's modification time: a folder changed this recently is looked at again."""
_ID = re.compile(r"[0-9a-z][0-9a-z-]{0,63}")
_SUFFIX = ".json"


def new_id() -> str:
    """A new unique id; ids sort by creation time."""
    return "%011x-%s" % (time.time_ns() // 1_000_000, os.urandom(4).hex())


def send(folder: str, fields: dict[str, object], identity: str = "") -> str:
    """Leave a command in ``folder``, whole or not at all; return its id.

    Raises:
        OSError: the folder is gone, full, or belongs to another user.
        ValueError: it is larger than ``MAX_BYTES``.
    """
    identity = identity or new_id()
    data = json.dumps({**fields, "id": identity}).encode("utf-8")
    if len(data) > MAX_BYTES:
        raise ValueError("a command of %d bytes; at most %d are read" % (len(data), MAX_BYTES))
    made = os.path.join(folder, ".%s.tmp" % identity)
    fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, data)
        if os.geteuid() == 0:  # root asks another user's job, which must be able to read it
            owner = os.stat(folder)
            os.fchown(fd, owner.st_uid, owner.st_gid)
    finally:
        os.close(fd)
    os.rename(made, os.path.join(folder, identity + _SUFFIX))
    return identity


class Inbox:
    """A folder of commands from its reader's side."""

    __slots__ = ("_folder", "_seen_ns")

    def __init__(self, folder: str) -> None:
        """Make the folder if it does not exist.

        Raises:
            OSError: it cannot be made.
        """
        self._folder = folder
        self._seen_ns = 0
        os.makedirs(folder, 0o700, exist_ok=True)

    def changed(self) -> bool:
        """Whether a command may have arrived since the last look. Cost: one ``stat``."""
        try:
            at_ns = os.stat(self._folder).st_mtime_ns
        except OSError:  # the run directory is gone
            return False
        if at_ns == self._seen_ns:
            return False
        self._seen_ns = at_ns if time.time_ns() - at_ns > GRAIN_NS else 0
        return True

    def take(self) -> tuple[list[dict[str, object]], list[str]]:
        """Return the commands (oldest first, each with its ``id``) and the reasons why others were ignored. All of them
        are deleted.
        """
        found: list[dict[str, object]] = []
        problems: list[str] = []
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(_SUFFIX))
        except OSError:
            return found, problems
        if len(names) > MAX_FILES:
            self._seen_ns = 0
        for name in names[:MAX_FILES]:
            path = os.path.join(self._folder, name)
            try:
                found.append(_read(path, name[: -len(_SUFFIX)]))
            except (OSError, ValueError, RecursionError) as error:
                problems.append("the command %r is ignored: %s" % (name[:80], error))
            _delete(path)
        return found, problems


def _read(path: str, identity: str) -> dict[str, object]:
    if not _ID.fullmatch(identity):
        raise ValueError("its name is not an id")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        if about.st_uid not in (os.geteuid(), 0):
            raise ValueError("it belongs to user %d" % about.st_uid)
        data = os.read(fd, MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise ValueError("it is larger than %d bytes" % MAX_BYTES)
    fields = json.loads(data)
    if not isinstance(fields, dict) or fields.get("id") != identity:
        raise ValueError("expected a JSON object with its id")
    return fields


def _delete(path: str) -> None:
    try:
        os.unlink(path)
    except IsADirectoryError:
        _delete_folder(path)
    except OSError:
        return


def _delete_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        return
