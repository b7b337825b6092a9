"""What ``run`` and ``enable`` ask of a job on several hosts: where its sessions go, and whose clocks are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.clocks import settings
from stepscope.sessions.gathering import target
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.clocks.settings import ClockSettings


def check(
    gather: str, clock_hosts: str, key_file: Path | None, ca_file: Path | None, fleet: str = ""
) -> ClockSettings | None:
    """Say before a job starts what could never work; return the hosts whose clocks are compared, if any are.

    Args:
        gather: address that sessions are sent to; empty: none.
        clock_hosts: HOST[:PORT],... of all hosts; empty: none.
        key_file: file with the key that they, or the server at the address, share.
        ca_file: file with the authorities that the server's certificate may be from.
        fleet: address that parts of sessions are sent to; empty: none.

    Raises:
        UsageError: one of them is wrong, or lacks another.
    """
    places = [url for url in (gather, fleet) if url]
    for url in places:
        target.check(url, key_file, ca_file if len(places) == 1 else target.authorities(url, ca_file))
    if ca_file is not None and not places:
        raise UsageError("--ca-file without --gather; expected --gather https://HOST:PORT with it")
    if clock_hosts or (key_file is not None and not places):
        return settings.parse(clock_hosts, key_file)
    return None
