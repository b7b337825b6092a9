"""What ``run --clock-hosts`` asks for, from the command line through the run directory to the collector."""

from __future__ import annotations

import json
import os
from pathlib import Path

from msgspec import Struct

from stepscope.tables.errors import UsageError
from stepscope.wire.env import CLOCKS_NAME

PORT = 7331
"""UDP port, where an entry names none."""
MIN_HOSTS, MAX_HOSTS = 2, 4_096
MIN_KEY, MAX_KEY = 16, 4_096
"""Bytes of a key."""
_OTHERS = 0o077
_MAX_PORT = 65_535


class ClockSettings(Struct, frozen=True, kw_only=True):
    """Hosts whose clocks are compared, and the file with the key that they share."""

    hosts: tuple[tuple[str, int], ...]
    key_file: str

    def write(self, run: Path) -> None:
        """Hand it to the collector: the key stays where it is.

        Raises:
            OSError: no space, or no rights.
        """
        text = json.dumps({"hosts": [list(host) for host in self.hosts], "key_file": self.key_file})
        (run / CLOCKS_NAME).write_text(text, "utf-8")


def parse(hosts: str, key_file: Path | None) -> ClockSettings:
    """The options of the command line.

    Raises:
        UsageError: one is missing or wrong, or the key cannot be used.
    """
    if not hosts:
        raise UsageError("--key-file without --clock-hosts or --gather; expected one of them with it")
    if key_file is None:
        raise UsageError(
            "--clock-hosts without --key-file: only who has the key is answered; expected a file that "
            "all hosts share, made by: (umask 077; head -c 32 /dev/urandom > KEY)"
        )
    entries = [_entry(text.strip()) for text in hosts.split(",") if text.strip()]
    if not MIN_HOSTS <= len(entries) <= MAX_HOSTS:
        raise UsageError(
            f"--clock-hosts {hosts}: {len(entries)} hosts; expected {MIN_HOSTS} to {MAX_HOSTS}, the reference first"
        )
    settings = ClockSettings(hosts=tuple(entries), key_file=os.path.realpath(key_file))
    problem = _problem(Path(settings.key_file))
    if problem:
        raise UsageError(f"--key-file {key_file}: {problem}")
    return settings


def read(run: Path) -> ClockSettings | None:
    """What ``ClockSettings.write`` wrote; None if there is nothing."""
    try:
        data = json.loads((run / CLOCKS_NAME).read_text("utf-8"))
        hosts = tuple((str(host), int(port)) for host, port in data["hosts"])
        return ClockSettings(hosts=hosts, key_file=str(data["key_file"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def key_of(path: Path) -> bytes:
    """The key.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too short, or others can read it.
    """
    problem = _problem(path)
    if problem:
        raise ValueError(problem)
    return path.read_bytes()[:MAX_KEY]


def _problem(path: Path) -> str:
    try:
        about = path.stat()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if about.st_mode & _OTHERS:
        return "others may read or write it; run chmod 600"
    if not MIN_KEY <= about.st_size <= MAX_KEY:
        return f"{about.st_size} bytes; expected {MIN_KEY} to {MAX_KEY}"
    return ""


def _entry(text: str) -> tuple[str, int]:
    """HOST, HOST:PORT or [IPV6]:PORT."""
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    number = int(port) if port.isdigit() else 0 if port else PORT
    if not host or not 0 < number <= _MAX_PORT:
        raise UsageError(f"--clock-hosts: {text} is no HOST[:PORT]")
    return host, number
