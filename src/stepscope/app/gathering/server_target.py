"""Parts sent to, and taken from, a server of ``stepscope gather serve``."""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING

from stepscope.app.gathering import signing
from stepscope.app.gathering.target import MAX_NAMES, NAME, PART_BYTES, checked
from stepscope.errors import TargetError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PARTS = "/parts"
TIMEOUT_S = 10.0
"""Time that connecting, or any reading or writing, may take."""
MAX_LIST_BYTES = 256 << 20
_OK = 200
_MAX_REASON = 2_000


class ServerTarget:
    """A server, which a key opens."""

    def __init__(self, address: SplitResult, key: bytes) -> None:
        """Nothing is connected yet."""
        self._address = address
        self._key = key
        self._base = address.path.rstrip("/")

    def put(self, name: str, data: bytes) -> None:
        """Store a part."""
        self._asked("PUT", f"{PARTS}/{checked(name)}", data, limit=_MAX_REASON)

    def get(self, name: str) -> bytes:
        """The content of a part."""
        return self._asked("GET", f"{PARTS}/{checked(name)}", limit=PART_BYTES)

    def names(self) -> list[str]:
        """The names of all parts."""
        try:
            found = json.loads(self._asked("GET", PARTS, limit=MAX_LIST_BYTES))["parts"]
            return sorted(name for name in found[:MAX_NAMES] if isinstance(name, str) and NAME.fullmatch(name))
        except (ValueError, TypeError, KeyError) as error:
            raise TargetError(f"{self._address.netloc} is no server of stepscope gather serve") from error

    def _asked(self, method: str, path: str, body: bytes = b"", *, limit: int) -> bytes:
        """The answer to a request, of at most ``limit`` bytes."""
        address, where = self._address, self._base + path
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.hostname or "", address.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, where, body, signing.headers(self._key, method, path, body, time.time()))
            answer = connection.getresponse()
            data = answer.read(limit + 1)
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise TargetError(f"{address.scheme}://{address.netloc}: {why}") from error
        finally:
            connection.close()
        if answer.status != _OK:
            plain = _detail(data)
            raise TargetError(f"{address.scheme}://{address.netloc} answers {answer.status}: {plain or answer.reason}")
        if len(data) > limit:
            raise TargetError(f"{address.scheme}://{address.netloc}: the answer is larger than {limit:,} bytes")
        return data


def _detail(answer: bytes) -> str:
    """What a server says of a request that it did not serve; "" if it is none of ours."""
    try:
        text = str(json.loads(answer)["detail"])[:_MAX_REASON]
    except (ValueError, TypeError, KeyError):
        return ""
    return "".join(c if c.isprintable() else " " for c in text)
