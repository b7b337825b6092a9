"""Parts sent to, and taken from, a server of ``stepscope gather serve``."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from stepscope.sessions.gathering import signing, tls
from stepscope.sessions.gathering.target import MAX_NAMES, NAME, PART_BYTES, RefusedError, checked
from stepscope.tables.errors import TargetError

if TYPE_CHECKING:
    from pathlib import Path
    from urllib.parse import SplitResult

PARTS = "/parts"
TIMEOUT_S = 10.0
"""Time that connecting, or any reading or writing, may take."""
MAX_LIST_BYTES = 256 << 20
_MAX_REASON = 2_000


class ServerTarget:
    """A server, which a key opens."""

    def __init__(self, address: SplitResult, key: bytes, ca_file: Path | None = None) -> None:
        """Nothing is connected yet. ``ca_file``: the authorities to trust, instead of those of this host.

        Raises:
            UsageError: that file has no certificate.
        """
        self._address = address
        self._url = f"{address.scheme}://{address.netloc}"
        self._trusted = tls.context(ca_file) if address.scheme == "https" else None
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
        connection = self._connection()
        try:
            headers = signing.headers(self._key, method, path, body, time.time())
            connection.request(method, self._base + path, body, headers)
            answer = connection.getresponse()
            data = answer.read(limit + 1)
        except ssl.SSLError as error:
            raise (RefusedError if tls.is_final(error) else TargetError)(f"{self._url}: {tls.why(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise TargetError(f"{self._url}: {_why(error)}") from error
        finally:
            connection.close()
        if answer.status != HTTPStatus.OK:
            said = _detail(data) or f"{answer.reason}; expected a server of stepscope gather serve"
            final = answer.status < HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.INSUFFICIENT_STORAGE
            raise (RefusedError if final else TargetError)(f"{self._url} answers {answer.status}: {said}")
        if len(data) > limit:
            raise TargetError(f"{self._url}: the answer is larger than {limit:,} bytes")
        return data

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._trusted is None:
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self._trusted)


def _why(error: Exception) -> str:
    """Why a request got no answer."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; expected stepscope gather serve to listen there"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the server closed the connection without an answer; does it expect https://?"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _detail(answer: bytes) -> str:
    """What a server says of a request that it did not serve; "" if it is none of ours."""
    try:
        text = str(json.loads(answer)["detail"])[:_MAX_REASON]
    except (ValueError, TypeError, KeyError):
        return ""
    return "".join(c if c.isprintable() else " " for c in text)
