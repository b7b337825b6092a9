"""Settings and secrets of a server."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from stepscope.tables.errors import UsageError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
MIN_TOKEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access control: the token, and the accepted host names."""

    token: str = field(default_factory=lambda: secrets.token_hex(24))
    port: int
    hosts: frozenset[str] = frozenset(LOOPBACK)

    def __post_init__(self) -> None:
        """Refuse a token that could be guessed or does not fit into a header."""
        if len(self.token) < MIN_TOKEN or not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise UsageError(f"the token must be at least {MIN_TOKEN} printable ASCII characters without spaces")

    @property
    def cookie_name(self) -> str:
        """Cookie name of this server alone: browsers send cookies to every port of a host."""
        return f"stepscope-{self.port}"

    @property
    def cookie_value(self) -> str:
        """Cookie value that a browser stores instead of the token: it grants access without revealing the token."""
        return hmac.new(self.token.encode(), self.cookie_name.encode(), hashlib.sha256).hexdigest()

    def knows_token(self, word: str) -> bool:
        """Whether the text is the token, compared in constant time."""
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.token.encode())

    def knows_cookie(self, word: str) -> bool:
        """Whether the value is the cookie that this server issued."""
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.cookie_value.encode())
